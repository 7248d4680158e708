"""AlterPartitionReassignments v0-v1: the controller decides.

NONE if a partition already has these replicas. NO_REASSIGNMENT_IN_PROGRESS (without a message) for the
cancellation of a reassignment that does not exist. Deviation: INVALID_REPLICA_ASSIGNMENT if replicas would
have to move, or a reassignment would have to be cancelled.
"""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.metadata.channel import ControllerChannel
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.alter_partition_reassignments import AlterPartitionReassignmentsRequest


class Needs(Protocol):
    controller: ControllerChannel


@serves(ApiKey.ALTER_PARTITION_REASSIGNMENTS, min_version=0, max_version=1)
async def alter_partition_reassignments(
    ctx: RequestContext[Needs], request: "AlterPartitionReassignmentsRequest"
) -> Any:
    return await ctx.services.controller.call(ApiKey.ALTER_PARTITION_REASSIGNMENTS, request, ctx.requester)
