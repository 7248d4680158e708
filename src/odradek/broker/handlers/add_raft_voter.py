"""AddRaftVoter v0-v1: a controller becomes a voter of the metadata quorum (KIP-853). The leader decides.

DUPLICATE_VOTER for an id that votes already, UNSUPPORTED_VERSION while kraft.version is 0, REQUEST_TIMED_OUT
while another change is under way and for a controller that lags or does not answer.
"""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.metadata.channel import ControllerChannel
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.add_raft_voter import AddRaftVoterRequest


class Needs(Protocol):
    controller: ControllerChannel


@serves(ApiKey.ADD_RAFT_VOTER, min_version=0, max_version=1)
async def add_raft_voter(ctx: RequestContext[Needs], request: "AddRaftVoterRequest") -> Any:
    return await ctx.services.controller.call(ApiKey.ADD_RAFT_VOTER, request, ctx.requester)
