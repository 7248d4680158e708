"""Converts the values of a consumer group to records and back.

A record may have thousands of topics, so this is paced work.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from odradek.coordinators.groups.commands import MemberProtocol
from odradek.coordinators.groups.consumer.assignors import Assignment
from odradek.coordinators.groups.consumer.member import (
    ClassicSession,
    ConsumerMember,
    MemberState,
    PartitionEpochs,
)
from odradek.coordinators.groups.consumer.partition_maps import ENTRIES_PER_CALL, STEP_CALLS, by_id
from odradek.coordinators.records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    CurrentTopicPartitions,
    TargetTopicPartitions,
)
from odradek.coordinators.shard import Record
from odradek.runtime.slices import FEW, Paced


class ResolvedRegex(NamedTuple):
    """The topics that a regular expression matched, the metadata offset, and the time."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


# --- written ------------------------------------------------------------------------------------------------


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> Record:
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return ConsumerGroupMetadataKey(group_id=group_id), value


def member_record(group_id: str, member: ConsumerMember) -> Record:
    classic = None
    if member.classic is not None:
        classic = ClassicMemberMetadata(
            session_timeout=member.classic.session_timeout_ms,
            supported_protocols=tuple(
                ClassicProtocol(name=p.name, metadata=p.metadata) for p in member.classic.protocols
            ),
        )
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.subscribed_topic_names)),
        subscribed_topic_regex=member.subscribed_topic_regex,
        rebalance_timeout=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=classic,
    )
    return ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value


def target_record(group_id: str, member_id: str, target: Assignment) -> Paced[Record]:
    rows = []
    calls = 0
    for topic_id in sorted(target, key=by_id):
        partitions = target[topic_id]
        rows.append(TargetTopicPartitions(topic_id=topic_id, partitions=tuple(sorted(partitions))))
        calls += 2 * FEW + len(partitions) // ENTRIES_PER_CALL
        if calls > STEP_CALLS:
            yield calls
            calls = 0
    yield FEW + calls
    value = ConsumerGroupTargetAssignmentMemberValue(topic_partitions=tuple(rows))
    return ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> Record:
    value = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=timestamp_ms
    )
    return ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value


def current_record(group_id: str, member: ConsumerMember) -> Paced[Record]:
    assigned = yield from _written_epochs(member.assigned)
    pending_revocation = yield from _written_epochs(member.pending_revocation)
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=assigned,
        partitions_pending_revocation=pending_revocation,
    )
    return ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value


def _written_epochs(partitions: PartitionEpochs) -> Paced[tuple[CurrentTopicPartitions, ...]]:
    rows = []
    calls = 0
    for topic_id in sorted(partitions, key=by_id):
        epochs = dict(sorted(partitions[topic_id].items()))
        rows.append(
            CurrentTopicPartitions(
                topic_id=topic_id, partitions=tuple(epochs), assignment_epochs=tuple(epochs.values())
            )
        )
        calls += 2 * FEW + 4 * len(epochs) // ENTRIES_PER_CALL
        if calls > STEP_CALLS:
            yield calls
            calls = 0
    yield calls
    return tuple(rows)


def regex_record(group_id: str, regex: str, resolved: ResolvedRegex) -> Record:
    value = ConsumerGroupRegularExpressionValue(
        topics=tuple(sorted(resolved.topics)), version=resolved.version, timestamp=resolved.timestamp_ms
    )
    return ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), value


def regex_tombstone(group_id: str, regex: str) -> Record:
    return ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None


def partition_metadata_tombstone(group_id: str) -> Record:
    return ConsumerGroupPartitionMetadataKey(group_id=group_id), None


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    """In the order that Apache expects: assignment and target first, then the member."""
    return [
        (ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        (ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        (ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(
    group_id: str, member_ids: Iterable[str], regexes: Iterable[str], has_partition_metadata: bool
) -> Paced[list[Record]]:
    members = list(member_ids)
    records: list[Record] = []
    for key in (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupTargetAssignmentMemberKey):
        for member_id in members:
            records.append((key(group_id=group_id, member_id=member_id), None))
            yield FEW
    records.append((ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None))
    for member_id in members:
        records.append((ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None))
        yield FEW
    for regex in regexes:
        records.append(regex_tombstone(group_id, regex))
        yield FEW
    if has_partition_metadata:
        records.append(partition_metadata_tombstone(group_id))
    records.append((ConsumerGroupMetadataKey(group_id=group_id), None))
    return records


# --- read ---------------------------------------------------------------------------------------------------


def with_metadata(member: ConsumerMember, value: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
    written = value.classic_member_metadata
    classic = None
    if written is not None:
        protocols = tuple(MemberProtocol(p.name, bytes(p.metadata)) for p in written.supported_protocols)
        classic = ClassicSession(written.session_timeout, protocols)
    return member._replace(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topic_names=frozenset(value.subscribed_topic_names),
        subscribed_topic_regex=value.subscribed_topic_regex,
        rebalance_timeout_ms=value.rebalance_timeout,
        server_assignor=value.server_assignor,
        classic=classic,
    )


def with_assignment(
    member: ConsumerMember, value: ConsumerGroupCurrentMemberAssignmentValue
) -> Paced[ConsumerMember]:
    assigned = yield from _read_epochs(value.assigned_partitions, value.member_epoch)
    pending_revocation = yield from _read_epochs(value.partitions_pending_revocation, value.member_epoch)
    return member._replace(
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=MemberState.of(value.state),
        assigned=assigned,
        pending_revocation=pending_revocation,
    )


def _read_epochs(rows: Sequence[CurrentTopicPartitions], member_epoch: int) -> Paced[PartitionEpochs]:
    """Releases before 4.3 wrote no epochs: the member's epoch is the latest possible one."""
    read: dict[UUID, Mapping[int, int]] = {}
    calls = 0
    for row in rows:
        epochs = row.assignment_epochs
        if epochs is None or len(epochs) != len(row.partitions):
            read[row.topic_id] = dict.fromkeys(row.partitions, member_epoch)
        else:
            read[row.topic_id] = dict(zip(row.partitions, epochs, strict=True))
        calls += FEW + 2 * len(row.partitions) // ENTRIES_PER_CALL
        if calls > STEP_CALLS:
            yield calls
            calls = 0
    yield calls
    return read


def target_of(value: ConsumerGroupTargetAssignmentMemberValue) -> Paced[Assignment]:
    target: dict[UUID, frozenset[int]] = {}
    calls = 0
    for row in value.topic_partitions:
        if row.partitions:
            target[row.topic_id] = frozenset(row.partitions)
        calls += FEW + len(row.partitions) // ENTRIES_PER_CALL
        if calls > STEP_CALLS:
            yield calls
            calls = 0
    yield calls
    return target
