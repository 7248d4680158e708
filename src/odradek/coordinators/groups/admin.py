"""ListGroups, DescribeGroups, DeleteGroups, and the removal of expired offsets and of empty groups."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from odradek.coordinators.groups.classic.group import NO_TIMESTAMP, ClassicGroup
from odradek.coordinators.groups.classic.states import GroupState
from odradek.coordinators.groups.classic.subscription import CONSUMER_PROTOCOL_TYPE
from odradek.coordinators.groups.commands import (
    DeleteGroup,
    DescribeGroup,
    ExpireOffsets,
    ForgetTopics,
    ListGroups,
)
from odradek.coordinators.groups.consumer.group import ConsumerGroup
from odradek.coordinators.groups.modern import ModernGroup
from odradek.coordinators.groups.offsets.committing import tombstone
from odradek.coordinators.groups.offsets.offsets import NO_EXPIRY, CommittedOffset
from odradek.coordinators.groups.replies import DescribedGroup, DescribedGroupMember, ListedGroup
from odradek.coordinators.records import GroupMetadataKey
from odradek.coordinators.shard import CoordinatorResult, Now, Record, Ticket
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import ZERO_UUID
from odradek.runtime.slices import FEW, STEP, Paced

if TYPE_CHECKING:
    from odradek.coordinators.groups.shard import Group, GroupShard

_log = logging.getLogger(__name__)

CLASSIC = "classic"


def listed(group: "Group") -> ListedGroup:
    if isinstance(group, ClassicGroup):
        return ListedGroup(group.group_id, group.protocol_type or "", group.state.value, CLASSIC)
    if isinstance(group, ConsumerGroup):
        return ListedGroup(group.group_id, CONSUMER_PROTOCOL_TYPE, group.state, group.group_type)
    return ListedGroup(group.group_id, group.group_type, GroupState.EMPTY.value, group.group_type)


def list_groups(
    shard: "GroupShard", command: ListGroups, ticket: Ticket, now: Now
) -> Paced[CoordinatorResult]:
    """Filters are in lower case. An empty filter matches everything."""
    rows = []
    for group in shard.groups.values():
        row = listed(group)
        if (not command.states or row.group_state.lower() in command.states) and (
            not command.types or row.group_type in command.types
        ):
            rows.append(row)
        yield STEP
    return CoordinatorResult(rows)


def describe(
    shard: "GroupShard", command: DescribeGroup, ticket: Ticket, now: Now
) -> Paced[CoordinatorResult]:
    """Raises GROUP_ID_NOT_FOUND. The handler's answer then depends on the client's version."""
    group = shard.groups.get(command.group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {command.group_id} not found.")
    if not isinstance(group, ClassicGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {command.group_id} is not a classic group.")
    is_stable = group.state is GroupState.STABLE
    members = []
    for m in group.members.values():
        members.append(
            DescribedGroupMember(
                m.member_id,
                m.group_instance_id,
                m.client_id,
                m.client_host,
                m.metadata(group.protocol_name) if is_stable else b"",
                m.assignment if is_stable else b"",
            )
        )
        yield 2 * FEW
    return CoordinatorResult(
        DescribedGroup(
            group_id=group.group_id,
            group_state=group.state.value,
            protocol_type=group.protocol_type or "",
            protocol_data=(group.protocol_name or "") if is_stable else "",
            members=members,
        )
    )


def delete(shard: "GroupShard", command: DeleteGroup, ticket: Ticket, now: Now) -> Paced[CoordinatorResult]:
    group = shard.groups.get(command.group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
    if not _is_empty(group):
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
    records = []
    for topic, partition in shard.offsets.keys(command.group_id):
        records.append(tombstone(command.group_id, topic, partition))
        yield FEW
    return CoordinatorResult(ErrorCode.NONE, records + (yield from _group_tombstones(group)))


def _is_empty(group: "Group") -> bool:
    return group.state is GroupState.EMPTY if isinstance(group, ClassicGroup) else not group.members


def _group_tombstones(group: "Group") -> Paced[list[Record]]:
    if isinstance(group, ClassicGroup):
        return [(GroupMetadataKey(group=group.group_id), None)]
    return (yield from group.tombstones()) if isinstance(group, ConsumerGroup) else group.tombstones()


def expire(shard: "GroupShard", command: ExpireOffsets, ticket: Ticket, now: Now) -> Paced[CoordinatorResult]:
    """Tombstones for expired offsets, and for empty groups without offsets."""
    records: list[Record] = []
    retention_ms = shard.config.offsets_retention_ms
    offsets = shard.offsets
    for group in shard.groups.values():
        yield STEP
        if isinstance(group, ConsumerGroup):
            yield from group.collect_topics()
        expired_since = _expiry_base(group)
        all_expired = True
        for topic, partitions in offsets.of_group(group.group_id).items():
            is_read = not isinstance(group, ModernGroup) and group.subscribes_to(topic)
            for partition, offset in partitions.items():
                yield FEW
                if (
                    expired_since is not None
                    and not is_read
                    and _is_expired(offset, expired_since(offset), retention_ms, now.wall_ms)
                    and not offsets.is_pending(group.group_id, topic, partition)
                ):
                    records.append(tombstone(group.group_id, topic, partition))
                else:
                    all_expired = False
        if all_expired and _is_abandoned(group) and not offsets.has_open_transactions(group.group_id):
            _log.info("Removing group %r: it has no members and no offsets", group.group_id)
            records += yield from _group_tombstones(group)
    return CoordinatorResult(len(records), records, atomic=False)


def _is_abandoned(group: "Group") -> bool:
    """Whether the group is empty, and no new member has a pending member id."""
    return _is_empty(group) and not (isinstance(group, ClassicGroup) and group.pending_join)


def _expiry_base(group: "Group") -> Callable[[CommittedOffset], int] | None:
    """The start of an offset's retention time; None while no offset of the group expires."""
    if not isinstance(group, ClassicGroup) or group.protocol_type is None:
        return _commit_time
    if group.state is GroupState.EMPTY:
        emptied_ms = group.state_since_ms
        return _commit_time if emptied_ms == NO_TIMESTAMP else lambda _: emptied_ms
    if group.state is GroupState.STABLE and group.topics is not None:
        return _commit_time
    return None


def _commit_time(offset: CommittedOffset) -> int:
    return offset.commit_timestamp_ms


def _is_expired(offset: CommittedOffset, since_ms: int, retention_ms: int, now_ms: int) -> bool:
    if offset.expire_timestamp_ms != NO_EXPIRY:
        return now_ms >= offset.expire_timestamp_ms
    return now_ms - since_ms >= retention_ms


def forget_topics(
    shard: "GroupShard", command: ForgetTopics, ticket: Ticket, now: Now
) -> Paced[CoordinatorResult]:
    records: list[Record] = []
    for group_id in shard.offsets.group_ids():
        yield STEP
        for topic, partition in shard.offsets.keys(group_id):
            yield 2 * FEW
            deleted_id = command.topics.get(topic)
            if deleted_id is None:
                continue
            offset = shard.offsets.get(group_id, topic, partition)
            if offset is None or offset.topic_id in (deleted_id, ZERO_UUID):
                records.append(tombstone(group_id, topic, partition))
    return CoordinatorResult(len(records), records, atomic=False)
