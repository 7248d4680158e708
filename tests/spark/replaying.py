"""A program for any place: it writes in foreachBatch, fails after it has written, and is run again.

It names the stream and the batch itself: through Spark Connect, and in threads, Spark does not tell.
"""

import sys

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import odradek.spark  # noqa: F401


def main(bootstrap: str, source: str, sink: str, checkpoint: str) -> None:
    spark = SparkSession.builder.getOrCreate()
    cluster = {"kafka.bootstrap.servers": bootstrap}

    def run(*, fails: bool) -> None:
        def write(frame: DataFrame, batch: int) -> None:
            (
                frame.select("value")
                .write.format("odradek")
                .options(**cluster, topic=sink, checkpointLocation=checkpoint)
                .options(idempotencyKey=f"copy of {source}", batchId=batch)
                .mode("append")
                .save()
            )
            if fails:
                raise RuntimeError("on purpose")

        rows = spark.readStream.format("odradek").options(**cluster, subscribe=source)
        query = (
            rows.options(startingOffsets="earliest", maxOffsetsPerTrigger="100")
            .load()
            .writeStream.foreachBatch(write)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    with pytest.raises(PySparkException, match="on purpose"):
        run(fails=True)
    run(fails=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
