"""`odradek consume`: records of topics to stdout. record_format.py writes them."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, NamedTuple

from odradek.cli.declaring import Noun, option
from odradek.cli.errors import Failure, Usage, usage
from odradek.cli.options import OFFSET_FORMS, Format, Partitions, Topics, command
from odradek.cli.records.offsets import At, RequestedRange
from odradek.cli.records.record_format import (
    ConsumedRecord,
    asks_for_outcome,
    check_record_format,
    record_writer,
)
from odradek.cli.session import Session
from odradek.core.types import TopicPartition

if TYPE_CHECKING:
    from odradek.cli.requests.cluster_access import TopicInfo

_FORMAT = Format("text, wide, json, jsonl, csv, or a template such as '%k\\t%v\\n'.", check_record_format)
_POLL_MS = 500
_POLL_RECORDS = 1000
_ISOLATION_LEVELS = {"read_uncommitted": 0, "read_committed": 1}
_EVERYTHING = _ISOLATION_LEVELS["read_uncommitted"]


root = Noun()


@command(root, "consume", output_format=_FORMAT)
def consume(
    session: Session,
    names: Topics,
    offsets: Annotated[
        str, option("-o", "--offsets", metavar="OFFSETS", help=f"What to read: {OFFSET_FORMS}.")
    ] = "start",
    regex: Annotated[
        bool,
        option("--regex", help="Take TOPIC as a regular expression; it must match the whole name."),
    ] = False,
    partitions: Partitions = None,
    count: Annotated[
        int | None,
        option("-n", "--count", min=1, metavar="COUNT", help="Stop after COUNT records.", show_default=False),
    ] = None,
    grep: Annotated[
        str | None,
        option(
            "-G",
            "--grep",
            metavar="REGEX",
            help="Only records whose key or value matches.",
            show_default=False,
        ),
    ] = None,
    follow: Annotated[
        bool,
        option("--follow/--until-end", help="Wait for new records, or stop at the current end."),
    ] = False,
    isolation: Annotated[
        str | None,
        option(
            "--isolation",
            metavar="LEVEL",
            help="read_committed or read_uncommitted. [default: isolation.level]",
            show_default=False,
        ),
    ] = None,
    outcome: Annotated[
        str | None,
        option(
            "--outcome",
            metavar="LIST",
            help="Show the outcome of each record, and only these: committed, aborted, open, or all.",
            show_default=False,
        ),
    ] = None,
    group: Annotated[
        str | None,
        option(
            "-g",
            "--group",
            metavar="GROUP",
            help="Read as a member of this group and commit its offsets.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Read records from topics."""
    wanted = session.offsets(offsets)
    level = isolation or session.properties["isolation.level"]
    if level not in _ISOLATION_LEVELS:
        raise Usage(f"--isolation {level}: one of {', '.join(_ISOLATION_LEVELS)}")
    with usage():
        tells = outcome is not None or asks_for_outcome(session.format)
    shown = _outcomes(outcome) if tells else ()
    if tells and (follow or group is not None or isolation is not None):
        raise Usage("--outcome covers only records already in the log; drop --follow, -g, --isolation")
    if regex:
        names = _matching(session, names)
    printer = _Printer(session, grep, count, with_outcome=tells)
    try:
        with session.cluster.failing(f"topic {', '.join(names)}", names[0]):
            if group is not None:
                if partitions is not None:
                    raise Usage("-p cannot be combined with -g: the group assigns the partitions")
                _read_as_member(session, names, group, wanted, follow, _ISOLATION_LEVELS[level], printer)
            elif tells:
                ranges = _find_ranges(session, names, wanted, partitions, follow, _EVERYTHING)
                _read_outcomes(session, ranges, shown, printer)
            else:
                ranges = _find_ranges(session, names, wanted, partitions, follow, _ISOLATION_LEVELS[level])
                _read_partitions(session, ranges, follow, _ISOLATION_LEVELS[level], printer)
    except KeyboardInterrupt:
        if not follow:
            raise
    printer.close()


def _matching(session: Session, expressions: list[str]) -> list[str]:
    """The topics there are now that an expression matches, none of the cluster's own."""
    try:
        patterns = [re.compile(expression) for expression in expressions]
    except re.error as e:
        raise Usage(f"--regex {e.pattern!s}: {e}") from e
    found = [
        topic.name
        for topic in session.cluster.topics()
        if not topic.is_internal and any(pattern.fullmatch(topic.name) for pattern in patterns)
    ]
    if not found:
        raise Failure(f"no topic matches {' or '.join(expressions)}", "next: odradek topic list")
    return found


def _outcomes(given: str | None) -> tuple[str, ...]:
    """Which records to show, by what became of them."""
    from odradek.cli.requests.outcomes import OUTCOMES

    wanted = tuple((given or "all").split(","))
    if wanted == ("all",):
        return OUTCOMES
    for name in wanted:
        if name not in OUTCOMES:
            raise Usage(f"--outcome {name}: some of {', '.join(OUTCOMES)}, or all")
    return wanted


class _Printer:
    """Writes what is asked for, and knows when it was enough."""

    def __init__(
        self, session: Session, grep: str | None, count: int | None, *, with_outcome: bool = False
    ) -> None:
        with usage():
            self._writer = record_writer(
                session.format,
                session.zone,
                with_outcome=with_outcome,
                escaped=session.terminal.escapes_data,
            )
            try:
                self._pattern = None if grep is None else re.compile(grep.encode())
            except re.error as e:
                raise ValueError(f"-G {grep}: {e}") from e
        self._count = count
        self._written = 0
        self._terminal = session.terminal
        self._terminal.data_bytes(self._writer.before)

    @property
    def has_enough(self) -> bool:
        return self._count is not None and self._written >= self._count

    @property
    def room(self) -> int:
        """How many records may be asked for, so that none is taken that will not be shown."""
        if self._count is None or self._pattern is not None:
            return _POLL_RECORDS
        return min(_POLL_RECORDS, self._count - self._written)

    def write(self, records: Iterable[ConsumedRecord]) -> None:
        out: list[bytes] = []
        for record in records:
            if self.has_enough:
                break
            if self._pattern is not None and not any(
                self._pattern.search(data) for data in (record.key, record.value) if data is not None
            ):
                continue
            if self._written:
                out.append(self._writer.between)
            out.append(self._writer.write(record))
            self._written += 1
        if out:
            self._terminal.data_bytes(b"".join(out))

    def close(self) -> None:
        self._terminal.data_bytes(self._writer.after)


class _Ranges(NamedTuple):
    """Of each partition that was chosen: where to begin, before what to stop, and where it ends now."""

    topics: "list[TopicInfo]"
    first: dict[TopicPartition, int]
    stop: dict[TopicPartition, int | None]
    ends: dict[TopicPartition, int]

    def __str__(self) -> str:
        return ", ".join(topic.name for topic in self.topics)


def _read_partitions(
    session: Session, ranges: _Ranges, follow: bool, isolation_level: int, printer: _Printer
) -> None:
    """Read ranges of partitions, each until its stop; without a stop and with `follow`, for ever."""
    cluster = session.cluster
    first, stop = ranges.first, ranges.stop
    left = {tp: offset for tp, offset in first.items() if _is_before(offset, stop[tp])}
    total = None if follow else sum((stop[tp] or 0) - offset for tp, offset in left.items())
    with (
        cluster.client.consumer(isolation_level=isolation_level, auto_offset_reset="earliest") as consumer,
        session.progress(f"reading {ranges}", "offsets", total) as progress,
    ):
        link = _Link(session)
        consumer.assign(left)
        while left and not printer.has_enough:
            records = consumer.poll(_POLL_MS, printer.room)
            link.look(consumer.lost)
            printer.write(
                ConsumedRecord(
                    r.topic, r.partition, r.offset, r.leader_epoch, r.timestamp_ms, r.key, r.value, r.headers
                )
                for r in records
                if _is_before(r.offset, stop[TopicPartition(r.topic, r.partition)])
            )
            if not session.terminal.is_screen:
                progress.advance(len(records))
            positions = {tp: consumer.position(tp) or offset for tp, offset in left.items()}
            still = {tp: position for tp, position in positions.items() if _is_before(position, stop[tp])}
            if len(still) < len(left):
                consumer.assign(still)
            left = still


def _find_ranges(
    session: Session,
    names: list[str],
    wanted: RequestedRange,
    partitions: str | None,
    follow: bool,
    isolation_level: int,
) -> _Ranges:
    cluster = session.cluster
    topics, failures = cluster.find_topics(names)
    if failures:
        raise failures[0]
    chosen = [tp for topic in topics for tp in session.choose_partitions(topic, partitions)]
    bounds = cluster.bounds(topics, isolation_level)
    first = {
        tp: max(place.offset, bounds[tp][0])
        for tp, place in cluster.resolve(topics, chosen, wanted.first).items()
    }
    stop: dict[TopicPartition, int | None] = dict.fromkeys(chosen)
    if wanted.stop is not None:
        stop = {tp: place.offset for tp, place in cluster.resolve(topics, chosen, wanted.stop).items()}
    if not follow:
        stop = {tp: min(bounds[tp][1] if end is None else end, bounds[tp][1]) for tp, end in stop.items()}
    return _Ranges(topics, first, stop, {tp: bounds[tp][1] for tp in chosen})


def _read_outcomes(session: Session, ranges: _Ranges, shown: tuple[str, ...], printer: _Printer) -> None:
    """Read ranges of partitions, one partition after the other, with what became of every record."""
    from odradek.cli.requests.cluster_access import LATEST, READ_COMMITTED
    from odradek.cli.requests.outcomes import ReadRange, records_with_outcomes
    from odradek.cli.requests.txn_admin import list_transactions

    cluster = session.cluster
    topics, first, stop, ends = ranges
    by_name = {topic.name: topic for topic in topics}
    stable = cluster.list_offsets(topics, list(first), LATEST, READ_COMMITTED)
    total = sum(max(0, (stop[tp] or 0) - start) for tp, start in first.items())
    ids = {listed.producer_id: listed.transactional_id for listed in list_transactions(cluster)}
    with session.progress(f"reading {ranges}", "offsets", total) as progress:
        for tp, start in first.items():
            place = ReadRange(start, stop[tp] or 0, stable[tp] or 0, ends[tp])
            for batch, outcome, records in records_with_outcomes(cluster, by_name[tp.topic], tp, place):
                if printer.has_enough:
                    return
                transactional_id = ids.get(batch.producer_id) if batch.is_transactional else None
                if outcome in shown:
                    printer.write(
                        ConsumedRecord(
                            tp.topic,
                            tp.partition,
                            r.offset,
                            batch.partition_leader_epoch,
                            batch.max_timestamp if batch.timestamp_type else r.timestamp,
                            r.key,
                            r.value,
                            r.headers,
                            outcome,
                            transactional_id,
                        )
                        for r in records
                    )
                if not session.terminal.is_screen:
                    progress.advance(len(records))


class _Link:
    """Says once that the cluster is lost, and once that it is back."""

    def __init__(self, session: Session) -> None:
        self._terminal = session.terminal
        self._servers = session.properties["bootstrap.servers"]
        self._is_lost = False

    def look(self, lost: OSError | None) -> None:
        if lost is not None and not self._is_lost:
            self._terminal.note(f"lost {self._servers}: {lost.strerror or lost}; retrying")
        elif lost is None and self._is_lost:
            self._terminal.note(f"connected to {self._servers} again")
        self._is_lost = lost is not None


def _is_before(offset: int, stop: int | None) -> bool:
    return stop is None or offset < stop


def _read_as_member(
    session: Session,
    names: list[str],
    group: str,
    wanted: RequestedRange,
    follow: bool,
    isolation_level: int,
    printer: _Printer,
) -> None:
    """Read what the group gives this member; without `follow` until it has reached the end of it."""
    if wanted.stop is not None or wanted.first not in ((At.START, 0), (At.END, 0)):
        raise Usage("-o with -g must be start or end: it applies where the group has no committed offset")
    reset = "earliest" if wanted.first.at is At.START else "latest"
    topics, failures = session.cluster.find_topics(names)
    if failures:
        raise failures[0]
    options = {"group_id": group, "auto_commit": True, "auto_offset_reset": reset}
    with session.cluster.client.consumer(isolation_level=isolation_level, **options) as consumer:
        consumer.subscribe(names)
        ends = {tp: end for tp, (_, end) in session.cluster.bounds(topics, isolation_level).items()}
        link = _Link(session)
        while not printer.has_enough:
            records = consumer.poll(_POLL_MS, printer.room)
            link.look(consumer.lost)
            printer.write(
                ConsumedRecord(
                    r.topic, r.partition, r.offset, r.leader_epoch, r.timestamp_ms, r.key, r.value, r.headers
                )
                for r in records
            )
            assignment = consumer.assignment
            if follow or records or not assignment:
                continue
            positions = [(consumer.position(tp), ends.get(tp, 0)) for tp in assignment]
            if all(position is not None and position >= end for position, end in positions):
                return
