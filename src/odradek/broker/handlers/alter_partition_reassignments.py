"""AlterPartitionReassignments v0-v1: Apache's answers where nothing has to move; decided by the controller.

NONE where a partition has these replicas already, NO_REASSIGNMENT_IN_PROGRESS (without a message) where one
is called off. Deviation: INVALID_REPLICA_ASSIGNMENT where replicas would have to move or a move would be
called off.
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
    return await ctx.services.controller.call(ApiKey.ALTER_PARTITION_REASSIGNMENTS, request)
