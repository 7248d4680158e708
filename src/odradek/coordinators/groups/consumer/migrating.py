"""Converts a running group: upgrades a classic group to a consumer group, or downgrades it.

`group.consumer.migration.policy` allows each direction. Members keep their ids, and the generation becomes
the epoch and vice versa, so that members can commit offsets all the time.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from odradek.coordinators.groups.classic.group import ClassicGroup
from odradek.coordinators.groups.classic.member import ClassicGroupMember
from odradek.coordinators.groups.classic.rebalance import answer_join, answer_sync, prepare
from odradek.coordinators.groups.classic.subscription import CONSUMER_PROTOCOL_TYPE
from odradek.coordinators.groups.consumer import records as r
from odradek.coordinators.groups.consumer.assignors import Assignment
from odradek.coordinators.groups.consumer.group import ConsumerGroup
from odradek.coordinators.groups.consumer.member import ClassicSession, ConsumerMember
from odradek.coordinators.groups.replies import JoinGroupResponse, SyncGroupResponse
from odradek.coordinators.records import GroupMetadataKey
from odradek.coordinators.shard import CoordinatorResult, Now, Record
from odradek.core.errors import ErrorCode, KafkaError, ProtocolError
from odradek.metadata.image import MetadataImage
from odradek.runtime.slices import FEW, STEP, Paced, gathered
from odradek.wire import consumer_protocol as wire

if TYPE_CHECKING:
    from odradek.coordinators.groups.shard import GroupShard

_log = logging.getLogger(__name__)


# --- classic to consumer --------------------------------------------------------------------------------


def upgrade(shard: "GroupShard", classic: ClassicGroup) -> Paced[list[Record]]:
    """The records of the consumer group that replaces a classic group. Raises GROUP_ID_NOT_FOUND if it must
    not."""
    reason = _upgrade_is_refused(shard, classic)
    if reason is not None:
        raise KafkaError(
            ErrorCode.GROUP_ID_NOT_FOUND,
            f"Cannot upgrade classic group {classic.group_id} to consumer group because {reason}.",
        )
    group_id, epoch = classic.group_id, classic.generation_id
    image = shard.image()
    members: list[ConsumerMember] = []
    topics: set[str] = set()
    described: list[Record] = []
    targets: list[Record] = []
    currents: list[Record] = []
    try:
        for classic_member in classic.members.values():
            member = _to_consumer(classic, classic_member, image)
            members.append(member)
            topics |= member.subscribed_topic_names
            yield 2 * STEP + 2 * FEW * (len(member.assigned) + len(member.subscribed_topic_names))
    except ProtocolError as e:
        raise KafkaError(
            ErrorCode.GROUP_ID_NOT_FOUND,
            f"Cannot upgrade classic group {group_id} to consumer group because the embedded consumer "
            "protocol is malformed.",
        ) from e
    for member in members:
        described.append(r.member_record(group_id, member))
        targets.append((yield from r.target_record(group_id, member.member_id, _without_epochs(member))))
        currents.append((yield from r.current_record(group_id, member)))
        yield STEP
    metadata_hash = yield from shard.topic_hashes.of_group(topics, image)
    return [
        *described,
        r.epoch_record(group_id, epoch, metadata_hash),
        *targets,
        r.target_epoch_record(group_id, epoch, 0),
        *currents,
    ]


def _upgrade_is_refused(shard: "GroupShard", classic: ClassicGroup) -> str | None:
    if not shard.config.consumer_upgrades:
        return "online upgrade is disabled"
    if not classic.uses_consumer_protocol:
        return "the group does not use the consumer embedded protocol"
    if len(classic.members) > shard.config.consumer_max_size:
        return "the group size exceeds the consumer group maximum size"
    return None


def _to_consumer(classic: ClassicGroup, member: ClassicGroupMember, image: MetadataImage) -> ConsumerMember:
    assignment = wire.decode_assignment(member.assignment)
    if assignment.user_data:
        raise KafkaError(
            ErrorCode.GROUP_ID_NOT_FOUND,
            f"Cannot upgrade classic group {classic.group_id} to consumer group because an unsupported "
            "custom assignor is in use. Please refer to the documentation or switch to a default assignor "
            "before re-attempting the upgrade.",
        )
    name = classic.protocol_name or member.protocols[0].name
    subscription = wire.decode_subscription(member.metadata(name))
    epoch = classic.generation_id
    return ConsumerMember(
        member_id=member.member_id,
        member_epoch=epoch,
        previous_member_epoch=epoch,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        subscribed_topic_names=frozenset(subscription.topics),
        classic=ClassicSession(member.session_timeout_ms, member.protocols),
        assigned={
            topic_id: dict.fromkeys(sorted(partitions), epoch)
            for topic_id, partitions in partitions_by_id(assignment.assigned_partitions, image).items()
        },
    )


def partitions_by_id(rows: Any, image: MetadataImage) -> dict[UUID, frozenset[int]]:
    """Partitions by topic id, from rows with topic names. Deleted topics are omitted."""
    found: dict[UUID, frozenset[int]] = {}
    for row in rows:
        topic = image.topics_by_name.get(row.topic)
        if topic is not None and row.partitions:
            found[topic.id] = found.get(topic.id, frozenset()) | frozenset(row.partitions)
    return found


def _without_epochs(member: ConsumerMember) -> Assignment:
    return {topic_id: frozenset(partitions) for topic_id, partitions in member.assigned.items()}


def send_back(classic: ClassicGroup, out: CoordinatorResult) -> Paced[None]:
    """Answer the requests that wait in the former classic group: its members must rejoin the consumer
    group."""
    code = ErrorCode.REBALANCE_IN_PROGRESS
    for member in classic.members.values():
        answer_join(classic, member, out, JoinGroupResponse(error_code=code, member_id=member.member_id))
        answer_sync(member, out, SyncGroupResponse(error_code=code))
        yield 2 * FEW


# --- consumer to classic --------------------------------------------------------------------------------


def can_downgrade(shard: "GroupShard", group: ConsumerGroup, gone: frozenset[str]) -> bool:
    """Whether without the `gone` members the group can become classic: only classic members are left, and the
    policy and the maximum size allow it."""
    left = len(group.members) - len(gone)
    return (
        group.all_classic_without(gone)
        and left > 0
        and shard.config.consumer_downgrades
        and left <= shard.config.max_size
    )


def downgrade_without(
    shard: "GroupShard", group: ConsumerGroup, gone: frozenset[str], response: Any, now: Now
) -> Paced[CoordinatorResult]:
    """Convert to a classic group without the `gone` members, and rebalance it to reassign their
    partitions."""
    left = [member for member in group.members.values() if member.member_id not in gone]
    result = CoordinatorResult(response, (yield from group.tombstones()))
    yield from to_classic(
        shard, group, left, result, f"group {group.group_id} is downgraded: members left", now
    )
    return result


def to_classic(
    shard: "GroupShard",
    group: ConsumerGroup,
    members: list[ConsumerMember],
    result: CoordinatorResult,
    reason: str | None,
    now: Now,
) -> Paced[None]:
    """Add the record of the classic group to `result`, and a rebalance if there is a reason for one.

    `result` already has the records that end the consumer group.
    """
    classic = ClassicGroup(group.group_id)
    for member in members:
        classic.add(_to_member(member), CONSUMER_PROTOCOL_TYPE)
        yield STEP
    classic.generation_id = group.group_epoch
    classic.protocol_name = protocol = yield from classic.select_protocol()
    image = shard.image()
    assignments = {}
    for m in classic.members.values():
        target = group.target(m.member_id)
        assignments[m.member_id] = classic_assignment(target, m.metadata(protocol), image)
        yield STEP + 3 * FEW * len(target)
    protocols = {m.member_id: m.protocols for m in classic.members.values()}
    record = yield from gathered(classic.record(assignments, now.wall_ms))
    result.records.append((GroupMetadataKey(group=group.group_id), record))
    result.is_long = True
    _log.info("Converting the consumer group %r to a classic group", group.group_id)

    def replayed(now: Now) -> Paced[CoordinatorResult]:
        out = CoordinatorResult()
        converted = shard.groups[group.group_id]
        assert isinstance(converted, ClassicGroup)
        for member in converted.members.values():
            converted.update_protocols(member, protocols[member.member_id])
            shard.start_session(converted, member, now)
            yield STEP
        if reason is not None:
            yield from prepare(shard, converted, out, now, reason)
        return out

    result.then = replayed


def _to_member(member: ConsumerMember) -> ClassicGroupMember:
    assert member.classic is not None
    return ClassicGroupMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        member.classic.protocols,
    )


def classic_assignment(
    partitions: Mapping[UUID, Iterable[int]], subscription: bytes, image: MetadataImage
) -> bytes:
    """An assignment for a classic member: by topic name, in the version of its subscription."""
    rows = [
        wire.MemberPartitions(topic=image.topics_by_id[topic_id].name, partitions=tuple(sorted(some)))
        for topic_id, some in partitions.items()
        if topic_id in image.topics_by_id
    ]
    version = min(max(int.from_bytes(subscription[:2], "big", signed=True), 0), wire.NEWEST_VERSION)
    return wire.encode_assignment(wire.Assignment(assigned_partitions=rows), version)
