"""The example that `odradek pipeline init` writes."""

_SPEC = """\
# A pipeline: sources, a transform, sinks. Run it: odradek pipeline run
name = "{name}"
checkpoint = "checkpoint"        # its progress; delete it to start from the beginning
trigger = "1s"                   # or "available-now": process what is there, then stop
transform = "{transform}"

[cluster]
"kafka.bootstrap.servers" = "localhost:9092"

[sources.orders]                 # options of format("odradek"), see docs/spark.md
subscribe = "orders"
startingOffsets = "earliest"
maxOffsetsPerTrigger = 100000

[sinks.enriched]
topic = "orders-enriched"

[spark]
"spark.sql.shuffle.partitions" = 2
"""

_PYTHON = '''\
"""Enrich orders. Takes a DataFrame for each source; returns one, or a dict of one for each sink."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f


def transform(spark: SparkSession, orders: DataFrame) -> DataFrame:
    amount = f.col("value").cast("string").cast("double")
    order = f.struct(
        f.col("key").cast("string").alias("customer"),
        amount.alias("amount"),
        (amount * 0.2).alias("tax"),
        f.col("partition").alias("source_partition"),
        f.col("offset").alias("source_offset"),
    )
    return orders.select("key", f.to_json(order).alias("value"))
'''

_SQL = """\
-- Enrich orders. Each source is a view with the columns of a record.
SELECT
  key,
  to_json(struct(
    cast(key AS string) AS customer,
    cast(cast(value AS string) AS double) AS amount,
    cast(cast(value AS string) AS double) * 0.2 AS tax,
    partition AS source_partition,
    offset AS source_offset
  )) AS value
FROM orders
"""


def files(name: str, sql: bool) -> dict[str, tuple[str, str]]:
    """Names, texts, and what they are."""
    transform = "transform.sql" if sql else "transform.py"
    clean = (
        "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in name).strip("-")
        or "pipeline"
    )
    clean = clean if clean[0].isalpha() else f"p-{clean}"
    return {
        "pipeline.toml": (_SPEC.format(name=clean, transform=transform), "sources, sinks, trigger, settings"),
        transform: (_SQL if sql else _PYTHON, "the transform of records"),
    }
