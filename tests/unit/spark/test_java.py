"""Which Java and which Python Spark is given."""

import os
import subprocess
import sys

import pytest

from odradek.spark.java import prepare, use_packaged_java
from tests.support.lite import needs_spark


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JAVA_HOME", "PYSPARK_PYTHON", "ODRADEK_JAVA"):
        monkeypatch.setenv(name, "")  # so that it is put back
        monkeypatch.delenv(name)


def test_what_is_set_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/some/java")
    monkeypatch.setenv("PYSPARK_PYTHON", "/some/python")
    prepare()
    assert (os.environ["JAVA_HOME"], os.environ["PYSPARK_PYTHON"]) == ("/some/java", "/some/python")


def test_a_java_on_the_path_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: os.PathLike[str]) -> None:
    java = os.path.join(tmp_path, "java")
    with open(java, "w") as file:
        file.write("#!/bin/sh\n")
    os.chmod(java, 0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    prepare()
    assert "JAVA_HOME" not in os.environ
    assert os.environ["PYSPARK_PYTHON"] == os.path.join(os.path.dirname(sys.executable), "odradek-python")


@needs_spark
def test_without_any_java_the_package_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    prepare()
    monkeypatch.setenv("PATH", os.defpath)
    command = [f"{os.environ['JAVA_HOME']}/bin/java", "--add-modules=jdk.incubator.vector", "-version"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "version" in ran.stderr


@needs_spark
def test_the_packaged_java_can_be_asked_for() -> None:
    assert use_packaged_java()
    assert os.environ["JAVA_HOME"].endswith("java_home")
