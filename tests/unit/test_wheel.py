"""What is installed: the wheel has all that Spark is told to look for, and Spark's Java can be run."""

import re
import subprocess
import sys
import zipfile
from configparser import ConfigParser
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

from odradek import __version__

ROOT = Path(__file__).parents[2]
BUILD = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Built as `pip wheel --no-deps --no-build-isolation` does, from a copy: building writes beside the
    sources."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "setup.py", "README.md"):
        (folder / name).write_bytes((ROOT / name).read_bytes())
    copytree(ROOT / "src", folder / "src", ignore=ignore_patterns("__pycache__", "*.egg-info", "*.so"))
    ran = subprocess.run(
        [sys.executable, "-c", BUILD, str(folder)], cwd=folder, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-2_000:]
    (built,) = folder.glob("*.whl")
    return zipfile.ZipFile(built)


def test_its_version_is_the_packages_own(wheel: zipfile.ZipFile) -> None:
    assert wheel.filename is not None
    assert Path(wheel.filename).name.split("-")[:2] == ["odradek", __version__]


def test_the_documents_show_the_version_that_is_here() -> None:
    shown = re.findall(r"\bodradek (\d+\.\d+\.\d+)", (ROOT / "README.md").read_text())
    assert set(shown) == {__version__}
    newest = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)[0]
    assert newest == __version__


def test_java_is_there_and_may_be_run(wheel: zipfile.ZipFile) -> None:
    mode = wheel.getinfo("odradek/spark/java_home/bin/java").external_attr >> 16
    assert mode & 0o111 == 0o111, oct(mode)


def test_what_spark_looks_for_by_name_is_there(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    assert {"pyspark_odradek.py", "pyspark_odradek_segments.py", "odradek/py.typed"} <= names
    (listed,) = (name for name in names if name.endswith(".dist-info/entry_points.txt"))
    scripts = ConfigParser()
    scripts.read_string(wheel.read(listed).decode())
    assert scripts["console_scripts"]["odradek-python"] == "odradek.spark.worker_python:main"


def test_every_module_and_data_file_of_the_sources_is_in_it(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    kept = [
        p for p in (ROOT / "src").rglob("*") if p.suffix in (".py", ".json") and "__pycache__" not in p.parts
    ]
    assert len(kept) > 100
    assert [str(p) for p in kept if p.relative_to(ROOT / "src").as_posix() not in names] == []
