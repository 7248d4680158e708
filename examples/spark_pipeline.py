"""A Spark stream from topic to topic: reads all available orders and adds a tax, exactly once.

Client: odradek.spark. Its sink writes exactly once; the official connector writes at least once. Run it again
with the same checkpoint: it reads only new orders.
"""

import argparse

from pyspark.sql import SparkSession

import odradek.spark  # noqa: F401 Java and the format "odradek"
from odradek.client import BlockingClient

ORDERS = [(b"ada", b"42"), (b"bob", b"7"), (b"ada", b"8")]


def feed(bootstrap: str, source: str) -> None:
    with BlockingClient(bootstrap) as client, client.producer() as producer:
        for customer, amount in ORDERS:
            producer.send(source, amount, key=customer)
        producer.flush()
    print(f"produced {len(ORDERS)} orders to {source}")


def run(bootstrap: str, source: str, sink: str, checkpoint: str) -> None:
    builder = SparkSession.builder.appName("orders").config("spark.ui.enabled", "false")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    cluster = {"kafka.bootstrap.servers": bootstrap}
    orders = spark.readStream.format("odradek").options(
        **cluster, subscribe=source, startingOffsets="earliest"
    )
    query = (
        orders.load()
        .selectExpr("key", "cast(cast(cast(value as string) as double) * 1.2 as decimal(9, 2)) taxed")
        .selectExpr("key", "cast(taxed as string) value")
        .writeStream.format("odradek")
        .options(**cluster, topic=sink, checkpointLocation=checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    taxed = spark.read.format("odradek").options(**cluster, subscribe=sink).load()
    for row in taxed.selectExpr("string(key) customer", "string(value) amount").orderBy("amount").collect():
        print(f"{sink}: {row.customer} = {row.amount}")
    spark.stop()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("-b", "--bootstrap", default="localhost:9092")
    options.add_argument("--source", default="orders-in")
    options.add_argument("--sink", default="orders-taxed")
    options.add_argument("--checkpoint", default="spark-checkpoint", help="where Spark keeps its progress")
    given = options.parse_args()
    feed(given.bootstrap, given.source)
    run(given.bootstrap, given.source, given.sink, given.checkpoint)
