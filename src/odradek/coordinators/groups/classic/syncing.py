"""SyncGroup and Heartbeat: the leader sends the assignment, members get theirs and stay alive."""

import logging
from typing import TYPE_CHECKING

from odradek.coordinators.errors import coordinator_error
from odradek.coordinators.groups.classic.group import ClassicGroup
from odradek.coordinators.groups.classic.rebalance import answer_sync, fail_syncs, park_sync, prepare, synced
from odradek.coordinators.groups.classic.states import GroupState
from odradek.coordinators.groups.commands import Heartbeat, SyncGroup
from odradek.coordinators.groups.consumer import classic_members
from odradek.coordinators.groups.consumer.group import ConsumerGroup
from odradek.coordinators.groups.replies import HeartbeatResponse, SyncGroupResponse
from odradek.coordinators.records import GroupMetadataKey
from odradek.coordinators.shard import CoordinatorResult, Now, Ticket
from odradek.core.errors import ErrorCode, KafkaError
from odradek.runtime.slices import STEP, Paced, gathered

if TYPE_CHECKING:
    from odradek.coordinators.groups.shard import GroupShard

_log = logging.getLogger(__name__)


def sync(shard: "GroupShard", command: SyncGroup, ticket: Ticket, now: Now) -> Paced[CoordinatorResult]:
    group = shard.groups.get(command.group_id)
    if isinstance(group, ConsumerGroup) and group.members:
        return (yield from classic_members.sync(shard, group, command, now))
    if not isinstance(group, ClassicGroup) or group.state is GroupState.EMPTY:
        return CoordinatorResult(SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    try:
        member = group.validate_member(command.member_id, command.group_instance_id)
    except KafkaError as e:
        return CoordinatorResult(SyncGroupResponse(error_code=e.code))
    if command.generation_id != group.generation_id:
        return CoordinatorResult(SyncGroupResponse(error_code=ErrorCode.ILLEGAL_GENERATION))
    if _differs(command.protocol_type, group.protocol_type) or _differs(
        command.protocol_name, group.protocol_name
    ):
        return CoordinatorResult(SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    if group.state is GroupState.PREPARING_REBALANCE:
        return CoordinatorResult(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    group.pending_sync.pop(member.member_id, None)
    if not group.pending_sync:
        shard.cancel_sync(group)
    if group.state is GroupState.STABLE:
        return CoordinatorResult(synced(group, member))
    out = CoordinatorResult()
    park_sync(member, ticket, out)
    if group.leader_id == member.member_id:
        yield from _assign(shard, group, command, out, now)
    return out


def _differs(asked: str | None, agreed: str | None) -> bool:
    return asked is not None and agreed is not None and asked != agreed


def _assign(
    shard: "GroupShard", group: ClassicGroup, command: SyncGroup, out: CoordinatorResult, now: Now
) -> Paced[None]:
    """Write the leader's assignment. When it is in the log, all waiting members get theirs."""
    given = dict(command.assignments)
    assignments = {member_id: given.get(member_id, b"") for member_id in group.members}
    missing = [member_id for member_id in assignments if member_id not in given]
    yield len(assignments)
    if missing:
        _log.warning(
            "Setting empty assignments for members %s of %r for generation %d",
            missing,
            group.group_id,
            group.generation_id,
        )
    record = yield from gathered(group.record(assignments, now.wall_ms))
    out.records.append((GroupMetadataKey(group=group.group_id), record))
    out.is_long = True

    def replayed(now: Now) -> Paced[CoordinatorResult]:
        done = CoordinatorResult()
        for member in group.members.values():
            if answer_sync(member, done, synced(group, member)):
                shard.start_session(group, member, now)
            yield STEP // 2
        return done

    def failed(error: KafkaError, now: Now) -> Paced[CoordinatorResult]:
        done = CoordinatorResult()
        code = coordinator_error(error.code)
        yield from fail_syncs(shard, group, code, done, now)
        yield from prepare(shard, group, done, now, f"error {code.name} when storing the group assignment")
        return done

    out.then, out.failed = replayed, failed


def heartbeat(
    shard: "GroupShard", command: Heartbeat, ticket: Ticket, now: Now
) -> CoordinatorResult | Paced[CoordinatorResult]:
    group = shard.groups.get(command.group_id)
    if isinstance(group, ConsumerGroup):
        return classic_members.heartbeat(shard, group, command, now)
    if not isinstance(group, ClassicGroup):
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    member = group.validate_member(command.member_id, command.group_instance_id)
    if command.generation_id != group.generation_id:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    shard.start_session(group, member, now)
    if group.state is GroupState.PREPARING_REBALANCE:
        return CoordinatorResult(HeartbeatResponse(ErrorCode.REBALANCE_IN_PROGRESS))
    return CoordinatorResult(HeartbeatResponse())
