"""ElectLeaders v0-v2: the controller decides. The answer leaves when the new leaders are committed.

ELECTION_NOT_NEEDED if the preferred replica leads, or in an unclean election any replica. null asks for all
topics: then such partitions are omitted, but not their topics. v0 elects the preferred replica.
"""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.metadata.channel import ControllerChannel
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.elect_leaders import ElectLeadersRequest


class Needs(Protocol):
    controller: ControllerChannel


@serves(ApiKey.ELECT_LEADERS, min_version=0, max_version=2)
async def elect_leaders(ctx: RequestContext[Needs], request: "ElectLeadersRequest") -> Any:
    return await ctx.services.controller.call(ApiKey.ELECT_LEADERS, request, ctx.requester)
