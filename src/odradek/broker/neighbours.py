"""Looks at the other controllers before a node takes part in its quorum, and refuses what cannot go well.

A controller of another cluster, another node with the id of this one, a quorum of other voters. Those that do
not answer at once are left out: this is no promise, but a mistake in a configuration is named where it was
made.
"""

import asyncio
from collections.abc import Collection, Iterable
from typing import Final

from odradek.core.configs import NodeConfig
from odradek.core.types import uuid_to_text
from odradek.metadata.formatting import new_id
from odradek.raft.first_questions import FirstQuestions, Presence
from odradek.raft.opening import QuorumError
from odradek.raft.peers import Endpoint
from odradek.raft.settings import bootstrap_servers
from odradek.raft.voters import VoterSet
from odradek.runtime.api import Runtime

_TIMEOUT_MS: Final = 1000


async def check_neighbours(
    config: NodeConfig,
    runtime: Runtime,
    voters: VoterSet | None,
    cluster_id: str,
    asked_by: Collection[str | None],
) -> None:
    """Raises QuorumError. `asked_by` has the client ids of those that asked this node meanwhile: by that it
    knows its own address."""
    is_static = config.is_controller and bool(config.list("controller.quorum.voters"))
    expected = frozenset(voters.ids) if voters and is_static else frozenset[int]()
    looking = _Looking(config.node_id, runtime, cluster_id, expected, asked_by)
    first = [(e.host, e.port) for voter in (voters.voters if voters else ()) for e in voter.endpoints[:1]]
    first += bootstrap_servers(config)
    listed = await looking.look_at(dict.fromkeys(first))
    await looking.look_at(endpoint for endpoint in dict.fromkeys(listed) if endpoint not in first)


class _Looking:
    def __init__(
        self,
        node_id: int,
        runtime: Runtime,
        cluster_id: str,
        static_voters: frozenset[int],
        asked_by: Collection[str | None],
    ) -> None:
        self._node_id = node_id
        self._runtime = runtime
        self._cluster_id = cluster_id
        self._static_voters = static_voters
        self._asked_by = asked_by

    async def look_at(self, endpoints: Iterable[Endpoint]) -> list[Endpoint]:
        """Other addresses under which somebody knows a controller with the id of this node."""
        listed: list[Endpoint] = []
        for found in await asyncio.gather(*(self._look(endpoint) for endpoint in endpoints)):
            if found is not None and self._node_id in found.controllers:
                listed.append(found.controllers[self._node_id])
        return listed

    async def _look(self, endpoint: Endpoint) -> Presence | None:
        """With a client id that nobody else has."""
        suffix = f"-{uuid_to_text(new_id(self._runtime.rng))}"
        questions = FirstQuestions(self._runtime, self._node_id, _TIMEOUT_MS, suffix=suffix)
        found = await questions.presence(endpoint, self._node_id)
        if found is None or questions.client_id in self._asked_by:
            return None
        host, port = endpoint
        if found.cluster_id not in ("", self._cluster_id):
            raise QuorumError(
                f"the controller at {host}:{port} belongs to cluster {found.cluster_id}, and the directories "
                f"of this node to cluster {self._cluster_id}"
            )
        if found.has_same_id:
            raise QuorumError(
                f"node {self._node_id} runs already, at {host}:{port}: two nodes cannot have the same node.id"
            )
        if self._static_voters and found.static_voters and self._static_voters != set(found.static_voters):
            raise QuorumError(
                f"the quorum that the controller at {host}:{port} leads has the voters "
                f"{sorted(found.static_voters)}, and controller.quorum.voters of this node names "
                f"{sorted(self._static_voters)}"
            )
        return found
