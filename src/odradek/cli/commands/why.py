"""`odradek why`: why readers are stuck, and why replicas are not in sync. requests/stuck.py finds the
transactions that hold readers, requests/under_replicated.py what replicas do."""

import threading
from typing import TYPE_CHECKING, Annotated

from odradek.cli.complete import complete_groups_and_topics, complete_topics
from odradek.cli.declaring import Argument, Noun
from odradek.cli.errors import Failure, FoundProblem
from odradek.cli.options import command
from odradek.cli.session import Session
from odradek.cli.terminal.output import Section, Table, columns, human_bytes
from odradek.cli.terminal.times import format_duration, format_time, seconds
from odradek.core.types import GROUP_METADATA_TOPIC, TopicPartition, coordinator_partition

if TYPE_CHECKING:
    from odradek.cli.requests.cluster_access import TopicInfo
    from odradek.cli.requests.replica_lag import LaggingReplica
    from odradek.cli.requests.stuck import Held

app = Noun()

_PATIENCE_S = 0.3
"""A transaction that is open now and then is how things should be; one that stays is looked at."""


@command(app, "stuck")
def stuck(
    session: Session,
    name: Annotated[
        str,
        Argument(
            metavar="GROUP|TOPIC", help="A group, or a topic.", autocompletion=complete_groups_and_topics
        ),
    ],
) -> None:
    """Show which transaction keeps read_committed readers of a group or topic waiting.

    Exits with 3 if there is one.
    """
    from odradek.cli.requests.stuck import find_held

    topics, partitions, is_group = _partitions(session, name)
    held = find_held(session.cluster, topics, partitions)
    if held:
        threading.Event().wait(_PATIENCE_S)
        before = {(h.tp, h.producer.producer_id, h.last_stable_offset) for h in held}
        held = [
            h
            for h in find_held(session.cluster, topics, partitions)
            if (h.tp, h.producer.producer_id, h.last_stable_offset) in before
        ]
    session.documents([_document(session, found) for found in held])
    what = "group" if is_group else "topic"
    if not held:
        session.terminal.note(f"no transaction keeps readers of {what} {name} waiting")
        return
    raise FoundProblem(*_verdict(session, held[0], len(held)))


def _partitions(session: Session, name: str) -> "tuple[list[TopicInfo], list[TopicPartition], bool]":
    """Of a group those it has offsets for or reads, and its offsets' own; of a topic all."""
    from odradek.cli.requests.group_admin import committed_offsets, describe_group

    cluster = session.cluster
    if name not in cluster.group_names():
        topics, failures = cluster.find_topics([name])
        if failures:
            raise Failure(
                f"there is neither a group nor a topic {name}", "next: odradek group list; odradek topic list"
            )
        return topics, topics[0].topic_partitions, False
    wanted = set(committed_offsets(cluster, name))
    wanted |= {tp for member in describe_group(cluster, name).members for tp in member.assignment}
    topics, _ = cluster.find_topics(sorted({tp.topic for tp in wanted} | {GROUP_METADATA_TOPIC}))
    there = {tp for topic in topics for tp in topic.topic_partitions}
    offsets = [topic for topic in topics if topic.name == GROUP_METADATA_TOPIC]
    # Offsets committed in a transaction that is open keep a member from finding where to begin.
    for topic in offsets:
        wanted.add(TopicPartition(topic.name, coordinator_partition(name, len(topic.partitions))))
    return topics, sorted(wanted & there), True


def _document(session: Session, held: "Held") -> list[Section]:
    since_ms, now_ms = held.open_since_ms(), session.now_ms()
    owner = held.owner
    facts = {
        "partition": str(held.tp),
        "last_stable_offset": held.last_stable_offset,
        "end": held.end,
        "waiting_offsets": held.end - held.last_stable_offset,
        "waiting_groups": held.groups,
        "transactional_id": None if owner is None else owner.transactional_id,
        "state": "hanging" if held.is_hanging or owner is None else owner.state,
        "producer_id": held.producer.producer_id,
        "producer_epoch": held.producer.producer_epoch,
        "since": format_time(since_ms, session.zone),
        "age": seconds(None if since_ms is None else now_ms - since_ms),
        "timeout": None if owner is None or held.is_hanging else seconds(owner.timeout_ms),
        "next": held.next_command(),
    }
    return [Section("held", facts)]


def _verdict(session: Session, held: "Held", count: int) -> tuple[str, str]:
    since_ms = held.open_since_ms()
    age = "" if since_ms is None else f" for {format_duration(max(0, session.now_ms() - since_ms))}"
    others = "" if count == 1 else f", and {count - 1} more"
    if held.owner is None or held.is_hanging:
        who = f"a transaction of producer {held.producer.producer_id} hangs, silent{age}"
    else:
        who = f"{held.owner.transactional_id} has a transaction open{age}"
    message = f"{held.tp} is held at offset {held.last_stable_offset}: {who}{others}"
    return message, f"next: {held.next_command()}"


@command(app, "under-replicated")
def under_replicated(
    session: Session,
    name: Annotated[
        str | None,
        Argument(metavar="TOPIC", help="Only this topic. [default: all]", autocompletion=complete_topics),
    ] = None,
) -> None:
    """Show which replicas are not in sync: what they do, how far they are behind, when they will be in sync.

    Looks twice, a second apart: that gives the rates. SINCE is when the first record was written that the
    replica lacks, or when its broker was seen last. The records of a broker that is down are estimated: what
    the leader has been given since then. Exits with 3 if there is such a replica.
    """
    from odradek.cli.requests.under_replicated import find_lagging

    found = find_lagging(session.properties, session.cluster, name, session.now_ms())
    session.table(Table(columns(_LAGGING), [_lagging_row(session, replica) for replica in found]))
    if not found:
        of = "" if name is None else f" of topic {name}"
        session.terminal.note(f"all replicas{of} are in sync")
        return
    worst = max(found, key=lambda replica: replica.records or 0)
    others = "" if len(found) == 1 else f"; {len(found) - 1} more not in sync"
    raise FoundProblem(f"{_behind(session, worst)}: {worst.cause}{others}", f"next: {worst.next}")


_LAGGING = (
    "TOPIC PARTITION# REPLICA# DOING RECORDS# ESTIMATED+ BYTES% BEHIND SINCE RECORDS-PER-S# BYTES-PER-S%+ "
    "CATCH-UP CAUSE+ NEXT+"
)


def _lagging_row(session: Session, replica: "LaggingReplica") -> list[object]:
    since_ms = replica.since_ms
    return [
        replica.tp.topic,
        replica.tp.partition,
        replica.broker_id,
        replica.doing.value,
        replica.records,
        replica.is_estimate,
        replica.bytes,
        seconds(None if since_ms is None else session.now_ms() - since_ms),
        format_time(since_ms, session.zone),
        None if replica.records_per_s is None else round(replica.records_per_s, 1),
        None if replica.bytes_per_s is None else round(replica.bytes_per_s),
        seconds(None if replica.catch_up_s is None else replica.catch_up_s * 1000),
        replica.cause,
        replica.next,
    ]


def _behind(session: Session, replica: "LaggingReplica") -> str:
    sizes = []
    if replica.records is not None:
        about = "about " if replica.is_estimate else ""
        sizes.append(f"{about}{replica.records} record{'s' * (replica.records != 1)}")
    if replica.bytes is not None:
        sizes.append(human_bytes(replica.bytes))
    if replica.since_ms is not None:
        sizes.append(format_duration(max(0, session.now_ms() - replica.since_ms)))
    far = f" ({', '.join(sizes)} behind)" if sizes else ""
    return f"{replica.tp}: the replica on broker {replica.broker_id} is not in sync{far}"
