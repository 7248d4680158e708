"""A Spark driver in a process of its own: three queries with state, at the same time, until they are done.

Clicks and orders come with the times at which they happened, as timestamps of their records.
"""

import time
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.functions import expr
from pyspark.sql.streaming.query import StreamingQuery

from tests.spark.program import program

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def counted(clicks: DataFrame, orders: DataFrame) -> DataFrame:
    """Clicks of every user in every ten seconds."""
    windows = clicks.selectExpr("window(at, '10 seconds') span", "user").groupBy("span", "user").count()
    return windows.selectExpr("user key", "concat_ws(' ', user, unix_millis(span.start), count) value")


def joined(clicks: DataFrame, orders: DataFrame) -> DataFrame:
    """Every click with its order of the next five seconds, if there is one."""
    ordered = orders.selectExpr("id ordered", "at ordered_at")
    soon = "id = ordered and ordered_at between at and at + interval 5 seconds"
    both = clicks.join(ordered, on=expr(soon), how="left")
    values = "concat_ws(' ', id, unix_millis(at), coalesce(string(unix_millis(ordered_at)), '-')) value"
    return both.selectExpr("id key", values)


def deduplicated(clicks: DataFrame, orders: DataFrame) -> DataFrame:
    """Every click once, of those that were sent twice."""
    return clicks.dropDuplicatesWithinWatermark(["id"]).selectExpr("user key", "id value")


QUERIES = {query.__name__: query for query in (counted, joined, deduplicated)}


def main() -> None:
    with program() as (spark, given):
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
        options = {"kafka.bootstrap.servers": given.bootstrap}

        def read(topic: str, per_batch: int) -> DataFrame:
            limits = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": str(per_batch)}
            events = spark.readStream.format("barred").options(**options, **limits, subscribe=topic).load()
            columns = ("cast(key as string) user", "cast(value as string) id", "timestamp at")
            return events.selectExpr(*columns).withWatermark("at", "10 seconds")

        # Both last for three batches: after a restart the watermark waits until each source has read on.
        clicks, orders = read("clicks", 1_000), read("orders", 400)
        running = []
        for name, query in QUERIES.items():
            writer = query(clicks, orders).writeStream.format("barred").trigger(availableNow=True)
            writer = writer.options(**options, topic=name, checkpointLocation=str(Path(given.folder) / name))
            running.append(writer.start())
            _wait_for_sources(running[-1])
        for started in running:
            started.awaitTermination()


def _wait_for_sources(query: StreamingQuery) -> None:
    """Spark waits ten seconds for a source's process: few cores start one query after another."""
    while query.isActive and query.status["message"].startswith("Initializing"):
        time.sleep(0.05)


if __name__ == "__main__":
    main()
