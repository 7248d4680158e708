"""DeleteGroups v0-v2: removes empty groups and their offsets. No deviation from Apache."""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.coordinators.groups.coordinator import GroupCoordinator
from odradek.runtime.slices import STEP, Slices
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.delete_groups import DeleteGroupsRequest


class Needs(Protocol):
    groups: GroupCoordinator
    slices: Slices


@serves(ApiKey.DELETE_GROUPS, min_version=0, max_version=2)
async def delete_groups(ctx: RequestContext[Needs], request: "DeleteGroupsRequest") -> Any:
    types = responses.delete_groups
    group_ids = dict.fromkeys(request.groups_names)
    pace = ctx.services.slices.pacer()
    deleted = {}
    for group_id in group_ids:
        deleted[group_id] = ctx.services.groups.delete_group(group_id)
        await pace(3 * STEP)
    results = []
    for group_id, code in deleted.items():
        results.append(types.DeletableGroupResult(group_id=group_id, error_code=await code))
        await pace(STEP)
    return types.DeleteGroupsResponse(results=results)
