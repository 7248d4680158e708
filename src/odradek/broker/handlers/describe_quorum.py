"""DescribeQuorum v0-v2: voters, leader and high watermark of the metadata log, from the controller."""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.metadata.channel import ControllerChannel
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.describe_quorum import DescribeQuorumRequest


class Needs(Protocol):
    controller: ControllerChannel


@serves(ApiKey.DESCRIBE_QUORUM, min_version=0, max_version=2)
async def describe_quorum(ctx: RequestContext[Needs], request: "DescribeQuorumRequest") -> Any:
    return await ctx.services.controller.call(ApiKey.DESCRIBE_QUORUM, request, ctx.requester)
