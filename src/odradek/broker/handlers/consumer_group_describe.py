"""ConsumerGroupDescribe v0-v1: state, epochs and members of consumer groups; the members' protocol in v1.

Deviation: a group that occurs twice is answered once, because a small request could ask for its members many
times.
"""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.authorized import GROUP_OPERATIONS
from odradek.broker.dispatch import RequestContext, serves
from odradek.coordinators.groups.coordinator import GroupCoordinator
from odradek.coordinators.groups.replies import DescribedConsumerGroup
from odradek.core.errors import ErrorCode
from odradek.runtime.slices import STEP, Slices
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.consumer_group_describe import ConsumerGroupDescribeRequest


class Needs(Protocol):
    groups: GroupCoordinator
    slices: Slices


@serves(ApiKey.CONSUMER_GROUP_DESCRIBE, min_version=0, max_version=1)
async def consumer_group_describe(ctx: RequestContext[Needs], request: "ConsumerGroupDescribeRequest") -> Any:
    types = responses.consumer_group_describe
    asked = dict.fromkeys(request.group_ids)
    pace = ctx.services.slices.pacer()
    if not ctx.services.groups.serves_consumer_groups:
        code = ErrorCode.UNSUPPORTED_VERSION
        refused: list[Any] = []  # with the field names of the wire, as below
        for group_id in asked:
            refused.append(DescribedConsumerGroup(group_id=group_id, error_code=code))
            await pace(STEP)
        return types.ConsumerGroupDescribeResponse(groups=refused)
    replies = []
    for group_id in asked:
        replies.append(ctx.services.groups.describe_consumer_group(group_id))
        await pace(2 * STEP)
    groups: list[Any] = []
    for reply in replies:
        group = await reply
        groups.append(group)
        await pace(STEP)
        if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = GROUP_OPERATIONS
    return types.ConsumerGroupDescribeResponse(groups=groups)
