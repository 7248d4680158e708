"""ConsumerGroupHeartbeat: a member joins, reports its subscription and its partitions, or leaves.

A heartbeat has three steps, each of which may do nothing: it updates the member and the group's epoch, then
the target assignment for that epoch, then it moves the member towards its target.
"""

import logging
from typing import TYPE_CHECKING, Any

from odradek.coordinators.groups.classic.group import ClassicGroup
from odradek.coordinators.groups.classic.states import GroupState
from odradek.coordinators.groups.commands import ConsumerHeartbeat
from odradek.coordinators.groups.consumer import fencing, migrating, regexes, targeting
from odradek.coordinators.groups.consumer.draft import GroupDraft
from odradek.coordinators.groups.consumer.group import ConsumerGroup
from odradek.coordinators.groups.consumer.member import (
    LEFT,
    LEFT_FOR_A_WHILE,
    NO_REBALANCE_TIMEOUT,
    ConsumerMember,
)
from odradek.coordinators.groups.consumer.partition_maps import ENTRIES_PER_CALL, are_same, is_part_of
from odradek.coordinators.groups.consumer.reconciling import Owned
from odradek.coordinators.groups.consumer.records import current_record, member_record
from odradek.coordinators.groups.consumer.static_members import replace_static, validate_instance
from odradek.coordinators.groups.replies import (
    ConsumerGroupHeartbeatResponse,
    HeartbeatAssignment,
    HeartbeatPartitions,
)
from odradek.coordinators.records import GroupMetadataKey
from odradek.coordinators.shard import CoordinatorResult, Now, Ticket
from odradek.core.errors import ErrorCode, KafkaError
from odradek.runtime.slices import FEW, STEP, Paced

if TYPE_CHECKING:
    from odradek.coordinators.groups.shard import GroupShard

_log = logging.getLogger(__name__)

JOINING = 0
"""The epoch of a member that joins, or rejoins without partitions."""


def heartbeat(
    shard: "GroupShard", command: ConsumerHeartbeat, ticket: Ticket, now: Now
) -> Paced[CoordinatorResult]:
    """Decide by one image of the cluster. Between two steps the shard does not change, but topics may: then
    the next heartbeat checks them again."""
    if command.member_epoch in (LEFT, LEFT_FOR_A_WHILE):
        return (yield from _leave(shard, command, now))
    joins = command.member_epoch == JOINING
    image = shard.image()
    draft, upgraded = yield from _draft(shard, command.group_id, joins)
    check_room(shard, draft.group, command.member_id)
    member_id = command.member_id or command.new_member_id
    member = yield from _member(draft, command, member_id, joins)
    updated = _updated(member, command)
    yield STEP + len(updated.subscribed_topic_names) // ENTRIES_PER_CALL
    yield from regexes.check(draft.group, updated.subscribed_topic_regex)
    names_changed = updated.subscribed_topic_names != member.subscribed_topic_names
    if updated != member:
        yield from draft.add(member_record(draft.group.group_id, updated))
    regex_change = yield from regexes.change(draft, member, updated)
    bump = names_changed or regex_change is regexes.RegexChange.RESOLVED
    if bump or not draft.group.metadata_is_fresh:
        yield from targeting.update_group_epoch(shard, draft, bump, image)
    yield from targeting.update_target(shard, draft, image, now)
    subscription_changed = names_changed or regex_change is not regexes.RegexChange.NONE
    described = updated
    updated = yield from targeting.reconcile_member(
        draft, described, subscription_changed, command.owned, image
    )
    interval_ms = shard.settings.consumer_heartbeat_interval_ms(command.group_id)
    response = ConsumerGroupHeartbeatResponse(
        member_id=member_id, member_epoch=updated.member_epoch, heartbeat_interval=interval_ms
    )
    if joins or _is_full(command) or not (yield from are_same(member.assigned, updated.assigned)):
        response.assignment = yield from _assignment(updated)
    result = CoordinatorResult(response, draft.records)
    result.is_long = True
    if upgraded is not None:
        yield from migrating.send_back(upgraded, result)

    def replayed(now: Now) -> Paced[CoordinatorResult]:
        group = shard.consumer_group(command.group_id)
        group.metadata_is_fresh = shard.image() is image
        yield from group.collect_topics()
        if upgraded is not None:
            yield from shard.start_consumer_sessions(group, now)
        shard.start_consumer_session(group, group.members[member_id], now)
        if updated is not described:
            shard.watch_revocation(group, group.members[member_id], now)
        return (yield from regexes.refresh(shard, group, now))

    result.then = replayed
    return result


def _assignment(member: ConsumerMember) -> Paced[HeartbeatAssignment]:
    rows = []
    for topic_id, partitions in member.assigned.items():
        rows.append(HeartbeatPartitions(topic_id, sorted(partitions)))
        yield FEW + len(partitions) // ENTRIES_PER_CALL
    return HeartbeatAssignment(rows)


def _is_full(command: ConsumerHeartbeat) -> bool:
    """Whether the member sends all fields: it may have lost an answer, so it gets its full assignment."""
    return (
        command.rebalance_timeout_ms != NO_REBALANCE_TIMEOUT
        and (command.subscribed_topic_names is not None or command.subscribed_topic_regex is not None)
        and command.owned is not None
    )


# --- the group and the member ---------------------------------------------------------------------------


def _draft(shard: "GroupShard", group_id: str, joins: bool) -> Paced[tuple[GroupDraft, ClassicGroup | None]]:
    """(a draft of the existing or new group, the classic group that it is converted from or None)."""
    group = shard.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        return GroupDraft(group), None
    if not joins:
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    draft = GroupDraft(ConsumerGroup(group_id), is_new=True)
    if group is None:
        return draft, None
    if not isinstance(group, ClassicGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    draft.records.append((GroupMetadataKey(group=group_id), None))
    if group.state is GroupState.EMPTY:
        _log.info("Converting the empty classic group %r to a consumer group", group_id)
        return draft, None
    yield from draft.extend((yield from migrating.upgrade(shard, group)))
    _log.info("Converting the classic group %r to a consumer group", group_id)
    return draft, group


def check_room(shard: "GroupShard", group: ConsumerGroup, member_id: str) -> None:
    limit = shard.config.consumer_max_size
    if len(group.members) >= limit and member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {limit} members.",
        )


def _member(
    draft: GroupDraft, command: ConsumerHeartbeat, member_id: str, joins: bool
) -> Paced[ConsumerMember]:
    group, instance_id = draft.group, command.instance_id
    if instance_id is None:
        if joins:
            return group.members.get(member_id) or ConsumerMember(member_id)
        member = group.member(member_id)
    elif joins:
        existing = group.static_member(instance_id)
        if existing is None:
            return group.members.get(member_id) or ConsumerMember(member_id)
        if not existing.uses_classic_protocol and existing.member_epoch != LEFT_FOR_A_WHILE:
            raise KafkaError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} cannot join the group because the "
                f"instance id is owned by {existing.member_id} member.",
            )
        return (yield from replace_static(draft, existing, member_id))
    else:
        member = validate_instance(group, member_id, instance_id)
    yield from _check_epoch(member, command.member_epoch, command.owned)
    return member


def _check_epoch(member: ConsumerMember, epoch: int, owned: Owned | None) -> Paced[None]:
    """The previous epoch is valid too if the member owns nothing else: it may have lost the last answer."""
    known = member.member_epoch
    if epoch == known:
        return
    is_before = epoch == member.previous_member_epoch and epoch < known
    if is_before and owned is not None and (yield from is_part_of(owned, member.assigned)):
        return
    relation = "greater" if epoch > known else "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {relation} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({known}). The member must abandon all its partitions and rejoin.",
    )


def _updated(member: ConsumerMember, command: ConsumerHeartbeat) -> ConsumerMember:
    changes: dict[str, Any] = {
        "instance_id": command.instance_id,
        "rack_id": command.rack_id,
        "server_assignor": command.server_assignor,
        "subscribed_topic_regex": command.subscribed_topic_regex,
    }
    changes = {name: value for name, value in changes.items() if value is not None}
    if command.rebalance_timeout_ms != NO_REBALANCE_TIMEOUT:
        changes["rebalance_timeout_ms"] = command.rebalance_timeout_ms
    if command.subscribed_topic_names is not None:
        changes["subscribed_topic_names"] = frozenset(command.subscribed_topic_names)
    changes.update(client_id=command.client_id, client_host=command.client_host, classic=None)
    return member._replace(**changes)


# --- leaving --------------------------------------------------------------------------------------------


def _leave(shard: "GroupShard", command: ConsumerHeartbeat, now: Now) -> Paced[CoordinatorResult]:
    group = shard.consumer_group(command.group_id)
    response = ConsumerGroupHeartbeatResponse(member_id=command.member_id, member_epoch=command.member_epoch)
    if command.instance_id is None:
        member = group.member(command.member_id)
    else:
        member = validate_instance(group, command.member_id, command.instance_id)
    _log.info("Member %r leaves consumer group %r", member.member_id, group.group_id)
    if command.instance_id is None or command.member_epoch == LEFT:
        return (yield from fencing.fence(shard, group, [member], response, now))
    gone = member._replace(member_epoch=LEFT_FOR_A_WHILE, pending_revocation={})
    result = CoordinatorResult(response, [(yield from current_record(group.group_id, gone))])
    result.is_long = True

    def replayed(now: Now) -> CoordinatorResult:
        shard.forget_revocation(group, member.member_id)
        return CoordinatorResult()

    result.then = replayed
    return result
