"""The walk of a micro-batch: Spark's calls in their order, of driver and task in one process, without a JVM.

The connector and its client are traced, in two threads that wait for each other. They talk to a real node in
this process. It is not traced: its side is in the other walks.
"""

import gc
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql.types import BinaryType, StructField, StructType

from odradek.client.blocking import BlockingClient
from odradek.spark import process
from odradek.spark.datasource import OdradekSource
from odradek.spark.sink.tasks import BATCH, GROUP, QUERY
from odradek.testing import Broker
from tests.documents.tracer import Tracer
from tests.support.topics import create_topic

_SCHEMA = StructType([StructField("value", BinaryType())])
_QUERY = "query"
_PROPERTIES = {QUERY: _QUERY, BATCH: "0", GROUP: "run00000"}


def traced() -> Tracer:
    """A first one fills caches, as in the other walks."""
    for _ in range(2):
        tracer = Tracer()
        with Broker() as broker, tempfile.TemporaryDirectory() as checkpoint, _worker():
            _prepare(broker.bootstrap_servers)
            tracer.begin()
            try:
                _micro_batch(broker.bootstrap_servers, Path(checkpoint))
            finally:
                tracer.end()
    return tracer


def _prepare(bootstrap: str) -> None:
    for topic in ("in", "out"):
        create_topic(bootstrap, topic)
    with BlockingClient(bootstrap) as client, client.producer() as producer:
        producer.send("in", b"v")


def _micro_batch(bootstrap: str, checkpoint: Path) -> None:
    """One record from a topic to another, exactly once."""
    given = {"kafka.bootstrap.servers": bootstrap}
    source = OdradekSource({**given, "subscribe": "in", "startingOffsets": "earliest"})
    reader = source.streamReader(_SCHEMA)
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    _plan(checkpoint, end)
    partitions = reader.partitions(start, end)
    sink = OdradekSource({**given, "topic": "out", "checkpointLocation": str(checkpoint)})
    writer = sink.streamWriter(_SCHEMA, overwrite=False)
    rows = [batch for partition in partitions for batch in reader.read(partition)]
    written = writer.write(iter(rows))  # type: ignore[arg-type]
    writer.commit([written], 0)
    reader.commit(end)


def _plan(checkpoint: Path, end: object) -> None:
    """What Spark writes before the tasks of a batch run."""
    (checkpoint / "metadata").write_text(json.dumps({"id": _QUERY}))
    (checkpoint / "offsets").mkdir()
    (checkpoint / "offsets" / "0").write_text(f"v1\n{{}}\n{json.dumps(end)}\n")


@contextmanager
def _worker() -> Iterator[None]:
    """A Python worker of Spark in this process, which leaves nothing behind."""
    before, process._kept = process._kept, {}
    context = TaskContext._getOrCreate()
    context._localProperties = dict(_PROPERTIES)
    try:
        yield
    finally:
        TaskContext._taskContext = None
        for kept in process._kept.values():
            if isinstance(kept, BlockingClient):
                kept.close()
        process._kept = before
        gc.unfreeze()
