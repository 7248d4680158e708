"""LeaveGroup v0-v5: members leave, several in one request since v3. No deviation from Apache."""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.coordinators.groups.commands import LeaveGroup, LeavingMember
from odradek.coordinators.groups.coordinator import GroupCoordinator
from odradek.coordinators.groups.replies import LeaveGroupResponse, LeaveGroupResponseMember
from odradek.core.errors import ErrorCode
from odradek.runtime.slices import FEW, Slices
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.leave_group import LeaveGroupRequest


class Needs(Protocol):
    groups: GroupCoordinator
    slices: Slices


@serves(ApiKey.LEAVE_GROUP, min_version=0, max_version=5)
async def leave_group(ctx: RequestContext[Needs], request: "LeaveGroupRequest") -> Any:
    pace = ctx.services.slices.pacer()
    leaving = []
    for m in request.members:
        leaving.append(LeavingMember(m.member_id, m.group_instance_id, m.reason))
        await pace(FEW)
    answer = await ctx.services.groups.leave_group(LeaveGroup(request.group_id, leaving))
    if answer.error_code != ErrorCode.UNKNOWN_MEMBER_ID:
        return answer
    members = []
    for member in leaving:
        members.append(
            LeaveGroupResponseMember(member.member_id, member.group_instance_id, answer.error_code)
        )
        await pace(FEW)
    return LeaveGroupResponse(members=members)
