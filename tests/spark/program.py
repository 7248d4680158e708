"""What the drivers that driver.py starts have in common: their arguments, and a session with barriers."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from tests.spark.barred import BarredSource
from tests.spark.support import packaged_java, session


@contextmanager
def program(*flags: str) -> Iterator[tuple[SparkSession, argparse.Namespace]]:
    parser = argparse.ArgumentParser()
    for name in ("bootstrap", "folder", "master"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--set", action="append", default=[])
    for flag in flags:
        parser.add_argument(flag, action="store_true")
    given = parser.parse_args()
    with packaged_java(Path(given.folder)):
        settings = dict(setting.split("=", 1) for setting in given.set)
        spark = session(given.master, Path(given.folder), settings)
        spark.dataSource.register(BarredSource)
        yield spark, given
        spark.stop()
