"""Record by record, for pipelines that pass on what they read: is every id in the output as often as it is in
the input? Spark groups and joins; only what differs comes to the driver."""

import json
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from odradek.spark.options import Connecting
from odradek.spark.proving.violations import DUPLICATE, LOST, Violation
from odradek.spark.source.planning import OffsetRange, to_json

CHECK = "rows"
_SHOWN = 20


def check_by(text: str) -> str:
    """What `--by` takes; ValueError for anything else."""
    if text in ("key", "value", "none") or (text.startswith("header:") and len(text) > len("header:")):
        return text
    raise ValueError(f"--by {text}: one of key, value, header:NAME, none")


def compare_rows(
    spark: SparkSession,
    connecting: Connecting,
    source: Sequence[OffsetRange],
    sink: Sequence[OffsetRange],
    by: str,
) -> list[Violation]:
    """The first that differ, by their place in the input, and one for all others."""
    before = _counted(spark, connecting, source, by).alias("a")
    after = _counted(spark, connecting, sink, by).alias("b")
    differing = (
        before.join(after, f.col("a.id").eqNullSafe(f.col("b.id")), "left")
        .select(
            f.col("a.id").alias("id"),
            f.col("a.n").alias("expected"),
            f.coalesce(f.col("b.n"), f.lit(0)).alias("found"),
            f.col("a.places").alias("read_at"),
            f.col("b.places").alias("written_at"),
        )
        .where("expected != found")
        .persist()
    )
    try:
        shown = differing.orderBy("read_at").limit(_SHOWN).collect()
        violations = [_violation(row) for row in shown]
        if len(shown) == _SHOWN:
            violations += _others(differing, violations)
        return violations
    finally:
        differing.unpersist()


def _counted(
    spark: SparkSession, connecting: Connecting, ranges: Sequence[OffsetRange], by: str
) -> DataFrame:
    starts = to_json({r.tp: r.start for r in ranges}, None)
    ends = to_json({r.tp: max(r.start, r.end) for r in ranges}, None)
    options = {
        "kafka.bootstrap.servers": connecting.bootstrap,
        "kafka.client.id": connecting.client_id,
        "subscribe": ranges[0].tp.topic,
        "startingOffsets": json.dumps(starts),
        "endingOffsets": json.dumps(ends),
        "includeHeaders": "true" if by.startswith("header:") else "false",
    }
    frame = spark.read.format("odradek").options(**options).load()
    place = f.struct("topic", "partition", "offset")
    counted = frame.select(_id(by).alias("id"), place.alias("place")).groupBy("id")
    places = f.array(f.min("place"), f.max("place")).alias("places")
    return counted.agg(f.count("*").alias("n"), places)


def _id(by: str) -> Column:
    if not by.startswith("header:"):
        return f.col(by)
    name = by.removeprefix("header:")
    return f.get(f.filter("headers", lambda header: header["key"] == f.lit(name)), f.lit(0))["value"]


def _violation(row: Row) -> Violation:
    identity, expected, found, read_at, written_at = row
    name = _shown_id(identity)
    where = f"at {_shown_places(written_at)}" if written_at else "nowhere in the output"
    place = _shown_places(read_at)
    told = (
        f"{name} is {_times(expected)} in the input (at {place}) and {_times(found)} in the output ({where})"
    )
    kind = DUPLICATE if found > expected else LOST
    return Violation(CHECK, kind, abs(found - expected), None, None, place, told)


def _others(differing: DataFrame, shown: Sequence[Violation]) -> list[Violation]:
    (sums,) = differing.selectExpr(
        "sum(greatest(found - expected, 0))", "sum(greatest(expected - found, 0))"
    ).collect()
    rest = []
    for kind, count in zip((DUPLICATE, LOST), sums, strict=True):
        left = int(count) - sum(v.amount for v in shown if v.kind == kind)
        if left:
            rest.append(Violation(CHECK, kind, left, None, None, "", f"{left} more records of other ids"))
    return rest


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times" if count else "not"


def _shown_id(identity: bytes | None) -> str:
    if identity is None:
        return "no id"
    try:
        text = bytes(identity).decode()
        return (
            f"id {text}" if text.isprintable() and len(text) <= 100 else f"id 0x{bytes(identity)[:50].hex()}"
        )
    except UnicodeDecodeError:
        return f"id 0x{bytes(identity)[:50].hex()}"


def _shown_places(places: Sequence[Sequence[object]]) -> str:
    told = [f"{topic}-{partition} offset {offset}" for topic, partition, offset in places]
    return " and ".join(dict.fromkeys(told))
