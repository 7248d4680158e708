"""A running pipeline: its session, its queries, their progress."""

import importlib.util
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from odradek.client.blocking import BlockingClient
from odradek.spark.ledger.deciding import abandon
from odradek.spark.ledger.ledger import Stream
from odradek.spark.options import sink_options
from odradek.spark.pipelines.pipeline_spec import PipelineSpec, SpecError
from odradek.spark.session import allow_several_streams
from odradek.spark.source.planning import from_json


class Told(NamedTuple):
    """What a query told of its last micro-batch."""

    sink: str
    batch: int
    rows: int
    rows_per_second: float
    batch_ms: int
    lag: int | None


class Pipeline:
    """A query for every sink, each with a checkpoint of its own."""

    def __init__(self, spec: PipelineSpec, spark: SparkSession) -> None:
        self._spec = spec
        self._spark = spark
        self.queries: dict[str, StreamingQuery] = {}

    def start(self) -> None:
        frames = self._frames()
        allow_several_streams(self._spark)
        for name, sink in self._spec.sinks.items():
            checkpoint = {"checkpointLocation": self._spec.checkpoint_of(name)}
            options = {**self._spec.cluster, **self._sink_options(name), **checkpoint}
            writer = (
                frames[name]
                .writeStream.queryName(self._spec.group_of(name))
                .outputMode(sink.output_mode)
                .trigger(**self._spec.trigger)
            )
            if sink.output_mode == "update":  # which Spark does not let a sink in Python have
                writer = writer.foreachBatch(_writing(options)).options(**checkpoint)
            else:
                writer = writer.format("odradek").options(**options)
            self.queries[name] = writer.start()

    def _sink_options(self, name: str) -> dict[str, str]:
        return {"offsets.group": self._spec.group_of(name), **self._spec.sinks[name].options}

    def _frames(self) -> dict[str, DataFrame]:
        sources = {
            name: self._spark.readStream.format("odradek").options(**self._spec.cluster, **options).load()
            for name, options in self._spec.sources.items()
        }
        path = self._spec.transform
        if not path.exists():
            raise SpecError(f"there is no {path}")
        sinks = list(self._spec.sinks)
        if path.suffix == ".sql":
            for name, frame in sources.items():
                frame.createOrReplaceTempView(name)
            return {sinks[0]: self._spark.sql(path.read_text().rstrip().rstrip(";"))}
        made = _load_transform(self._spec)(self._spark, **sources)
        frames = {sinks[0]: made} if isinstance(made, DataFrame) and len(sinks) == 1 else made
        if not isinstance(frames, Mapping) or set(frames) != set(sinks):
            raise SpecError(f"{path}: transform must return a DataFrame for each of {', '.join(sinks)}")
        return dict(frames)

    @property
    def is_active(self) -> bool:
        return any(query.isActive for query in self.queries.values())

    def failure(self) -> Exception | None:
        return next(
            (e for e in (query.exception() for query in self.queries.values()) if e is not None), None
        )

    def told(self) -> list[Told]:
        return [
            _told(name, query.lastProgress)
            for name, query in self.queries.items()
            if query.lastProgress is not None
        ]

    def stop(self) -> None:
        """End the queries, and what a batch in the middle has left open."""
        for name, query in self.queries.items():
            query.stop()
            sweep(self._spec, name, str(query.id), str(query.runId)[:8])


def _writing(options: Mapping[str, str]) -> Callable[[DataFrame, int], None]:
    def write(frame: DataFrame, batch: int) -> None:
        frame.write.format("odradek").options(**options).mode("append").save()

    return write


def sweep(spec: PipelineSpec, sink: str, query_id: str, run: str) -> None:
    """Abort what a run has left open and not decided."""
    options = sink_options({**spec.cluster, **spec.sinks[sink].options})
    if not options.exactly_once:
        return

    with BlockingClient(options.connecting.bootstrap) as client:
        client.run(abandon(client.client, Stream(query_id, options.sink), options.prefix, run))


def _load_transform(spec: PipelineSpec) -> Any:
    found = importlib.util.spec_from_file_location(f"{spec.name}_transform", spec.transform)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    if not hasattr(module, "transform"):
        raise SpecError(f"{spec.transform} has no function transform(spark, {', '.join(spec.sources)})")
    return module.transform


def _told(sink: str, progress: Mapping[str, Any]) -> Told:
    return Told(
        sink,
        int(progress["batchId"]),
        int(progress["numInputRows"]),
        float(progress.get("processedRowsPerSecond") or 0.0),
        int(progress["durationMs"].get("triggerExecution", 0)),
        _lag(progress["sources"]),
    )


def _lag(sources: Any) -> int | None:
    """Offsets between what was read and what there is."""
    lag = 0
    for source in sources:
        try:
            ends, _ = from_json(_as_object(source["latestOffset"]))
            reached, _ = from_json(_as_object(source["endOffset"]))
        except (KeyError, TypeError, AttributeError, ValueError):
            return None
        lag += sum(max(end - reached.get(tp, 0), 0) for tp, end in ends.items())
    return lag


def _as_object(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value
