"""LeaveGroup v0-v5: members leave, several at once from v3 on. No deviation from Apache."""

from typing import Any

from odradek.broker.dispatch import RequestContext, serves
from odradek.coordinators.groups.commands import LeaveGroup, LeavingMember
from odradek.runtime.reply import Reply
from odradek.wire.api_keys import ApiKey


@serves(ApiKey.LEAVE_GROUP, min_version=0, max_version=5)
def leave_group(ctx: RequestContext, request: Any) -> Reply[Any]:
    leaving = [LeavingMember(m.member_id, m.group_instance_id, m.reason) for m in request.members]
    return ctx.node.groups.leave_group(LeaveGroup(request.group_id, leaving))
