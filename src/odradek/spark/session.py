"""Spark sessions that a command starts for itself, and why their jobs fail."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

_OF_A_STREAM = (
    "SPARK_LOCAL_DIRS",
    "SPARK_AUTH_SOCKET_TIMEOUT",
    "SPARK_BUFFER_SIZE",
    "SPARK_PYTHON_RUNTIME",
)
_DEFAULTS = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}


def make_session(name: str, settings: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder.appName(name)
    for key, value in {**_DEFAULTS, **settings}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def allow_several_streams(spark: SparkSession) -> None:
    """Before queries are started that may begin at the same time.

    When a stream begins to read, Spark puts settings for its Python process into a map that all streams of a
    format share, without a lock. Two that insert at the same time break the map, and no task can be
    serialized any more ("Illegal size 5 of collection, expected 6"). With the keys in place, only values
    change.
    """
    environment = stream_environment(spark)
    for key in _OF_A_STREAM:
        environment.putIfAbsent(key, "")


def stream_environment(spark: SparkSession) -> Any:
    """The map, as py4j shows it."""
    sources = spark._jsparkSession.sessionState().dataSourceManager()
    return sources.lookupDataSource("odradek").dataSourceCls().envVars()


def cause(error: Exception) -> str:
    """The line of a worker's trace that says what happened."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if ": " in line and not line.startswith(("at ", "File "))]
    errors = [line for line in told if line.partition(":")[0].endswith(("Error", "Exception"))]
    return (errors or told or lines or ["no reason given"])[-1 if errors else 0]
