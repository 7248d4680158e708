"""A Spark driver in a process of its own: a job with an idempotencyKey copies the topic in to out, then a
query copies it to each, in foreachBatch. It is started again after every kill.
"""

from pathlib import Path

from pyspark.sql import DataFrame

from tests.spark.program import program


def main() -> None:
    with program() as (spark, given):
        options = {"kafka.bootstrap.servers": given.bootstrap}
        checkpoint = str(Path(given.folder) / "each")

        def write(frame: DataFrame, **more: str) -> None:
            rows = frame.select("key", "value").write.format("barred")
            rows.options(**options, **more).mode("append").save()

        write(
            spark.read.format("barred").options(**options, subscribe="in").load(),
            topic="out",
            idempotencyKey="once",
        )
        stream = spark.readStream.format("barred").options(**options, subscribe="in")
        query = (
            stream.options(startingOffsets="earliest", maxOffsetsPerTrigger="10000")
            .load()
            .writeStream.foreachBatch(
                lambda frame, _: write(frame, topic="each", checkpointLocation=checkpoint)
            )
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()


if __name__ == "__main__":
    main()
