"""The two connectors under measurement, and what each is asked to do."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

ORDER = "id BIGINT, customer STRING, amount DOUBLE, region STRING, at BIGINT"


@dataclass(frozen=True)
class Side:
    """A connector with its settings, aimed at one broker."""

    form: str
    bootstrap: str
    reading: Mapping[str, str]
    writing: Mapping[str, str]

    def read(self, spark: SparkSession, topic: str) -> DataFrame:
        return spark.read.format(self.form).options(**self._source(topic)).load()

    def write(self, rows: DataFrame, topic: str) -> None:
        rows.write.format(self.form).mode("append").options(**self._sink(topic)).save()

    def stream(self, spark: SparkSession, topic: str, starting: str, **more: str) -> DataFrame:
        options = {**self._source(topic), "startingOffsets": starting, **more}
        return spark.readStream.format(self.form).options(**options).load()

    def start(self, rows: DataFrame, topic: str, checkpoint: str, **trigger: bool) -> StreamingQuery:
        writer = rows.writeStream.format(self.form).options(
            **self._sink(topic), checkpointLocation=checkpoint
        )
        return (writer.trigger(**trigger) if trigger else writer).start()  # type: ignore[arg-type]

    def _source(self, topic: str) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.bootstrap, "subscribe": topic, **self.reading}

    def _sink(self, topic: str) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.bootstrap, "topic": topic, **self.writing}


def ours(bootstrap: str) -> Side:
    """Shipped defaults: read_committed, exactly once."""
    return Side("odradek", bootstrap, {}, {})


def official(bootstrap: str) -> Side:
    """The official connector, tuned: large fetches and batches; at least once, as it cannot do better."""
    reading = {
        "kafka.max.partition.fetch.bytes": str(4 << 20),
        "kafka.fetch.min.bytes": str(64 << 10),
        "kafka.fetch.max.wait.ms": "10",
        "kafka.max.poll.records": "10000",
    }
    writing = {
        "kafka.batch.size": str(256 << 10),
        "kafka.linger.ms": "5",
        "kafka.buffer.memory": str(64 << 20),
    }
    return Side("kafka", bootstrap, reading, writing)


def orders(spark: SparkSession, count: int, slices: int) -> DataFrame:
    """Rows for a topic: about 100 bytes of JSON each."""
    return spark.range(0, count, 1, slices).selectExpr(
        "cast(id as string) key",
        """concat('{"id":', id, ',"customer":"c-', id % 10007, '","amount":', (id % 99991) / 100,
           ',"region":"r-', id % 17, '","at":', 1790000000000 + id, '}') value""",
    )


def passed_through(rows: DataFrame) -> DataFrame:
    return rows.select("key", "value")


def through_json(rows: DataFrame) -> DataFrame:
    """Parsed, changed and written as JSON again."""
    parsed = rows.selectExpr("key", f"from_json(cast(value as string), '{ORDER}') o")
    return parsed.selectExpr(
        "key",
        "to_json(struct(o.id, o.customer, o.amount * 1.19 as gross, upper(o.region) as region, o.at)) value",
    )
