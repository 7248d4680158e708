"""The rebalance of a classic group: prepare, wait for the members, complete.

These are functions over a shard and one of its groups. They add records and answers to `out`. A group may
have thousands of members, so this is paced work. The host runs no other command of the shard between two
steps (host.py), so generation, state and members do not change. Before it appends anything, the host checks
that this node is still the coordinator.
"""

import logging
from typing import TYPE_CHECKING

from odradek.coordinators.groups.classic.group import ClassicGroup
from odradek.coordinators.groups.classic.member import ClassicGroupMember
from odradek.coordinators.groups.classic.states import GroupState, can_rebalance
from odradek.coordinators.groups.config import NEW_MEMBER_JOIN_TIMEOUT_MS
from odradek.coordinators.groups.replies import (
    JoinGroupResponse,
    JoinGroupResponseMember,
    SyncGroupResponse,
)
from odradek.coordinators.records import GroupMetadataKey
from odradek.coordinators.shard import CoordinatorResult, Now, Ticket
from odradek.core.errors import ErrorCode, KafkaError
from odradek.runtime.slices import FEW, STEP, Paced, gathered

if TYPE_CHECKING:
    from odradek.coordinators.groups.shard import GroupShard

_log = logging.getLogger(__name__)

EMPTY_RETRY_MS = 1_000
"""The pause before the empty generation is written again after the log refused it."""


# --- requests that wait -----------------------------------------------------------------------------------


def park_join(
    group: ClassicGroup, member: ClassicGroupMember, ticket: Ticket, out: CoordinatorResult
) -> None:
    """Let the member wait for the next generation. An earlier JoinGroup of it that still waits is refused."""
    answer_join(group, member, out, JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    member.awaiting_join = ticket
    group.awaiting_join_count += 1


def answer_join(
    group: ClassicGroup, member: ClassicGroupMember, out: CoordinatorResult, response: JoinGroupResponse
) -> None:
    if member.awaiting_join is not None:
        out.replies.append((member.awaiting_join, response))
        member.awaiting_join = None
        group.awaiting_join_count -= 1


def park_sync(member: ClassicGroupMember, ticket: Ticket, out: CoordinatorResult) -> None:
    answer_sync(member, out, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    member.awaiting_sync = ticket


def answer_sync(member: ClassicGroupMember, out: CoordinatorResult, response: SyncGroupResponse) -> bool:
    if member.awaiting_sync is None:
        return False
    out.replies.append((member.awaiting_sync, response))
    member.awaiting_sync = None
    return True


def joined(
    group: ClassicGroup, member: ClassicGroupMember, *, skip_assignment: bool = False
) -> Paced[JoinGroupResponse]:
    """The answer to a member's JoinGroup. The leader gets all members in it."""
    members: list[JoinGroupResponseMember] = []
    if group.leader_id == member.member_id:
        for m in group.members.values():
            metadata = m.metadata(group.protocol_name)
            members.append(JoinGroupResponseMember(m.member_id, m.group_instance_id, metadata))
            yield 2 * FEW
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        skip_assignment=skip_assignment,
        member_id=member.member_id,
        members=members,
    )


def synced(group: ClassicGroup, member: ClassicGroupMember) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )


# --- members ----------------------------------------------------------------------------------------------


def add_member(
    shard: "GroupShard",
    group: ClassicGroup,
    member: ClassicGroupMember,
    protocol_type: str,
    ticket: Ticket,
    out: CoordinatorResult,
    now: Now,
) -> Paced[None]:
    """Add a new member. It waits for the generation that follows."""
    member.is_new = True
    if group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY:
        group.new_member_added = True
    group.add(member, protocol_type)
    park_join(group, member, ticket, out)
    # It cannot send heartbeats yet, and we may not notice that its client is gone.
    shard.start_session(group, member, now, NEW_MEMBER_JOIN_TIMEOUT_MS)
    yield from rebalance(shard, group, out, now, f"new member {member.member_id}")


def remove_member(
    shard: "GroupShard", group: ClassicGroup, member: ClassicGroupMember, out: CoordinatorResult
) -> None:
    """Remove a member that left or failed. Its waiting requests get UNKNOWN_MEMBER_ID."""
    answer_join(group, member, out, JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    answer_sync(member, out, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    shard.end_session(group, member.member_id)
    group.remove(member.member_id)


# --- phases -----------------------------------------------------------------------------------------------


def rebalance(
    shard: "GroupShard", group: ClassicGroup, out: CoordinatorResult, now: Now, reason: str
) -> Paced[None]:
    """Start a rebalance, or complete the one in progress if that is possible now."""
    if can_rebalance(group.state):
        yield from prepare(shard, group, out, now, reason)
    else:
        yield from complete_if_joined(shard, group, out, now)


def prepare(
    shard: "GroupShard", group: ClassicGroup, out: CoordinatorResult, now: Now, reason: str
) -> Paced[None]:
    """Start a rebalance: all members must rejoin. The first generation of an empty group waits for more
    members."""
    if group.state is GroupState.COMPLETING_REBALANCE:
        yield from fail_syncs(shard, group, ErrorCode.REBALANCE_IN_PROGRESS, out, now)
    group.pending_sync.clear()
    shard.cancel_sync(group)
    is_initial = group.state is GroupState.EMPTY
    _log.info(
        "Preparing to rebalance group %r in state %s with old generation %d (reason: %r)",
        group.group_id,
        group.state.value,
        group.generation_id,
        reason,
    )
    group.transition(GroupState.PREPARING_REBALANCE, now.wall_ms)
    if is_initial:
        delay_ms = shard.config.initial_rebalance_delay_ms
        group.new_member_added = False
        group.initial_delays_ms = (delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        shard.schedule_join(group, now, delay_ms)
    elif group.all_joined:
        yield from complete(shard, group, out, now)
    else:
        shard.schedule_join(group, now, group.rebalance_timeout_ms)


def join_time_is_up(
    shard: "GroupShard", group: ClassicGroup, out: CoordinatorResult, now: Now
) -> Paced[None]:
    """The join timer fired: complete with the members that have joined. A first generation that still gets
    new members waits longer, up to the rebalance timeout."""
    delay_ms, remaining_ms = group.initial_delays_ms
    if group.previous_state is GroupState.EMPTY and group.new_member_added and remaining_ms > 0:
        group.new_member_added = False
        next_delay_ms = min(shard.config.initial_rebalance_delay_ms, remaining_ms)
        group.initial_delays_ms = (next_delay_ms, max(remaining_ms - delay_ms, 0))
        shard.schedule_join(group, now, next_delay_ms)
        return
    yield from complete(shard, group, out, now)


def complete_if_joined(
    shard: "GroupShard", group: ClassicGroup, out: CoordinatorResult, now: Now
) -> Paced[None]:
    """Complete the rebalance if all members have joined. A first generation always waits for its delay."""
    if (
        group.state is GroupState.PREPARING_REBALANCE
        and group.previous_state is not GroupState.EMPTY
        and group.all_joined
    ):
        yield from complete(shard, group, out, now)


def complete(shard: "GroupShard", group: ClassicGroup, out: CoordinatorResult, now: Now) -> Paced[None]:
    """End the join phase with the members that have joined. Static members stay even if they have not."""
    assert group.state is GroupState.PREPARING_REBALANCE
    shard.cancel_join(group)
    late = [m for m in group.members.values() if m.awaiting_join is None and m.group_instance_id is None]
    for member in late:
        _log.info("Group %r removed dynamic member %r which did not rejoin", group.group_id, member.member_id)
        remove_member(shard, group, member, out)
        yield STEP
    if not group.members:
        _become_empty(shard, group, out, now)
        return
    if not group.elect_joined_leader():
        _log.error("Group %r could not complete rebalance because no members rejoined", group.group_id)
        shard.schedule_join(group, now, group.rebalance_timeout_ms)
        return
    yield from gathered(group.begin_generation(now.wall_ms))
    _log.info(
        "Stabilized group %r generation %d with %d members",
        group.group_id,
        group.generation_id,
        len(group.members),
    )
    yield from gathered(_answer_joins(shard, group, out, now))
    shard.schedule_sync(group, now, group.rebalance_timeout_ms)


def _answer_joins(shard: "GroupShard", group: ClassicGroup, out: CoordinatorResult, now: Now) -> Paced[None]:
    for member in group.members.values():
        answer_join(group, member, out, (yield from joined(group, member)))
        member.is_new = False
        shard.start_session(group, member, now)
        yield STEP // 2


def _become_empty(shard: "GroupShard", group: ClassicGroup, out: CoordinatorResult, now: Now) -> None:
    """No member is left: write the empty generation. Its replay makes the group Empty."""
    _log.info("Group %r with generation %d is now empty", group.group_id, group.generation_id + 1)
    out.records.append((GroupMetadataKey(group=group.group_id), group.empty_record(now.wall_ms)))

    def failed(error: KafkaError, now: Now) -> CoordinatorResult:
        _log.warning("Failed to write empty metadata for group %r: %s", group.group_id, error.code.name)
        shard.schedule_join(group, now, EMPTY_RETRY_MS)
        return CoordinatorResult()

    assert out.failed is None
    out.failed = failed


def fail_syncs(
    shard: "GroupShard", group: ClassicGroup, code: ErrorCode, out: CoordinatorResult, now: Now
) -> Paced[None]:
    """The generation failed: answer all waiting SyncGroups with the error."""
    for member in group.members.values():
        member.assignment = b""
        if answer_sync(member, out, SyncGroupResponse(error_code=code)):
            shard.start_session(group, member, now)
        yield STEP // 2


def sync_time_is_up(
    shard: "GroupShard", group: ClassicGroup, out: CoordinatorResult, now: Now
) -> Paced[None]:
    """Remove members that joined the generation but never sent a SyncGroup."""
    if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE) or not group.pending_sync:
        return
    silent = list(group.pending_sync)
    for member_id in silent:
        remove_member(shard, group, group.members[member_id], out)
        yield STEP
    yield from prepare(shard, group, out, now, f"removing {silent} on pending sync request expiration")


def session_is_over(
    shard: "GroupShard", group: ClassicGroup, member_id: str, out: CoordinatorResult, now: Now
) -> Paced[None]:
    """The session of a member is over, or a new member id was not used in time."""
    if member_id in group.pending_join:
        _log.info(
            "Pending member %r in group %r has been removed after session timeout", member_id, group.group_id
        )
        group.remove(member_id)
        if group.state is GroupState.PREPARING_REBALANCE and group.all_joined:
            yield from complete(shard, group, out, now)
        return
    member = group.members.get(member_id)
    if member is None or member.keeps_alive:
        return
    _log.info("Member %r in group %r has failed, removing it from the group", member_id, group.group_id)
    remove_member(shard, group, member, out)
    if group.state is GroupState.PREPARING_REBALANCE:
        if group.all_joined:
            yield from complete(shard, group, out, now)
    else:
        yield from rebalance(shard, group, out, now, f"removing member {member_id} on heartbeat expiration")
