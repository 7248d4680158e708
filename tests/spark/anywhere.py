"""A program that does not know where it runs: a stream from topic to topic, then a batch, exactly once.

Where it runs is said from outside, as for any program of Spark: by properties, or SPARK_REMOTE.
"""

import json
import sys

from pyspark.sql import SparkSession

import odradek.spark  # noqa: F401


def main(bootstrap: str, source: str, sink: str, again: str, checkpoint: str) -> None:
    spark = SparkSession.builder.getOrCreate()
    cluster = {"kafka.bootstrap.servers": bootstrap}
    limits = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "1000", "minRecordsPerPartition": "1"}
    query = (
        spark.readStream.format("odradek")
        .options(**cluster, **limits, subscribe=source)
        .load()
        .select("key", "value")
        .writeStream.format("odradek")
        .options(**cluster, topic=sink, checkpointLocation=checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    copied = spark.read.format("odradek").options(**cluster, subscribe=sink).load()
    copied.select("key", "value").write.format("odradek").options(**cluster, topic=again).mode(
        "append"
    ).save()
    place = {"session": type(spark).__module__, "master": spark.conf.get("spark.master")}
    print(json.dumps({**place, "query": query.id}))


if __name__ == "__main__":
    main(*sys.argv[1:])
