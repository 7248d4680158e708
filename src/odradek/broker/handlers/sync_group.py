"""SyncGroup v0-v5: the leader sends the assignment, and every member gets its own. The answer waits for the
leader.

Since v5 protocol type and name are required (KIP-559). No deviation from Apache.
"""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.coordinators.groups.commands import SyncGroup
from odradek.coordinators.groups.coordinator import GroupCoordinator
from odradek.coordinators.groups.replies import SyncGroupResponse
from odradek.core.errors import ErrorCode
from odradek.runtime.reply import Reply
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.sync_group import SyncGroupRequest

_FIRST_WITH_PROTOCOL = 5


class Needs(Protocol):
    groups: GroupCoordinator


@serves(ApiKey.SYNC_GROUP, min_version=0, max_version=5)
def sync_group(ctx: RequestContext[Needs], request: "SyncGroupRequest") -> Reply[Any]:
    if ctx.api_version >= _FIRST_WITH_PROTOCOL and None in (request.protocol_type, request.protocol_name):
        return Reply(SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    command = SyncGroup(
        group_id=request.group_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        generation_id=request.generation_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments=[(a.member_id, a.assignment) for a in request.assignments],
    )
    return ctx.services.groups.sync_group(command)
