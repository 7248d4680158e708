"""The example of a Spark pipeline does what it says, the second time too."""

import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from pyspark.sql import SparkSession

from tests.examples.running import EXAMPLES


@pytest.mark.usefixtures("spark")
def test_orders_go_through_spark_exactly_once(
    bootstrap: str, unique: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, so that it finds the session of all tests and need not start one."""
    source, sink = unique("orders"), unique("taxed")
    given = [
        "-b",
        bootstrap,
        "--source",
        source,
        "--sink",
        sink,
        "--checkpoint",
        str(tmp_path / "checkpoint"),
    ]

    def run() -> list[str]:
        with mock.patch.object(sys, "argv", ["example", *given]), mock.patch.object(SparkSession, "stop"):
            runpy.run_path(str(EXAMPLES / "spark_pipeline.py"), run_name="__main__")
        return capsys.readouterr().out.splitlines()

    once = [f"{sink}: ada = 50.40", f"{sink}: bob = 8.40", f"{sink}: ada = 9.60"]
    assert run() == [f"produced 3 orders to {source}", *once]
    assert run()[1:] == sorted(once * 2, key=lambda line: line.split()[-1])
