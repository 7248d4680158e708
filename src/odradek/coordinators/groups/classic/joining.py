"""JoinGroup: decides whether a member may join, with which id, and whether that starts a rebalance."""

import logging
from typing import TYPE_CHECKING

from odradek.coordinators.groups.classic.group import ClassicGroup
from odradek.coordinators.groups.classic.member import ClassicGroupMember
from odradek.coordinators.groups.classic.rebalance import (
    add_member,
    answer_join,
    answer_sync,
    complete_if_joined,
    joined,
    park_join,
    prepare,
    rebalance,
    remove_member,
)
from odradek.coordinators.groups.classic.states import GroupState
from odradek.coordinators.groups.commands import JoinGroup
from odradek.coordinators.groups.consumer import classic_members
from odradek.coordinators.groups.consumer.group import ConsumerGroup
from odradek.coordinators.groups.modern import ModernGroup
from odradek.coordinators.groups.replies import JoinGroupResponse, SyncGroupResponse
from odradek.coordinators.records import GroupMetadataKey, GroupMetadataValue
from odradek.coordinators.shard import CoordinatorResult, Now, Record, Ticket
from odradek.core.errors import ErrorCode, KafkaError
from odradek.runtime.slices import Paced, gathered

if TYPE_CHECKING:
    from odradek.coordinators.groups.shard import GroupShard

_log = logging.getLogger(__name__)


def join(shard: "GroupShard", command: JoinGroup, ticket: Ticket, now: Now) -> Paced[CoordinatorResult]:
    group = shard.groups.get(command.group_id)
    if isinstance(group, ConsumerGroup) and group.members:
        return (yield from classic_members.join(shard, group, command, now))
    if not isinstance(group, ClassicGroup):
        return (yield from _create_then_join(shard, group, command, ticket, now))
    if not _has_room(shard, group, command.member_id):
        return (yield from _turn_away(shard, group, command.member_id, now))
    if not group.supports(command.protocol_type, command.protocols):
        return _refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, command.member_id)
    if command.member_id:
        return (yield from _join_known(shard, group, command, ticket, now))
    if command.group_instance_id is not None:
        return (yield from _join_static(shard, group, command, ticket, now))
    if command.known_member_required:
        group.pending_join[command.new_member_id] = None
        shard.expect_return(group, command.new_member_id, now, command.session_timeout_ms)
        return _refused(ErrorCode.MEMBER_ID_REQUIRED, command.new_member_id)
    out = CoordinatorResult()
    member = ClassicGroupMember.joining(command, command.new_member_id)
    yield from add_member(shard, group, member, command.protocol_type, ticket, out, now)
    return out


def _refused(code: ErrorCode, member_id: str) -> CoordinatorResult:
    return CoordinatorResult(JoinGroupResponse(error_code=code, member_id=member_id))


def _create_then_join(
    shard: "GroupShard",
    group: ConsumerGroup | ModernGroup | None,
    command: JoinGroup,
    ticket: Ticket,
    now: Now,
) -> Paced[CoordinatorResult]:
    """Write the group to the log before its first member gets an id. An empty group of another type is
    converted."""
    records: list[Record] = []
    if isinstance(group, ModernGroup) and not group.converts_to_classic:
        return _refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")
    if command.member_id:
        return _refused(ErrorCode.UNKNOWN_MEMBER_ID, command.member_id)
    if isinstance(group, ConsumerGroup):
        records += yield from group.tombstones()
    elif group is not None:
        records += group.tombstones()
    records.append((GroupMetadataKey(group=command.group_id), _new_group(now)))
    result = CoordinatorResult(None, records)
    result.then = lambda now: join(shard, command, ticket, now)
    return result


def _new_group(now: Now) -> GroupMetadataValue:
    return GroupMetadataValue(
        protocol_type="",
        generation=0,
        protocol=None,
        leader=None,
        current_state_timestamp=now.wall_ms,
        members=(),
    )


def _has_room(shard: "GroupShard", group: ClassicGroup, member_id: str) -> bool:
    """Whether the group has room for the member under `group.max.size`.

    In PreparingRebalance only the members that have rejoined count. After the setting was lowered the group
    may be too large. Then the last members to rejoin are refused.
    """
    member = group.members.get(member_id)
    if group.state is GroupState.EMPTY:
        return True
    if group.state is GroupState.PREPARING_REBALANCE:
        return (member is not None and member.awaiting_join is not None) or (
            group.awaiting_join_count < shard.config.max_size
        )
    return member is not None or len(group.members) < shard.config.max_size


def _turn_away(
    shard: "GroupShard", group: ClassicGroup, member_id: str, now: Now
) -> Paced[CoordinatorResult]:
    out = _refused(ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    member = group.members.get(member_id)
    if member is not None:
        remove_member(shard, group, member, out)
        yield from complete_if_joined(shard, group, out, now)
    return out


def _join_known(
    shard: "GroupShard", group: ClassicGroup, command: JoinGroup, ticket: Ticket, now: Now
) -> Paced[CoordinatorResult]:
    out = CoordinatorResult()
    member_id = command.member_id
    if member_id in group.pending_join:
        if command.group_instance_id is not None:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"member id {member_id} was not assigned to a static member"
            )
        member = ClassicGroupMember.joining(command, member_id)
        yield from add_member(shard, group, member, command.protocol_type, ticket, out, now)
        return out
    try:
        member = group.validate_member(member_id, command.group_instance_id)
    except KafkaError as e:
        return _refused(e.code, member_id)
    if group.state is not GroupState.PREPARING_REBALANCE and member.protocols == command.protocols:
        # A follower in a stable generation, or a member that lost the answer, gets the answer again. If the
        # leader rejoins a stable group, it asks for a rebalance, because it saw a change that we do not see.
        is_stable = group.state is GroupState.STABLE
        if not (is_stable and group.leader_id == member_id):
            return CoordinatorResult((yield from joined(group, member)))
    _update(group, member, command)
    park_join(group, member, ticket, out)
    yield from rebalance(shard, group, out, now, f"member {member_id} joins during {group.state.value}")
    return out


def _update(group: ClassicGroup, member: ClassicGroupMember, command: JoinGroup) -> None:
    group.update_protocols(member, command.protocols)
    member.rebalance_timeout_ms = command.rebalance_timeout_ms
    member.session_timeout_ms = command.session_timeout_ms


# --- static members -----------------------------------------------------------------------------------------


def _join_static(
    shard: "GroupShard", group: ClassicGroup, command: JoinGroup, ticket: Ticket, now: Now
) -> Paced[CoordinatorResult]:
    """A static member without an id: a new one, or the next incarnation of a known one, which it fences."""
    assert command.group_instance_id is not None
    out = CoordinatorResult()
    successor = ClassicGroupMember.joining(command, command.new_member_id)
    old_id = group.static_members.get(command.group_instance_id)
    if old_id is None:
        yield from add_member(shard, group, successor, command.protocol_type, ticket, out, now)
        return out
    _log.info(
        "Static member with instance id %r joins group %r in state %s and replaces member %r",
        command.group_instance_id,
        group.group_id,
        group.state.value,
        old_id,
    )
    old = group.members[old_id]
    successor.client_id, successor.client_host = old.client_id, old.client_host
    successor.assignment = old.assignment
    if group.state is GroupState.STABLE:
        voters = [successor if m is old else m for m in group.members.values()]
        if (yield from group.select_protocol(voters)) == group.protocol_name:
            return (yield from _take_over(shard, group, old, successor, command, now))
    answer_join(group, old, out, JoinGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID, member_id=old_id))
    answer_sync(old, out, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
    shard.end_session(group, old_id)
    group.replace_static(successor)
    park_join(group, successor, ticket, out)
    shard.start_session(group, successor, now)
    if group.state is GroupState.PREPARING_REBALANCE:
        yield from complete_if_joined(shard, group, out, now)
    else:
        # In CompletingRebalance the leader may just be computing an assignment for the old id.
        yield from prepare(shard, group, out, now, f"static member {command.group_instance_id} rejoins")
    return out


def _take_over(
    shard: "GroupShard",
    group: ClassicGroup,
    old: ClassicGroupMember,
    successor: ClassicGroupMember,
    command: JoinGroup,
    now: Now,
) -> Paced[CoordinatorResult]:
    """A static member came back and nothing else changed: the generation continues with its new id.

    A leader gets `skip_assignment` if its client supports it. Otherwise the answer names its old id as the
    leader, so that it does not compute an assignment.
    """
    was_leader = group.leader_id == old.member_id
    assignments = {m.member_id: m.assignment for m in group.members.values()}
    assignments[successor.member_id] = old.assignment
    group.incoming = successor
    record = yield from gathered(group.record(assignments, now.wall_ms))
    result = CoordinatorResult(None, [(GroupMetadataKey(group=group.group_id), record)])
    result.is_long = True

    def replayed(now: Now) -> Paced[CoordinatorResult]:
        shard.end_session(group, old.member_id)
        shard.start_session(group, successor, now)
        if command.can_skip_assignment:
            return CoordinatorResult((yield from joined(group, successor, skip_assignment=was_leader)))
        response = yield from joined(group, successor)
        response.members = ()
        if was_leader:
            response.leader = old.member_id
        return CoordinatorResult(response)

    def failed(_: KafkaError, now: Now) -> CoordinatorResult:
        group.incoming = None
        return CoordinatorResult()

    result.then, result.failed = replayed, failed
    return result
