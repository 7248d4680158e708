"""`odradek prove`: was everything processed exactly once? odradek.spark.proving checks it."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from odradek.cli.complete import complete_topics
from odradek.cli.declaring import Noun, option
from odradek.cli.errors import Failure, FoundProblem, usage
from odradek.cli.options import command
from odradek.cli.session import Session
from odradek.cli.terminal.output import Section, Table, columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from odradek.spark.options import Connecting
    from odradek.spark.proving.job import Proof, Question

app = Noun()

_VIOLATIONS = columns("CHECK KIND COUNT# STREAM BATCH# PLACE VIOLATION")
_LOOK_S = 0.2


@command(app, "eos")
def eos(
    session: Session,
    source: Annotated[
        str,
        option("--from", metavar="TOPIC", help="The topic that was read.", autocompletion=complete_topics),
    ],
    sink: Annotated[
        str,
        option("--to", metavar="TOPIC", help="The topic that was written.", autocompletion=complete_topics),
    ],
    by: Annotated[
        str,
        option(
            "--by",
            metavar="ID",
            help="Also compare records by key, value or header:NAME, if the query passes it through.",
        ),
    ] = "none",
    stream: Annotated[
        str | None,
        option(
            "--stream",
            metavar="QUERY[/SINK]",
            help="Only this query, if several read the one topic and write the other.",
            show_default=False,
        ),
    ] = None,
    master: Annotated[str, option("--master", metavar="URL", help="Where Spark runs the job.")] = "local[*]",
) -> None:
    """Check that every offset of one topic is in exactly one committed transaction of another.

    Covers what Spark's exactly-once sink wrote. The decided batches must cover the input without gaps or
    overlaps. The committed transactions in the output must be those that the decisions name, with all their
    records. Exits with 3 if there is a finding. Needs pyspark.
    """
    require_spark()
    from odradek.spark.options import Connecting
    from odradek.spark.proving.job import Question
    from odradek.spark.proving.rows import check_by

    with usage():
        check_by(by)
    timeout_ms = session.cluster.timeout_ms
    connecting = Connecting(
        session.properties["bootstrap.servers"],
        client_id=session.properties["client.id"],
        request_timeout_ms=timeout_ms,
        api_timeout_ms=max(timeout_ms, 60_000),
    )
    proof = _run(session, connecting, Question(source, sink, by, stream), master)
    _show(session, source, sink, proof)


def require_spark() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("pyspark", "pyarrow") if find_spec(name) is None]
    if missing:
        raise Failure(
            f"{missing[0]} is not installed", "next: pip install '.[spark]' in a checkout of odradek"
        )


def _run(session: Session, connecting: "Connecting", question: "Question", master: str) -> "Proof":
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from odradek.spark.proving.job import NothingToProveError, prove
    from odradek.spark.session import cause

    cluster = session.cluster
    for topic in (question.source, question.sink):
        cluster.topic(topic)
    with _sessions(session, master) as spark:
        try:
            with cluster.failing(f"topics {question.source} and {question.sink}"):
                return prove(cluster.client, connecting, spark, question)
        except NothingToProveError as e:
            hint = "only format('odradek') with a checkpoint and delivery=exactly-once records decisions"
            raise Failure(str(e), hint) from e
        except (PySparkException, Py4JError) as e:
            raise Failure(f"the Spark job failed: {cause(e)}") from e


@contextmanager
def _sessions(session: Session, master: str) -> "Iterator[Callable[[], SparkSession]]":
    """Spark when it is asked for: the session that this process has, or one that ends with the command."""
    from pyspark.sql import SparkSession

    made: list[SparkSession] = []

    def spark() -> "SparkSession":
        active = SparkSession.getActiveSession()
        if active is not None:
            return active
        session.terminal.note("starting Spark")
        made.append(_start_spark(master))
        return made[0]

    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(session, done), daemon=True)
    watcher.start()
    try:
        yield spark
    finally:
        done.set()
        watcher.join()
        for started in made:
            started.stop()


def _start_spark(master: str) -> "SparkSession":
    from odradek.spark.session import make_session

    # What the Java process says on stderr, from its first line on, is not for who runs this command.
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        return make_session("odradek prove eos", {"spark.master": master})
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _watch(session: Session, done: threading.Event) -> None:
    """Tell how far Spark is, while it takes long."""
    from pyspark.sql import SparkSession

    shown = 0
    with session.progress("proving", "tasks") as progress:
        while not done.wait(_LOOK_S):
            active = SparkSession._instantiatedSession
            completed = _completed(active) if active is not None else 0
            progress.advance(max(0, completed - shown))
            shown = max(shown, completed)


def _completed(spark: Any) -> int:
    try:
        tracker = spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return sum(stage.numCompletedTasks for stage in stages if stage is not None)
    except Exception:  # the session is on its way in or out, and this is only for show
        return 0


def _show(session: Session, source: str, sink: str, proof: "Proof") -> None:
    from odradek.spark.proving.violations import DUPLICATE, LOST, total

    violations, judged = proof.violations, proof.judged
    duplicates, lost = total(violations, DUPLICATE), total(violations, LOST)
    facts = {
        "from": source,
        "to": sink,
        "streams": proof.streams,
        "other_streams": proof.other_streams,
        "first_batch": proof.first_batch,
        "batches": proof.batches,
        "inputs": proof.inputs,
        "behind": proof.behind,
        "outputs": judged.outputs,
        "transactions": judged.transactions,
        "unfinished": judged.unfinished,
        "other_records": judged.other_records,
        "duplicates": duplicates,
        "lost": lost,
        "first_violation": violations[0].told if violations else None,
        "proven": not violations,
    }
    rows = [list(violation) for violation in violations]
    session.sections([Section("proof", facts), Section("violations", Table(_VIOLATIONS, rows))])
    if violations:
        more = f", and {len(violations) - 1} more" if len(violations) > 1 else ""
        raise FoundProblem(f"{violations[0].told}{more}")
    session.terminal.note(
        f"proven: {proof.inputs:,} offsets of {source} in {proof.batches:,} batches, "
        f"{judged.outputs:,} records in {sink}, duplicates: 0, lost: 0"
    )
