"""`odradek group`: consumer groups, their lag, and moving their offsets. group_admin.py has the requests."""

import threading
from typing import TYPE_CHECKING, Annotated, Any

from odradek.cli.complete import complete_groups
from odradek.cli.declaring import Argument, Noun, option
from odradek.cli.errors import Failure, Usage, raise_all, usage
from odradek.cli.options import DryRun, Group, Groups, Partitions, Watch, Yes, command
from odradek.cli.session import Session
from odradek.cli.terminal.output import Section, Table, columns
from odradek.cli.terminal.times import parse_duration_ms
from odradek.core.types import TopicPartition

if TYPE_CHECKING:
    from odradek.cli.requests.cluster_access import FoundOffset

app = Noun()

AllGroups = Annotated[
    list[str] | None,
    Argument(metavar="GROUP", help="Names of groups. [default: all]", autocompletion=complete_groups),
]

_LAG_COLUMNS = "TOPIC PARTITION# COMMITTED# END# LAG#"


@command(app, "list", "ls")
def list_groups(session: Session, watch: Watch = None) -> None:
    """List the groups of the cluster."""

    def show() -> None:
        rows = [
            [
                group.group_id,
                group.group_state or None,
                group.group_type.lower() or None,
                group.protocol_type or None,
                node_id,
            ]
            for node_id, group in session.cluster.listed_groups()
        ]
        session.table(Table(columns("GROUP STATE TYPE PROTOCOL-TYPE+ COORDINATOR#"), rows))

    session.watch(watch, show)


@command(app, "describe")
def describe(session: Session, names: Groups) -> None:
    """Show state, members and offsets of groups."""
    from odradek.cli.requests.group_admin import describe_group, group_offsets

    documents = []
    failures: list[Failure] = []
    for name in names:
        try:
            group = describe_group(session.cluster, name)
            offsets = group_offsets(session.cluster, name, group.members, session.isolation_level)
        except Failure as e:
            failures.append(e)
            continue
        lags = [offset.lag for offset in offsets if offset.lag is not None]
        facts = {
            "group": group.group,
            "type": group.type,
            "state": group.state,
            "assignor": group.assignor,
            "coordinator": group.coordinator,
            "member_count": len(group.members),
            "total_lag": sum(lags) if lags else None,
        }
        members = [
            [member.member_id, member.client_id, member.host, [str(tp) for tp in member.assignment]]
            for member in group.members
        ]
        rows = [[*offset.tp, offset.committed, offset.end, offset.lag] for offset in offsets]
        documents.append(
            [
                Section("group", facts),
                Section("members", Table(columns("MEMBER-ID CLIENT-ID HOST ASSIGNMENT"), members)),
                Section("offsets", Table(columns(_LAG_COLUMNS), rows)),
            ]
        )
    if documents:
        session.documents(documents)
    raise_all(failures)


@command(app, "lag")
def lag(
    session: Session,
    names: AllGroups = None,
    sample: Annotated[
        str | None,
        option(
            "--sample",
            metavar="DURATION",
            help="Measure twice, DURATION apart, to estimate the ETA; --watch does so anyway.",
            show_default=False,
        ),
    ] = None,
    watch: Watch = None,
) -> None:
    """Show the lag of groups, partition by partition.

    UNREAD counts the records that a read_committed reader will get: no markers, no aborted or compacted
    records. TIME is the age of the first of them. ETA is the time until they are read, at the current rate.
    """
    from odradek.cli.requests.group_admin import describe_group, group_offsets
    from odradek.cli.requests.lag import LagMeter

    with usage():
        pause_s = None if sample is None else parse_duration_ms(sample) / 1000
    meter = LagMeter(session.cluster)

    def look() -> tuple[list[list[Any]], list[Failure]]:
        meter.new_moment()
        rows = []
        failures: list[Failure] = []
        for name in names or session.cluster.group_names():
            try:
                group = describe_group(session.cluster, name)
                offsets = group_offsets(session.cluster, name, group.members, session.isolation_level)
                behind = meter.measure(name, offsets, session.now_ms())
            except Failure as e:
                failures.append(e)
                continue
            owners = {tp: member for member in group.members for tp in member.assignment}
            for offset in offsets:
                owner = owners.get(offset.tp)
                rows.append(
                    [
                        name,
                        *offset.tp,
                        offset.committed,
                        offset.end,
                        offset.lag,
                        *behind.get(offset.tp, (None, None, None)),
                        owner.member_id if owner else None,
                    ]
                )
        return rows, failures

    def show() -> None:
        rows, failures = look()
        session.done(Table(columns(f"GROUP {_LAG_COLUMNS} UNREAD# TIME# ETA# MEMBER-ID+"), rows), failures)

    if pause_s is not None:
        look()
        threading.Event().wait(pause_s)
    session.watch(watch, show)


@command(app, "members")
def members(session: Session, name: Group, watch: Watch = None) -> None:
    """Show the members of a group and what each of them reads."""
    from odradek.cli.requests.group_admin import describe_group

    def show() -> None:
        group = describe_group(session.cluster, name)
        rows = [
            [
                member.member_id,
                member.instance_id,
                member.client_id,
                member.host,
                len(member.assignment),
                [str(tp) for tp in member.assignment],
            ]
            for member in group.members
        ]
        session.table(Table(columns("MEMBER-ID INSTANCE-ID+ CLIENT-ID HOST PARTITIONS# ASSIGNMENT+"), rows))

    session.watch(watch, show)


@command(app, "seek")
def seek(
    session: Session,
    name: Group,
    offset: Annotated[
        str,
        option("-o", "--offset", metavar="OFFSET", help="New offset: start, end, N, +N, -N, @TIME."),
    ],
    topics: Annotated[
        list[str] | None,
        option(
            "-t", "--topic", metavar="TOPIC", help="Only these topics. [default: all with committed offsets]"
        ),
    ] = None,
    partitions: Partitions = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Move the committed offsets of a group.

    The group must have no members. It is created if it does not exist.
    """
    from odradek.cli.requests.group_admin import commit_offsets, committed_offsets

    wanted = session.offsets(offset)
    if not wanted.is_single:
        raise Usage(f"-o {offset}: one offset, not a range")
    _refuse_members(session, name)
    before = committed_offsets(session.cluster, name)
    names = topics or list(dict.fromkeys(tp.topic for tp in before))
    if not names:
        raise Failure(f"group {name} has no committed offsets", "name the topics: -t TOPIC")
    found, failures = session.cluster.find_topics(names)
    raise_all(failures)
    chosen = [tp for topic in found for tp in session.choose_partitions(topic, partitions)]
    if not topics:
        chosen = [tp for tp in chosen if tp in before]
    places = session.cluster.resolve(found, chosen, wanted.first)
    places = {tp: _within_log(session, tp, place) for tp, place in places.items()}
    rows = [[*tp, before.get(tp), place.offset, place.end] for tp, place in places.items()]
    table = Table(columns("TOPIC PARTITION# BEFORE# AFTER# END#"), rows)
    if session.confirm(table, f"Move the offsets of {name}?", yes=yes, dry_run=dry_run):
        refused = commit_offsets(session.cluster, name, {tp: place.offset for tp, place in places.items()})
        kept = [row for tp, row in zip(places, rows, strict=True) if tp not in refused]
        session.done(table._replace(rows=kept), refused.values())


def _within_log(session: Session, tp: TopicPartition, place: "FoundOffset") -> "FoundOffset":
    """The nearest offset in the log, with a note: consumers would reset an offset outside the log by their
    auto.offset.reset."""
    nearest = min(max(place.offset, place.start), place.end)
    if nearest != place.offset:
        side = "beyond the end" if nearest < place.offset else "before the start"
        session.terminal.note(f"{tp}: {place.offset} is {side} of the log; using {nearest}")
    return place._replace(offset=nearest)


def _refuse_members(session: Session, name: str) -> None:
    from odradek.cli.requests.group_admin import describe_group

    if name not in session.cluster.group_names():
        return
    count = len(describe_group(session.cluster, name).members)
    if count:
        raise Failure(
            f"group {name}: NON_EMPTY_GROUP: it has {count} member{'s' * (count > 1)}",
            f"stop them first; next: odradek group members {name}",
        )


@command(app, "delete")
def delete(session: Session, names: Groups, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Delete groups with their committed offsets."""
    from odradek.cli.requests.group_admin import committed_offsets, delete_groups, describe_group

    rows: list[list[Any]] = []
    missing: list[Failure] = []
    for name in dict.fromkeys(names):
        try:
            group = describe_group(session.cluster, name)
        except Failure as e:
            missing.append(e)
            continue
        offsets = committed_offsets(session.cluster, name)
        rows.append([name, group.state, len(group.members), len(offsets)])
    if not rows:
        raise_all(missing)
    table = Table(columns("GROUP STATE MEMBERS# OFFSETS#"), rows)
    question = f"Delete {len(rows)} group{'s' * (len(rows) > 1)} with all offsets?"
    if session.confirm(table, question, yes=yes, dry_run=dry_run):
        failures = delete_groups(session.cluster, [row[0] for row in rows])
        deleted = [row for row in rows if row[0] not in failures]
        session.done(table._replace(rows=deleted), [*missing, *failures.values()])
    raise_all(missing)
