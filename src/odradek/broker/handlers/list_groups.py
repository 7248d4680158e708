"""ListGroups v0-v5: the groups that this node coordinates. Filters by state since v4, by type since v5.

No deviation from Apache: filters ignore case, and an unknown value matches nothing.
"""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.coordinators.groups.commands import ListGroups
from odradek.coordinators.groups.coordinator import GroupCoordinator
from odradek.core.errors import ErrorCode
from odradek.runtime.slices import FEW, Slices
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.list_groups import ListGroupsRequest


class Needs(Protocol):
    groups: GroupCoordinator
    slices: Slices


@serves(ApiKey.LIST_GROUPS, min_version=0, max_version=5)
async def list_groups(ctx: RequestContext[Needs], request: "ListGroupsRequest") -> Any:
    types = responses.list_groups
    pace = ctx.services.slices.pacer()
    states, kinds = set[str](), set[str]()
    for filters, wanted in ((request.states_filter, states), (request.types_filter, kinds)):
        for text in filters:
            wanted.add(text.lower())
            await pace(FEW)
    found = await ctx.services.groups.list_groups(ListGroups(frozenset(states), frozenset(kinds)))
    if isinstance(found, ErrorCode):
        return types.ListGroupsResponse(error_code=found)
    groups: list[Any] = found  # with the field names of the wire
    return types.ListGroupsResponse(groups=groups)
