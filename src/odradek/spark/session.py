"""Spark sessions that a command starts for itself, and why their jobs fail."""

from collections.abc import Mapping

from pyspark.sql import SparkSession

_DEFAULTS = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}


def make_session(name: str, settings: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder.appName(name)
    for key, value in {**_DEFAULTS, **settings}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def cause(error: Exception) -> str:
    """The line of a worker's trace that says what happened."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if ": " in line and not line.startswith(("at ", "File "))]
    errors = [line for line in told if line.partition(":")[0].endswith(("Error", "Exception"))]
    return (errors or told or lines or ["no reason given"])[-1 if errors else 0]
