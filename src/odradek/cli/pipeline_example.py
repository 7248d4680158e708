"""The example that `odradek pipeline init` writes."""

_SPEC = """\
# A pipeline: what it reads, what it makes of it, where that goes. odradek pipeline run
name = "{name}"
checkpoint = "checkpoint"        # how far it is; delete it, and the pipeline begins anew
trigger = "1s"                   # or "available-now": all that is there, then stop
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
"""Orders, enriched. One argument for every source; a DataFrame, or one for every sink by its name."""

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
-- Orders, enriched. Every source is a view; the columns are those of a record.
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
        transform: (_SQL if sql else _PYTHON, "what becomes of a record"),
    }
