"""The folder of a demo: a pipeline as a user would write it, and what a killed driver has left there."""

import json
from pathlib import Path
from typing import NamedTuple

from odradek.spark.demo.orders import ENRICHED, ORDERS, REVENUE

NAME = "demo"
SINKS = {"enriched": ENRICHED, "revenue": REVENUE}
"""Sinks of the pipeline, and their topics."""

PARTITIONS = {ORDERS: 2, ENRICHED: 2, REVENUE: 1}

SCRATCH = "scratch"
"""What Spark and its Java write beside the checkpoint, and leave behind when they are killed."""

_SPEC = """\
# The pipeline of `odradek demo`.
name = "{name}"
checkpoint = "checkpoint"
trigger = "300ms"
transform = "transform.py"

[cluster]
"kafka.bootstrap.servers" = "{bootstrap}"

[sources.orders]
subscribe = "{orders}"
startingOffsets = "earliest"
maxOffsetsPerTrigger = {per_batch}

[sinks.enriched]
topic = "{enriched}"

[sinks.revenue]
topic = "{revenue}"

[spark]
"spark.master" = "local[2]"
"spark.sql.shuffle.partitions" = 2
"spark.sql.session.timeZone" = "UTC"
"spark.local.dir" = {scratch}
"spark.sql.warehouse.dir" = {scratch}
"""


def write_pipeline(folder: Path, bootstrap: str, per_batch: int) -> None:
    spec = _SPEC.format(
        name=NAME,
        bootstrap=bootstrap,
        per_batch=per_batch,
        orders=ORDERS,
        enriched=ENRICHED,
        revenue=REVENUE,
        scratch=json.dumps(str(folder / SCRATCH)),
    )
    (folder / "pipeline.toml").write_text(spec)
    (folder / "transform.py").write_text(Path(__file__).with_name("transform.py").read_text())


class Reached(NamedTuple):
    """How far a query is, as Spark has noted it."""

    begun: int | None
    """The last batch whose offsets are fixed."""
    completed: int | None

    @property
    def under_way(self) -> bool:
        return self.begun is not None and self.begun != self.completed


def read_reached(folder: Path, sink: str) -> Reached:
    checkpoint = folder / "checkpoint" / sink
    return Reached(_last(checkpoint / "offsets"), _last(checkpoint / "commits"))


def _last(log: Path) -> int | None:
    return max((int(entry.name) for entry in log.glob("[0-9]*") if entry.name.isdigit()), default=None)


def read_query_id(folder: Path, sink: str) -> str | None:
    try:
        return str(json.loads((folder / "checkpoint" / sink / "metadata").read_text())["id"])
    except (OSError, ValueError):
        return None
