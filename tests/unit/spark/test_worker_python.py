"""The Python of Spark's workers."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from odradek.spark import worker_python

PYSPARK = Path(pyspark.__file__).parent
ARCHIVES = [str(PYSPARK / "python" / "lib" / name) for name in ("pyspark.zip", "py4j-0.10.9-src.zip")]
ASK = "import os, sys, pyspark; print(sys.executable, os.environ.get('PYTHONPATH'), pyspark.__file__)"


def asked(*path: str) -> list[str]:
    ran = subprocess.run(
        [worker_python.find(), "-c", ASK],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.split()


def test_a_worker_has_the_installed_pyspark_and_not_its_archive() -> None:
    installed = str(PYSPARK / "__init__.py")
    assert asked(*ARCHIVES, "/some/place") == [sys.executable, "/some/place", installed]
    assert asked(*ARCHIVES) == [sys.executable, "None", installed]


def test_the_archive_of_another_spark_stays() -> None:
    other = "/opt/spark/python/lib/pyspark.zip"
    assert asked(other)[1] == other


def test_without_the_command_it_is_this_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    assert worker_python.find() == sys.executable
