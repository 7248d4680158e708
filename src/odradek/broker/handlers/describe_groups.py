"""DescribeGroups v0-v6: state and members of classic groups.

Up to v5 an unknown group is Dead without an error, since v6 it is GROUP_ID_NOT_FOUND with a message.
Deviations: groups are in the order of the request, in Apache in the order of partitions. A group that occurs
twice is answered once, because a small request could ask for its members many times.
"""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.authorized import GROUP_OPERATIONS
from odradek.broker.dispatch import RequestContext, serves
from odradek.coordinators.groups.coordinator import GroupCoordinator
from odradek.core.errors import ErrorCode
from odradek.runtime.slices import STEP, Slices
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.describe_groups import DescribeGroupsRequest

_FIRST_WITH_NOT_FOUND = 6


class Needs(Protocol):
    groups: GroupCoordinator
    slices: Slices


@serves(ApiKey.DESCRIBE_GROUPS, min_version=0, max_version=6)
async def describe_groups(ctx: RequestContext[Needs], request: "DescribeGroupsRequest") -> Any:
    types = responses.describe_groups
    pace = ctx.services.slices.pacer()
    asked = []
    for group_id in dict.fromkeys(request.groups):
        asked.append(ctx.services.groups.describe_group(group_id))
        await pace(2 * STEP)
    groups: list[Any] = []  # with the field names of the wire
    for reply in asked:
        group = await reply
        groups.append(group)
        await pace(STEP)
        not_found = group.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        if not_found and ctx.api_version < _FIRST_WITH_NOT_FOUND:
            group.error_code = ErrorCode.NONE
        if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = GROUP_OPERATIONS
    return types.DescribeGroupsResponse(groups=groups)
