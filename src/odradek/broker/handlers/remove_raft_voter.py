"""RemoveRaftVoter v0: a voter of the metadata quorum becomes an observer (KIP-853). The leader decides.

VOTER_NOT_FOUND for an id that does not vote with this directory, INVALID_REQUEST for the last voter,
UNSUPPORTED_VERSION while kraft.version is 0, REQUEST_TIMED_OUT while another change is under way. A leader
that is removed resigns when its removal is committed.
"""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.metadata.channel import ControllerChannel
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.remove_raft_voter import RemoveRaftVoterRequest


class Needs(Protocol):
    controller: ControllerChannel


@serves(ApiKey.REMOVE_RAFT_VOTER, min_version=0, max_version=0)
async def remove_raft_voter(ctx: RequestContext[Needs], request: "RemoveRaftVoterRequest") -> Any:
    return await ctx.services.controller.call(ApiKey.REMOVE_RAFT_VOTER, request, ctx.requester)
