"""`odradek txn`: transactional ids, open transactions, and ending them. txn_admin.py has the requests."""

from typing import TYPE_CHECKING, Annotated, Any

from odradek.cli.complete import complete_topics, complete_transactions
from odradek.cli.declaring import Argument, Noun, option
from odradek.cli.errors import Failure, FoundProblem, Usage, raise_all, usage
from odradek.cli.options import DryRun, Partitions, Topics, Watch, Yes, command
from odradek.cli.session import Session
from odradek.cli.terminal.output import Section, Table, columns
from odradek.cli.terminal.times import format_time, parse_duration_ms, seconds

if TYPE_CHECKING:
    from odradek.cli.requests.txn_admin import Described
    from odradek.cli.requests.txn_hanging import Hanging

app = Noun()

Ids = Annotated[
    list[str],
    Argument(metavar="ID", help="Transactional ids.", autocompletion=complete_transactions),
]
OlderThan = Annotated[
    str | None,
    option(
        "--older-than", metavar="DURATION", help="Only transactions open at least this long, for example 5m."
    ),
]


@command(app, "list", "ls")
def list_ids(
    session: Session,
    states: Annotated[
        list[str] | None,
        option("--state", metavar="STATE", help="Only in this state, such as Ongoing."),
    ] = None,
    producer_ids: Annotated[
        list[int] | None, option("--producer-id", metavar="ID", help="Only this producer id.")
    ] = None,
    older_than: OlderThan = None,
    pattern: Annotated[str | None, option("--pattern", metavar="REGEX", help="Only ids that match.")] = None,
    watch: Watch = None,
) -> None:
    """List the transactional ids of the cluster."""
    from odradek.cli.requests.txn_admin import list_transactions

    with usage():
        age_ms = None if older_than is None else parse_duration_ms(older_than)

    def show() -> None:
        found = list_transactions(session.cluster, states or (), producer_ids or (), age_ms, pattern)
        session.table(Table(columns("TRANSACTIONAL-ID STATE PRODUCER-ID# COORDINATOR#"), found))

    session.watch(watch, show)


@command(app, "describe")
def describe(session: Session, ids: Ids) -> None:
    """Show state, timeout and partitions of transactional ids."""
    from odradek.cli.requests.txn_admin import describe_transaction

    documents = []
    failures: list[Failure] = []
    for transactional_id in dict.fromkeys(ids):
        try:
            documents.append(_document(session, describe_transaction(session.cluster, transactional_id)))
        except Failure as e:
            failures.append(e)
    if documents:
        session.documents(documents)
    raise_all(failures)


def _document(session: Session, found: "Described") -> list[Section]:
    from odradek.cli.requests.txn_admin import ENDED

    is_open = found.start_ms is not None and found.state not in ENDED
    age_ms = session.now_ms() - (found.start_ms or 0) if is_open else None
    facts = {
        "transactional_id": found.transactional_id,
        "state": found.state,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "coordinator": found.coordinator,
        "timeout": seconds(found.timeout_ms),
        "started": format_time(found.start_ms, session.zone),
        "age": seconds(age_ms),
    }
    rows = [[*tp] for tp in found.partitions]
    return [Section("transaction", facts), Section("partitions", Table(columns("TOPIC PARTITION#"), rows))]


@command(app, "producers")
def producers(session: Session, names: Topics, partitions: Partitions = None, watch: Watch = None) -> None:
    """Show the producers that the leaders of a topic's partitions remember."""
    from odradek.cli.requests.txn_admin import active_producers

    def show() -> None:
        topics, failures = session.cluster.find_topics(names)
        chosen = [tp for topic in topics for tp in session.choose_partitions(topic, partitions)]
        rows = [
            [
                *producer.tp,
                producer.producer_id,
                producer.producer_epoch,
                producer.last_sequence,
                format_time(producer.last_timestamp_ms, session.zone),
                producer.start_offset,
                producer.coordinator_epoch,
            ]
            for producer in active_producers(session.cluster, topics, chosen)
        ]
        heads = "TOPIC PARTITION# PRODUCER-ID# EPOCH# LAST-SEQUENCE# LAST-TIMESTAMP TXN-START#"
        session.done(Table(columns(f"{heads} COORDINATOR-EPOCH#+"), rows), failures)

    session.watch(watch, show)


@command(app, "timeline")
def timeline(
    session: Session,
    transactional_id: Annotated[
        str,
        Argument(metavar="ID", help="A transactional id.", autocompletion=complete_transactions),
    ],
    count: Annotated[
        int, option("-n", "--count", metavar="COUNT", help="How many of the last transactions to show.")
    ] = 5,
) -> None:
    """Show when transactions of an id began, wrote and ended, on the coordinator and on each partition.

    Shows only what compaction has left in the coordinator's log.
    """
    from odradek.cli.requests.timeline import draw
    from odradek.cli.requests.txn_history import history

    if count < 1:
        raise Usage(f"-n {count}: at least 1")
    events = history(session.cluster, transactional_id, count)
    if session.format in ("text", "wide"):
        session.terminal.data(draw(events) + "\n")
    first_ms = events[0].time_ms
    rows = [
        [
            format_time(event.time_ms, session.zone),
            seconds(event.time_ms - first_ms),
            event.what,
            None if event.tp is None else str(event.tp),
            event.offset,
            event.records,
            event.producer_id,
            event.producer_epoch,
        ]
        for event in events
    ]
    heads = "TIME AFTER# EVENT PARTITION OFFSET# RECORDS# PRODUCER-ID# EPOCH#"
    session.table(Table(columns(heads), rows))


_HANGING = (
    "TOPIC PARTITION# PRODUCER-ID# EPOCH# TXN-START# LAST-TIMESTAMP SILENT-FOR OF "
    "TRANSACTIONAL-ID+ COORDINATOR-EPOCH#+"
)


@command(app, "hanging")
def hanging(
    session: Session,
    names: Annotated[
        list[str] | None,
        Argument(metavar="TOPIC", help="Names of topics. [default: all]", autocompletion=complete_topics),
    ] = None,
    older_than: Annotated[
        str,
        option(
            "--older-than",
            metavar="DURATION",
            help="Only if silent at least this long. Use transaction.max.timeout.ms.",
        ),
    ] = "15m",
) -> None:
    """Find open transactions that no coordinator will end.

    Finds transactions that no coordinator knows, and those of two-phase commit, which have no timeout: of a
    killed Spark query, for example. OF names their owner. Exits with 3 if there are any.
    """
    from odradek.cli.requests.txn_hanging import find_hanging

    with usage():
        age_ms = parse_duration_ms(older_than)
    failures: list[Failure] = []
    topics = session.cluster.topics()
    if names:
        topics, failures = session.cluster.find_topics(names)
    now_ms = session.now_ms()
    found = find_hanging(session.cluster, topics, age_ms, now_ms)
    session.done(Table(columns(_HANGING), [_hanging_row(session, p, now_ms) for p in found]), failures)
    if found:
        raise FoundProblem(
            f"{len(found)} hanging transaction{'s' * (len(found) > 1)}, the first: {found[0].of()}",
            f"next: {found[0].next()}",
        )


def _hanging_row(session: Session, found: "Hanging", now_ms: int) -> list[Any]:
    producer = found.producer
    last_ms = producer.last_timestamp_ms
    return [
        *producer.tp,
        producer.producer_id,
        producer.producer_epoch,
        producer.start_offset,
        format_time(last_ms, session.zone),
        seconds(None if last_ms is None else now_ms - last_ms),
        found.of(),
        None if found.owner is None else found.owner.transactional_id,
        producer.coordinator_epoch,
    ]


@command(app, "commit")
def commit(
    session: Session,
    transactional_id: Annotated[
        str, Argument(metavar="ID", help="A transactional id.", autocompletion=complete_transactions)
    ],
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Commit an open transaction that a Spark query has decided to commit, if the query will not run again.

    Refuses any other transaction.
    """
    from odradek.cli.requests.txn_admin import commit_decided, decided_rows, describe_transaction

    found = describe_transaction(session.cluster, transactional_id)
    rows = decided_rows(session.cluster, found) if found.state == "Ongoing" else 0
    if not rows:
        raise Failure(
            f"{transactional_id} is {found.state}: not open, or no Spark query has decided to commit it",
            "next: odradek txn hanging --older-than 0s",
        )
    heads = "TRANSACTIONAL-ID BEFORE AFTER PRODUCER-ID# EPOCH# ROWS#"
    row = [transactional_id, found.state, "Committed", found.producer_id, found.producer_epoch, rows]
    table = Table(columns(heads), [row])
    if session.confirm(table, f"Commit the transaction of {transactional_id}?", yes=yes, dry_run=dry_run):
        commit_decided(session.cluster, found)
        session.table(table)


@command(app, "abort")
def abort(
    session: Session,
    transactional_id: Annotated[
        str | None,
        Argument(
            metavar="ID", help="A transactional id.", autocompletion=complete_transactions, show_default=False
        ),
    ] = None,
    topic: Annotated[
        str | None,
        option("-t", "--topic", metavar="TOPIC", help="Topic of a hanging transaction.", show_default=False),
    ] = None,
    partition: Annotated[
        int | None, option("-p", "--partition", metavar="PARTITION", help="Its partition.")
    ] = None,
    start_offset: Annotated[
        int | None,
        option("--start-offset", metavar="OFFSET", help="Its first offset, if the partition has several."),
    ] = None,
    force: Annotated[
        bool,
        option("--force", help="Abort even if Spark has decided to commit it: its records are lost."),
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Abort an open transaction by its id, or a hanging one on its partition.

    By id, the coordinator aborts it and fences its producer. It is refused if a Spark query has decided to
    commit the transaction: the next run of the query does so. On a partition, an abort marker is written
    without the coordinator: for transactions that `txn hanging` finds.
    """
    if (transactional_id is None) == (topic is None or partition is None):
        raise Usage("name a transactional id, or a partition with -t TOPIC -p PARTITION")
    if transactional_id is not None:
        _abort_by_id(session, transactional_id, force, yes, dry_run)
    else:
        assert topic is not None and partition is not None
        _abort_on_partition(session, topic, partition, start_offset, yes, dry_run)


def _abort_by_id(session: Session, transactional_id: str, force: bool, yes: bool, dry_run: bool) -> None:
    from odradek.cli.requests.txn_admin import decided_rows, describe_transaction, fence

    found = describe_transaction(session.cluster, transactional_id)
    if found.state != "Ongoing":
        raise Failure(
            f"transactional id {transactional_id} has no open transaction: it is {found.state}",
            "next: odradek txn list --state Ongoing",
        )
    rows = decided_rows(session.cluster, found)
    if rows and not force:
        raise Failure(
            f"the Spark query of {transactional_id} has decided to commit it: {rows} records would be lost",
            f"next: start the query again, which commits it, or odradek txn commit {transactional_id}, "
            "or add --force",
        )
    heads = "TRANSACTIONAL-ID BEFORE AFTER PRODUCER-ID# EPOCH# PARTITIONS#"
    row = [
        transactional_id,
        found.state,
        f"Aborted, {rows} decided records lost" if rows else "Aborted",
        found.producer_id,
        found.producer_epoch,
        len(found.partitions),
    ]
    table = Table(columns(heads), [row])
    if session.confirm(
        table,
        f"Abort the transaction of {transactional_id} and fence its producer?",
        yes=yes,
        dry_run=dry_run,
    ):
        fence(session.cluster, found)
        session.table(table)


def _abort_on_partition(
    session: Session, topic: str, partition: int, start_offset: int | None, yes: bool, dry_run: bool
) -> None:
    from odradek.cli.requests.txn_admin import active_producers, is_hanging, owners, write_abort

    info = session.cluster.topic(topic)
    (tp,) = session.choose_partitions(info, str(partition))
    open_ = [p for p in active_producers(session.cluster, [info], [tp]) if p.start_offset is not None]
    chosen = [p for p in open_ if start_offset is None or p.start_offset == start_offset]
    if not chosen:
        at = "" if start_offset is None else f" that starts at offset {start_offset}"
        raise Failure(f"partition {tp} has no open transaction{at}", f"next: odradek txn producers {topic}")
    if len(chosen) > 1:
        starts = ", ".join(str(p.start_offset) for p in chosen)
        raise Usage(
            f"partition {tp} has {len(chosen)} open transactions, starting at {starts}", "add --start-offset"
        )
    (producer,) = chosen
    owner = owners(session.cluster, [producer.producer_id]).get(producer.producer_id)
    if owner is not None and not is_hanging(producer, owner):
        session.terminal.note(
            f"it belongs to {owner.transactional_id}, which is {owner.state}; to end it on all partitions: "
            f"odradek txn abort {owner.transactional_id}"
        )
    heads = "TOPIC PARTITION# PRODUCER-ID# EPOCH# TXN-START# BEFORE AFTER"
    row = [*tp, producer.producer_id, producer.producer_epoch, producer.start_offset, "open", "aborted"]
    table = Table(columns(heads), [row])
    if session.confirm(table, f"Write an abort marker to {tp}?", yes=yes, dry_run=dry_run):
        write_abort(session.cluster, [info], producer)
        session.table(table)
