"""A Spark driver in a process of its own: copies the topic in to out, exactly once, until it is done.

It is started again after every kill, and continues from its checkpoint.
"""

from pathlib import Path

from tests.spark.program import program


def main() -> None:
    with program("--shuffled") as (spark, given):
        options = {"kafka.bootstrap.servers": given.bootstrap}
        rows = (
            spark.readStream.format("barred")
            .options(**options, subscribe="in", startingOffsets="earliest", maxOffsetsPerTrigger="2000")
            .option("minRecordsPerPartition", "1")  # several tasks, however small a batch is
            .load()
            .select("key", "value")
        )
        query = (
            (rows.repartition(4, "key") if given.shuffled else rows)
            .writeStream.format("barred")
            .options(**options, topic="out", checkpointLocation=str(Path(given.folder) / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()


if __name__ == "__main__":
    main()
