"""`make counts`: count what six small loads cost and write benchmarks/counts.json.

`tests/unit/broker/test_calls.py` holds the figures, but for instructions: they are counted where valgrind is
installed, which takes half a minute, and depend on the build of Python. Compare them on one machine only.
"""

import asyncio
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.counts.loads import count
from tests.counts.probe import Allocations, Calls, Instructions, SystemCalls, load_library

COUNTS: Final = Path(__file__).parents[2] / "benchmarks/counts.json"


def measured() -> dict[str, dict[str, int]]:
    """By load: Python calls, system calls, and allocations where there is a compiler."""
    found: dict[str, dict[str, int]] = {}
    library = load_library()
    meters: dict[str, Any] = {"calls": Calls(), "system_calls": SystemCalls()}
    if library is not None:
        meters["allocations"] = Allocations(library)
    for kind, meter in meters.items():
        for load, cost in asyncio.run(count(meter)).items():
            found.setdefault(load, {})[kind] = cost
    return found


def instructions() -> dict[str, int]:
    """By load; empty where there is no valgrind. Everything runs once more, in a process of its own."""
    if shutil.which("valgrind") is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                *("valgrind", "--tool=callgrind", "--instr-atstart=no", "--collect-atstart=no"),
                *(f"--callgrind-out-file={folder}/out", sys.executable, "-m", "tests.counts.main", folder),
            ],
            env={**os.environ, "PYTHONHASHSEED": "0"},
            stdout=subprocess.PIPE,
            check=True,
        )
    found: dict[str, int] = json.loads(done.stdout)
    return found


def main() -> None:
    if sys.argv[1:]:
        library = load_library()
        assert library is not None
        print(json.dumps(asyncio.run(count(Instructions(library, Path(sys.argv[1]))))))
        return
    figures = measured()
    for load, cost in instructions().items():
        figures[load]["instructions"] = cost
    for load, costs in figures.items():
        print(load, costs)
    COUNTS.write_text(json.dumps({"python": platform.python_version(), "loads": figures}, indent=2) + "\n")


if __name__ == "__main__":
    main()
