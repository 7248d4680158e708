"""`odradek pipeline`: Spark pipelines from a file. spark/pipelines/pipeline_spec.py describes the file."""

import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from odradek.cli.declaring import Argument, Noun, option
from odradek.cli.errors import Failure, Usage, usage
from odradek.cli.options import command
from odradek.cli.session import Session
from odradek.cli.terminal.output import Table, columns
from odradek.cli.terminal.times import format_time, seconds

if TYPE_CHECKING:
    from odradek.spark.pipelines.pipeline import Pipeline, Told
    from odradek.spark.pipelines.pipeline_spec import PipelineSpec

app = Noun()

_LOOK_S = 0.5
_PLAIN_EVERY_S = 10.0
"""Without a terminal: how often a sink has a line."""

_Place = Annotated[Path, Argument(metavar="[FILE|FOLDER]", help="A pipeline.toml, or the folder it is in.")]


@command(app, "init", connects=False)
def init(
    session: Session,
    folder: Annotated[Path, Argument(metavar="FOLDER", help="Folder to create; it must not exist yet.")],
    sql: Annotated[bool, option("--sql", help="Write the transform in SQL instead of Python.")] = False,
) -> None:
    """Write a runnable example: it reads orders, enriches and writes them, exactly once."""
    from odradek.cli.pipeline_example import files

    if folder.exists():
        raise Usage(f"{folder} already exists")
    rows = []
    folder.mkdir(parents=True)
    for name, (text, what) in files(folder.name, sql).items():
        (folder / name).write_text(text)
        rows.append([str(folder / name), what])
    session.table(Table(columns("FILE WHAT"), rows))
    session.terminal.note(
        f"next: odradek start, odradek topic create orders --partitions 2, odradek pipeline run {folder}"
    )


@command(app, "run", connects=False)
def run(session: Session, place: _Place = Path(".")) -> None:
    """Run a pipeline until it is done or interrupted.

    An interrupt abandons the current batch; no records are lost. On a terminal, a line shows rate, lag
    and the last committed batch.
    """
    spec = _load(place)
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    session.terminal.note(f"{spec.name}: starting Spark")
    pipeline = _started(spec)
    try:
        _follow(session, pipeline, stopping)
    finally:
        if stopping.is_set():
            session.terminal.note(f"{spec.name}: stopping")
        pipeline.stop()
    failure = pipeline.failure()
    if failure is not None:
        from odradek.spark.session import cause

        raise Failure(f"{spec.name} failed: {cause(failure)}", "next: odradek pipeline run, which resumes it")
    session.table(_told_table(pipeline.told()))


def _load(place: Path) -> "PipelineSpec":
    from odradek.spark.pipelines.pipeline_spec import load

    with usage():
        return load(place)


def _started(spec: "PipelineSpec") -> "Pipeline":
    try:
        from odradek.spark.pipelines.pipeline import Pipeline
        from odradek.spark.session import make_session
    except ImportError as e:
        raise Failure(
            f"Spark is not installed: {e}", "next: pip install '.[spark]' in a checkout of odradek"
        ) from e
    with usage():
        settings = {"spark.master": "local[*]", "spark.log.level": "ERROR", **spec.spark}
        pipeline = Pipeline(spec, make_session(spec.name, settings))
        pipeline.start()
        return pipeline


def _follow(session: Session, pipeline: "Pipeline", stopping: threading.Event) -> None:
    shown: dict[str, int] = {}
    due: dict[str, float] = {}
    while pipeline.is_active and pipeline.failure() is None and not stopping.wait(_LOOK_S):
        now = time.monotonic()
        for told in pipeline.told():
            if shown.get(told.sink) == told.batch:
                continue
            if session.terminal.is_live:
                session.terminal.redraw(_line(told))
            elif now >= due.get(told.sink, now):
                session.terminal.note(_line(told))
                due[told.sink] = now + _PLAIN_EVERY_S
            else:
                continue
            shown[told.sink] = told.batch


def _line(told: "Told") -> str:
    lag = "-" if told.lag is None else f"{told.lag:,}"
    return (
        f"{told.sink}: batch {told.batch} committed, {told.rows:,} rows, {told.rows_per_second:,.0f} rows/s, "
        f"{told.batch_ms:,} ms, lag {lag}"
    )


def _told_table(told: "list[Told]") -> Table:
    return Table(columns("SINK BATCH# ROWS# ROWS/S# BATCH-MS# LAG#"), [_told_row(t) for t in told])


def _told_row(told: "Told") -> list[Any]:
    return [told.sink, told.batch, told.rows, round(told.rows_per_second), told.batch_ms, told.lag]


@command(app, "status", connects=False)
def status(session: Session, place: _Place = Path(".")) -> None:
    """Show the progress of a pipeline: its last decision, participants and lag.

    VISIBLE-AFTER is about the batch before: the time from its decision until readers saw all of it.
    """
    from odradek.spark.pipelines.pipeline_status import read_status

    spec = _load(place)
    rows = []
    with _connected(session, spec) as cluster, cluster.failing(spec.name):
        for found in read_status(cluster.client, spec):
            decided = None if found.decided_ms is None else format_time(found.decided_ms, session.zone)
            counts = (found.rows, found.participants, found.open, found.lag)
            rows.append([*found[:4], decided, *counts, seconds(found.visible_ms)])
    heads = "SINK TOPIC QUERY BATCH# DECIDED ROWS# PARTICIPANTS# OPEN# LAG# VISIBLE-AFTER"
    session.table(Table(columns(heads), rows))


def _connected(session: Session, spec: "PipelineSpec") -> Any:
    from contextlib import closing

    from odradek.cli.requests.cluster_access import ClusterAccess

    servers = spec.cluster["kafka.bootstrap.servers"]
    return closing(ClusterAccess({**session.properties, "bootstrap.servers": servers}))
