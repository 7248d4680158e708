"""OffsetCommit, OffsetFetch and OffsetDelete: which members may commit, and what a reader gets."""

import uuid
from typing import TYPE_CHECKING

from odradek.coordinators.groups.classic.group import ClassicGroup
from odradek.coordinators.groups.classic.states import GroupState
from odradek.coordinators.groups.commands import CommitOffsets, DeleteOffsets, FetchOffsets, WantedTopic
from odradek.coordinators.groups.consumer.group import ConsumerGroup
from odradek.coordinators.groups.modern import ModernGroup
from odradek.coordinators.groups.offsets.offsets import NO_EXPIRY, CommittedOffset
from odradek.coordinators.groups.replies import FetchedPartition, FetchedRow, FetchedTopic
from odradek.coordinators.records import OffsetCommitKey, OffsetCommitValue
from odradek.coordinators.shard import CoordinatorResult, Now, Record, Ticket
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import ZERO_UUID
from odradek.runtime.slices import FEW, Paced

if TYPE_CHECKING:
    from odradek.coordinators.groups.shard import Group, GroupShard

NO_RETENTION_TIME = -1
FEW_OFFSETS = 16
END_OF_TIME_MS = (1 << 63) - 1


def commit(
    shard: "GroupShard", command: CommitOffsets, ticket: Ticket, now: Now
) -> CoordinatorResult | Paced[CoordinatorResult]:
    """The answer is one error code per offset, in order."""
    group = shard.groups.get(command.group_id)
    if group is None:
        if command.generation_id >= 0:
            if command.unknown_group_is_illegal_generation:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {command.group_id} not found.")
    else:
        validate_commit(group, command)
        if (
            command.producer is None
            and isinstance(group, ClassicGroup)
            and command.member_id in group.members
        ):
            # A commit shows that the member is alive. Commits of a generation that is not assigned yet were
            # refused above.
            shard.start_session(group, group.members[command.member_id], now)
    work = _commit(shard, command, now)
    if len(command.offsets) < FEW_OFFSETS:
        try:
            work.send(None)  # it has one step only
        except StopIteration as done:
            result: CoordinatorResult = done.value
            return result
    return work


def _commit(shard: "GroupShard", command: CommitOffsets, now: Now) -> Paced[CoordinatorResult]:
    expire_timestamp_ms = NO_EXPIRY
    if command.retention_time_ms != NO_RETENTION_TIME:
        expire_timestamp_ms = min(now.wall_ms + command.retention_time_ms, END_OF_TIME_MS)
    limit = shard.config.offset_metadata_max_bytes
    codes = []
    records: list[Record] = []
    for offset in command.offsets:
        if _java_length(offset.metadata) > limit:
            codes.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
            continue
        codes.append(ErrorCode.NONE)
        key = OffsetCommitKey(group=command.group_id, topic=offset.topic, partition=offset.partition)
        value = OffsetCommitValue(
            offset=offset.offset,
            leader_epoch=offset.leader_epoch,
            metadata=offset.metadata,
            commit_timestamp=now.wall_ms,
            expire_timestamp=expire_timestamp_ms,
            topic_id=offset.topic_id,
        )
        records.append((key, value))
        if not len(records) % FEW_OFFSETS:
            yield FEW_OFFSETS * FEW
    result = CoordinatorResult(codes, records)
    result.producer = command.producer
    return result


def _java_length(text: str) -> int:
    """The limit is named in bytes, but Kafka compares the length of Java strings: UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def validate_commit(group: "Group", command: CommitOffsets) -> None:
    """Fence unknown members and old generations.

    A generation that is not in the log yet cannot commit either. If it could and the coordinator moved, the
    previous generation would be current again and could commit after it.
    """
    member_id, generation_id = command.member_id, command.generation_id
    if isinstance(group, ConsumerGroup):
        _validate_consumer_commit(group, command)
        return
    if isinstance(group, ModernGroup):
        if generation_id >= 0 or member_id:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return
    if generation_id < 0 and group.state is GroupState.EMPTY:
        return
    if generation_id < 0 and not member_id and command.group_instance_id is None:
        if command.producer is not None:
            return  # a transactional producer before KIP-447 sends no group metadata; its own epoch fences it
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    group.validate_member(member_id, command.group_instance_id)
    if generation_id != group.generation_id:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if group.persisted is None or group.persisted.generation != generation_id:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)


def _validate_consumer_commit(group: ConsumerGroup, command: CommitOffsets) -> None:
    """A member commits with its current epoch, or with an older one for partitions that it has had since
    then.

    An administrator may commit while the group is empty.
    """
    epoch, is_anonymous = command.generation_id, not command.member_id and command.group_instance_id is None
    if epoch < 0 and not group.members:
        return
    if command.producer is not None and epoch == -1 and is_anonymous:
        return
    member = group.member(command.member_id)
    stale = ErrorCode.STALE_MEMBER_EPOCH
    if member.uses_classic_protocol or command.producer is not None:
        stale = ErrorCode.ILLEGAL_GENERATION
    elif command.unknown_group_is_illegal_generation:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if epoch == member.member_epoch:
        return
    if epoch > member.member_epoch:
        raise KafkaError(stale)
    for offset in command.offsets:
        given = member.epoch_of(offset.topic_id, offset.partition)
        if given is None or epoch < given:
            raise KafkaError(stale)


def fetch(shard: "GroupShard", command: FetchOffsets, ticket: Ticket, now: Now) -> Paced[CoordinatorResult]:
    """The answer is a list of FetchedTopic. Unknown groups and partitions have no offset and no error."""
    group = shard.groups.get(command.group_id)
    if isinstance(group, ConsumerGroup):
        _validate_consumer_fetch(group, command)
    if isinstance(group, ModernGroup) and command.member_id is not None and command.member_epoch >= 0:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    committed = shard.offsets.of_group(command.group_id)
    topics: list[FetchedTopic] = []
    if command.topics is None:
        for name, offsets in committed.items():
            topics.append(FetchedTopic(name, list(offsets.values())))
            yield FEW
    else:
        for wanted in command.topics:
            topics.append((yield from _wanted_topic(wanted, committed.get(wanted.name, {}))))
            yield 2 * FEW
    if command.require_stable and shard.offsets.has_open_transactions(command.group_id):
        for topic in topics:
            rows = []
            for row in topic.partitions:
                rows.append(_stable(shard, command.group_id, topic.name, row))
                yield FEW
            topic.partitions = rows
    return CoordinatorResult(topics)


def _validate_consumer_fetch(group: ConsumerGroup, command: FetchOffsets) -> None:
    if command.member_id is None and command.member_epoch < 0:
        return
    member = group.member(command.member_id or "")
    if command.member_epoch != member.member_epoch:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION if member.uses_classic_protocol else ErrorCode.STALE_MEMBER_EPOCH
        )


def _wanted_topic(wanted: WantedTopic, known: dict[int, CommittedOffset]) -> Paced[FetchedTopic]:
    topic_id = wanted.topic_id
    rows: list[FetchedRow] = []
    for partition in wanted.partitions:
        row: FetchedRow | None = known.get(partition)
        if row is None or (topic_id != ZERO_UUID and _is_of_another(row, topic_id)):
            row = FetchedPartition(partition)
        rows.append(row)
        if not len(rows) % FEW_OFFSETS:
            yield FEW_OFFSETS * FEW
    return FetchedTopic(wanted.name, rows, topic_id)


def _is_of_another(row: FetchedRow, topic_id: uuid.UUID) -> bool:
    """Whether the offset belongs to a deleted topic of the same name."""
    return isinstance(row, CommittedOffset) and row.topic_id not in (topic_id, ZERO_UUID)


def _stable(shard: "GroupShard", group_id: str, topic: str, row: FetchedRow) -> FetchedRow:
    if shard.offsets.is_pending(group_id, topic, row.partition_index):
        return FetchedPartition(row.partition_index, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    return row


def delete(shard: "GroupShard", command: DeleteOffsets, ticket: Ticket, now: Now) -> Paced[CoordinatorResult]:
    """The answer is a list of error codes per topic. Offsets of topics that the group reads are not
    deleted."""
    group = shard.groups.get(command.group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
    is_active = isinstance(group, ClassicGroup) and group.state is not GroupState.EMPTY
    if isinstance(group, ClassicGroup) and is_active and not group.uses_consumer_protocol:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
    if isinstance(group, ConsumerGroup):
        yield from group.collect_topics()
    codes = []
    records: list[Record] = []
    for topic, partitions in command.topics:
        if not isinstance(group, ModernGroup) and group.subscribes_to(topic):
            codes.append([ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC] * len(partitions))
            continue
        codes.append([ErrorCode.NONE] * len(partitions))
        yield FEW
        for partition in dict.fromkeys(partitions):  # duplicates are deleted once
            yield FEW
            if shard.offsets.get(command.group_id, topic, partition) is not None or shard.offsets.is_pending(
                command.group_id, topic, partition
            ):
                records.append(tombstone(command.group_id, topic, partition))
    return CoordinatorResult(codes, records)


def tombstone(group_id: str, topic: str, partition: int) -> Record:
    return OffsetCommitKey(group=group_id, topic=topic, partition=partition), None
