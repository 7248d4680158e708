"""JoinGroup v0-v9: a member joins the next generation of its group. The answer waits until that starts.

Since v4 a member without an id first gets one and must join again (KIP-394). A v9 client supports
`skip_assignment`. Deviation: a member with more than MAX_PROTOCOLS protocols is refused. Apache compares all
of them with those of every other member.
"""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.coordinators.groups.commands import JoinGroup, MemberProtocol
from odradek.coordinators.groups.coordinator import GroupCoordinator
from odradek.coordinators.groups.replies import JoinGroupResponse
from odradek.core.errors import ErrorCode
from odradek.runtime.reply import Reply
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.join_group import JoinGroupRequest

_FIRST_WITH_REQUIRED_ID = 4
_FIRST_WITH_NULL_PROTOCOL = 7
_FIRST_WITH_SKIPPED_ASSIGNMENT = 9
MAX_PROTOCOLS = 100


class Needs(Protocol):
    groups: GroupCoordinator


@serves(ApiKey.JOIN_GROUP, min_version=0, max_version=9)
def join_group(ctx: RequestContext[Needs], request: "JoinGroupRequest") -> Reply[Any]:
    groups = ctx.services.groups
    client_id = ctx.client_id or ""
    if len(request.protocols) > MAX_PROTOCOLS:
        code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        refused = JoinGroupResponse(error_code=code, member_id=request.member_id)
        return Reply(refused if ctx.api_version >= _FIRST_WITH_NULL_PROTOCOL else _without_null(refused))
    protocols: dict[str, MemberProtocol] = {}
    for protocol in request.protocols:
        protocols.setdefault(protocol.name, MemberProtocol(protocol.name, protocol.metadata))
    command = JoinGroup(
        group_id=request.group_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        client_id=client_id,
        client_host=ctx.client_host,
        session_timeout_ms=request.session_timeout,
        rebalance_timeout_ms=request.rebalance_timeout,
        protocol_type=request.protocol_type,
        protocols=tuple(protocols.values()),
        new_member_id=groups.new_member_id(client_id, request.group_instance_id),
        known_member_required=ctx.api_version >= _FIRST_WITH_REQUIRED_ID,
        can_skip_assignment=ctx.api_version >= _FIRST_WITH_SKIPPED_ASSIGNMENT,
    )
    reply = groups.join_group(command)
    return reply if ctx.api_version >= _FIRST_WITH_NULL_PROTOCOL else reply.then(_without_null)


def _without_null(response: JoinGroupResponse) -> JoinGroupResponse:
    if response.protocol_name is None:
        response.protocol_name = ""
    return response
