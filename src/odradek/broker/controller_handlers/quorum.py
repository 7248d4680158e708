"""What the replicas of the metadata log ask of each other: votes, epochs, records, snapshots, voter changes.

Vote v0-v2, BeginQuorumEpoch v0-v1, EndQuorumEpoch v0-v1, Fetch v4-v18 (of the metadata log alone),
FetchSnapshot v0-v1, AddRaftVoter v0-v1, RemoveRaftVoter v0, UpdateRaftVoter v0. All go to the replica of this
node (raft/driver.py), which answers when its answer is durable.
"""

from typing import Any, Protocol

from odradek.broker.apis import ASKED_OF_REPLICA, CONTROLLER_APIS
from odradek.broker.dispatch import RequestContext, serves_controller
from odradek.raft.serving import ReplicaService
from odradek.wire.api_keys import ApiKey


class Needs(Protocol):
    replica: ReplicaService


def _register(api_key: ApiKey) -> None:
    async def asked(ctx: RequestContext[Needs], request: Any) -> Any:
        return await ctx.services.replica.receive(api_key, ctx.api_version, request)

    first, last = CONTROLLER_APIS.served[api_key]
    serves_controller(api_key, min_version=first, max_version=last)(asked)


for _api_key in ASKED_OF_REPLICA:
    _register(_api_key)
