"""A Spark driver in a process of its own: copies one topic into another, exactly once, until it is done.

It is started again after every kill, and goes on from its checkpoint.
"""

import argparse
from pathlib import Path

from tests.spark.barred import BarredSource
from tests.spark.support import packaged_java, session


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("bootstrap", "source", "sink", "folder", "master"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--per-batch", default="2000")
    parser.add_argument("--set", action="append", default=[])
    given = parser.parse_args()
    with packaged_java():
        settings = dict(setting.split("=", 1) for setting in given.set)
        spark = session(given.master, Path(given.folder), settings)
        spark.dataSource.register(BarredSource)
        options = {"kafka.bootstrap.servers": given.bootstrap}
        query = (
            spark.readStream.format("barred")
            .options(**options, subscribe=given.source, startingOffsets="earliest")
            .option("maxOffsetsPerTrigger", given.per_batch)
            .option("minRecordsPerPartition", 1)  # several tasks, however small a batch is
            .load()
            .select("key", "value")
            .writeStream.format("barred")
            .options(**options, topic=given.sink)
            .option("checkpointLocation", str(Path(given.folder) / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        spark.stop()


if __name__ == "__main__":
    main()
