"""LeaveGroup: members leave by their id. An administrator can remove static members by their instance id."""

import logging
from typing import TYPE_CHECKING

from odradek.coordinators.groups.classic.group import ClassicGroup
from odradek.coordinators.groups.classic.rebalance import complete_if_joined, rebalance, remove_member
from odradek.coordinators.groups.classic.states import GroupState
from odradek.coordinators.groups.commands import LeaveGroup, LeavingMember
from odradek.coordinators.groups.consumer import classic_members
from odradek.coordinators.groups.consumer.group import ConsumerGroup
from odradek.coordinators.groups.replies import LeaveGroupResponse, LeaveGroupResponseMember
from odradek.coordinators.shard import CoordinatorResult, Now, Ticket
from odradek.core.errors import ErrorCode, KafkaError
from odradek.runtime.slices import STEP, Paced

if TYPE_CHECKING:
    from odradek.coordinators.groups.shard import GroupShard

_log = logging.getLogger(__name__)


def leave(shard: "GroupShard", command: LeaveGroup, ticket: Ticket, now: Now) -> Paced[CoordinatorResult]:
    group = shard.groups.get(command.group_id)
    if isinstance(group, ConsumerGroup):
        return (yield from classic_members.leave(shard, group, command, now))
    if not isinstance(group, ClassicGroup):
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    out = CoordinatorResult()
    answers = []
    for leaving in command.members:
        try:
            _leave_one(shard, group, leaving, out)
            code = ErrorCode.NONE
        except KafkaError as e:
            code = e.code
        answers.append(LeaveGroupResponseMember(leaving.member_id, leaving.group_instance_id, code))
        yield 2 * STEP
    out.response = LeaveGroupResponse(members=answers)
    if any(answer.error_code == ErrorCode.NONE for answer in answers):
        if group.state is GroupState.PREPARING_REBALANCE:
            yield from complete_if_joined(shard, group, out, now)
        elif group.state is not GroupState.EMPTY:
            yield from rebalance(shard, group, out, now, "explicit LeaveGroup request")
    return out


def _leave_one(
    shard: "GroupShard", group: ClassicGroup, leaving: LeavingMember, out: CoordinatorResult
) -> None:
    if leaving.member_id:
        if leaving.member_id in group.pending_join:
            group.remove(leaving.member_id)
            shard.end_session(group, leaving.member_id)
            return
        member = group.validate_member(leaving.member_id, leaving.group_instance_id)
    else:
        current = group.static_members.get(leaving.group_instance_id or "")
        if leaving.group_instance_id is None or current is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        member = group.members[current]
    _log.info(
        "Member %r has left group %r through explicit LeaveGroup; client reason: %r",
        member.member_id,
        group.group_id,
        leaving.reason or "not provided",
    )
    remove_member(shard, group, member, out)
