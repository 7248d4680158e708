"""Spark sessions for tests."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from odradek.spark.java import prepare, use_packaged_java
from tests.spark import classes

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
    "spark.ui.showConsoleProgress": "false",
}


def java_options(scratch: Path) -> str:
    """Short lives on few cores: compiling less and collecting simply halves the time that a session takes.

    A JVM that is killed leaves its temporary files behind: they go with those of the test.
    """
    temporary = scratch / "java"
    temporary.mkdir(parents=True, exist_ok=True)
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Djava.io.tmpdir={temporary}"]
    if classes.is_made():
        options += [f"-XX:SharedArchiveFile={classes.ARCHIVE}", "-Xlog:disable", "-Xlog:all=warning:stderr"]
    return " ".join(options)


@contextmanager
def packaged_java(scratch: Path) -> Iterator[None]:
    """The Java that the package brings along, as on a machine that has none."""
    before = dict(os.environ)
    prepare()
    assert use_packaged_java()
    os.environ["JDK_JAVA_OPTIONS"] = java_options(scratch)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def spark_home(folder: Path) -> str:
    """Spark's own files under another roof, where a local-cluster leaves the folders of its executors. It has
    no copy of PySpark in a zip, for workers that are not `odradek-python`."""
    home = folder / "spark"
    home.mkdir(parents=True, exist_ok=True)
    if classes.is_made() and not (home / "jars").exists():
        (home / "jars").symlink_to(classes.JARS)
    for part in Path(pyspark.__file__).parent.iterdir():
        if part.name != "python" and not (home / part.name).exists():
            (home / part.name).symlink_to(part)
    return str(home)


def session(master: str, scratch: Path, more: Mapping[str, str] | None = None) -> SparkSession:
    """In `packaged_java`, which puts the environment back."""
    os.environ["SPARK_HOME"] = spark_home(scratch)
    builder = SparkSession.builder.master(master).appName("tests")
    settings = {
        **SETTINGS,
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch / "local"),
    }
    for name, value in {**settings, **(more or {})}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
