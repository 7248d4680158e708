"""DescribeQuorum v0-v2: voters, leader and high watermark of the metadata log, from the controller."""

from typing import Any

from odradek.broker.dispatch import RequestContext, serves
from odradek.wire.api_keys import ApiKey


@serves(ApiKey.DESCRIBE_QUORUM, min_version=0, max_version=2)
async def describe_quorum(ctx: RequestContext, request: Any) -> Any:
    return await ctx.node.controller.call(ApiKey.DESCRIBE_QUORUM, request)
