"""ElectLeaders v0-v2: decided by the controller, answered once the new leaders are committed.

ELECTION_NOT_NEEDED where the preferred replica leads, or (unclean) anybody; null asks for all topics, and
such partitions are left out of that answer, not their topics. v0 elects the preferred replica.
"""

from typing import Any

from odradek.broker.dispatch import RequestContext, serves
from odradek.wire.api_keys import ApiKey


@serves(ApiKey.ELECT_LEADERS, min_version=0, max_version=2)
async def elect_leaders(ctx: RequestContext, request: Any) -> Any:
    return await ctx.node.controller.call(ApiKey.ELECT_LEADERS, request)
