"""A session that has the official Kafka connector beside ours: each writes what the other reads.

Prints one line of JSON: what was counted.
"""

import json
import sys
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.spark.support import packaged_java, session


def main(bootstrap: str, jars: str, folder: str) -> None:
    with packaged_java(Path(folder)):
        spark = session("local[2]", Path(folder), {"spark.jars": jars})
        cluster = {"kafka.bootstrap.servers": bootstrap}
        committed = {**cluster, "kafka.isolation.level": "read_committed"}
        rows = spark.range(0, 5_000, 1, 2).selectExpr("cast(id as string) key", "cast(id as string) value")
        rows.write.format("kafka").options(**cluster, topic="a").save()

        def copy(reader: str, writer: str, source: str, sink: str) -> None:
            options = {"subscribe": source, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "2000"}
            stream = spark.readStream.format(reader).options(**committed, **options).load()
            (
                stream.select("key", "value")
                .writeStream.format(writer)
                .options(**cluster, topic=sink, checkpointLocation=f"{folder}/{source}-{sink}")
                .trigger(availableNow=True)
                .start()
                .awaitTermination()
            )

        copy("odradek", "odradek", "a", "b")  # exactly once
        copy("kafka", "odradek", "b", "c")  # our transactions read by theirs, theirs by our sink
        copy("odradek", "kafka", "c", "d")

        def counted(frame: DataFrame) -> list[int]:
            return [frame.count(), frame.select("value").distinct().count()]

        found = {
            f"{reader} {topic}": counted(
                spark.read.format(reader).options(**committed, subscribe=topic).load()
            )
            for reader in ("odradek", "kafka")
            for topic in "abcd"
        }
        ours, theirs = (
            spark.read.format(reader).options(**committed, subscribe="a", includeHeaders="true").load()
            for reader in ("odradek", "kafka")
        )
        found["schemas"] = [ours.schema.simpleString(), theirs.schema.simpleString()]  # type: ignore[assignment]
        found["differing rows"] = [ours.exceptAll(theirs).count(), theirs.exceptAll(ours).count()]
        for option in ("endingOffsets", "endingOffsetsByTimestamp", "kafka.interceptor.classes"):
            value = '{"a": {"0": 5, "1": 5}}'
            found[f"refused {option}"] = [  # type: ignore[assignment]
                refuses(
                    spark, reader, {**cluster, "subscribe": "a", option: value}, f"{folder}/{reader}-{option}"
                )
                for reader in ("odradek", "kafka")
            ]
        print(json.dumps(found))
        spark.stop()


def refuses(spark: SparkSession, reader: str, options: dict[str, str], checkpoint: str) -> bool:
    """Whether a stream with these options does not run."""
    try:
        stream = spark.readStream.format(reader).options(**options).load().writeStream.format("noop")
        query = stream.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination()
    except PySparkException:
        return True
    return False


if __name__ == "__main__":
    main(*sys.argv[1:])
