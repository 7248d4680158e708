"""Through Spark Connect: writes in foreachBatch, and Spark's declarative pipelines, which run on it."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyspark
import pytest

from odradek.client.blocking import BlockingClient
from tests.spark.clusters import connect_server
from tests.spark.driver import ROOT
from tests.spark.test_sink import Committed, Send, ids

pytestmark = pytest.mark.timeout(300)

Run = Callable[..., None]
_PIPELINES = Path(pyspark.__file__).parent / "pipelines" / "cli.py"

_DEFINITIONS = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()
cluster = {{"kafka.bootstrap.servers": "{bootstrap}"}}

dp.create_sink("doubled", "odradek", {{**cluster, "topic": "{sink}"}})


@dp.append_flow(target="doubled")
def doubling():
    orders = spark.readStream.format("odradek").options(**cluster, subscribe="{source}")
    rows = orders.option("startingOffsets", "earliest").load()
    return rows.selectExpr("key", "cast(2 * cast(cast(value as string) as int) as string) value")
"""
_SPEC = """
name: doubling
storage: file://{folder}/storage
libraries:
  - glob:
      include: transformations/**
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A Python program that is a client of one server of Spark Connect."""
    folder = tmp_path_factory.mktemp("connect")

    def program(arguments: Sequence[str], place: Path) -> None:
        ran = subprocess.run(
            [sys.executable, *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT), "SPARK_REMOTE": remote},
            cwd=place,
            capture_output=True,
            text=True,
            timeout=200,
        )
        assert ran.returncode == 0, ran.stderr[-6_000:]

    with connect_server(folder, "local[2]") as remote:
        yield program


def test_through_spark_connect_a_batch_that_is_run_again_is_written_once(
    run: Run,
    bootstrap: str,
    make_topic: Callable[..., str],
    send: Send,
    committed: Committed,
    tmp_path: Path,
) -> None:
    source, sink = make_topic(1), make_topic(1)
    send(source, [(None, str(i).encode()) for i in range(300)])
    checkpoint = str(tmp_path / "checkpoint")
    run(["-m", "tests.spark.replaying", bootstrap, source, sink, checkpoint], tmp_path)
    assert ids(committed(sink)) == Counter(range(300))
    with BlockingClient(bootstrap) as client:
        offsets = client.call(client.admin.committed, f"odradek.copy of {source}")
    assert [found.committed_offset for found in offsets.values()] == [300]


def test_a_declarative_pipeline_reads_and_writes_topics(
    run: Run,
    bootstrap: str,
    make_topic: Callable[..., str],
    send: Send,
    committed: Committed,
    tmp_path: Path,
) -> None:
    source, sink = make_topic(1), make_topic(1)
    (tmp_path / "transformations").mkdir()
    definitions = _DEFINITIONS.format(bootstrap=bootstrap, source=source, sink=sink)
    (tmp_path / "transformations" / "doubling.py").write_text(definitions)
    spec = tmp_path / "spark-pipeline.yml"
    spec.write_text(_SPEC.format(folder=tmp_path))
    send(source, [(None, str(i).encode()) for i in range(20)])
    run([str(_PIPELINES), "run", "--spec", str(spec)], tmp_path)
    assert ids(committed(sink)) == Counter(range(0, 40, 2))
    (checkpoint,) = (tmp_path / "storage").rglob("offsets/0")
    assert source in checkpoint.read_text(), "the next run goes on from here"
