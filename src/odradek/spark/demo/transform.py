"""The transform of the demo. The demo runs this file with `odradek pipeline run`, as you would run yours."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from odradek.spark.demo.orders import PRODUCTS, REGIONS, WATERMARK_MS, WINDOW_MS

_ORDER = "order LONG, customer STRING, country STRING, product STRING, quantity INT, at_ms LONG"


def transform(spark: SparkSession, orders: DataFrame) -> dict[str, DataFrame]:
    """A result for every sink of pipeline.toml."""
    name = _lookup({product: name for product, (name, _) in PRODUCTS.items()}, "product")
    price_cents = _lookup({product: price for product, (_, price) in PRODUCTS.items()}, "product")
    enriched = (
        orders.select("key", f.from_json(f.col("value").cast("string"), _ORDER).alias("order"))
        .select("key", "order.*")
        .withColumns({"region": _lookup(REGIONS, "country"), "name": name, "price_cents": price_cents})
        .withColumn("total_cents", f.col("price_cents") * f.col("quantity"))
    )
    return {"enriched": _as_records(enriched), "revenue": _sum(enriched)}


def _lookup(table: Mapping[str, str | int], column: str) -> Column:
    pairs = [f.lit(part) for pair in table.items() for part in pair]
    return f.create_map(*pairs)[f.col(column)]


def _as_records(enriched: DataFrame) -> DataFrame:
    fields = [name for name in enriched.columns if name != "key"]
    return enriched.select("key", f.to_json(f.struct(*fields)).alias("value"))


def _sum(enriched: DataFrame) -> DataFrame:
    """Revenue by window and region, written once: when no order can come any more that belongs to it."""
    window = f.window("at", f"{WINDOW_MS} milliseconds")
    sums = (
        enriched.withColumn("at", f.timestamp_millis("at_ms"))
        .withWatermark("at", f"{WATERMARK_MS} milliseconds")
        .groupBy(window.alias("window"), "region")
        .agg(f.count("*").alias("orders"), f.sum("total_cents").alias("cents"))
    )
    start_ms = f.unix_millis("window.start")
    value = f.to_json(f.struct(start_ms.alias("start_ms"), "region", "orders", "cents"))
    return sums.select(f.col("region").alias("key"), value.alias("value"))
