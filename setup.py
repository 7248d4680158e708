"""Builds the native record kernel. Everything else about the package stands in pyproject.toml.

The extension is optional: without a compiler the package installs and runs on the Python kernel.
"""

import sys

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "odradek.records._kernel",
            sources=["src/odradek/records/_kernel.c"],
            depends=[
                f"src/odradek/records/native/{name}.h"
                for name in (
                    "columns",
                    "compaction",
                    "py_compaction",
                    "crc32c",
                    "encode",
                    "objects",
                    "offset_map",
                    "py_columns",
                    "py_rows",
                    "read",
                    "rows",
                    "write",
                )
            ],
            define_macros=[("Py_LIMITED_API", "0x030b0000")],
            # CFLAGS of the environment replace the interpreter's own optimization level.
            extra_compile_args=[] if sys.platform == "win32" else ["-O3"],
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
