"""A cluster on one machine, as configuration: node ids, ports, directories, first voters. Pure.

Up to three nodes are all controllers; of more, the first three are.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from odradek.raft.voters import Voter, VoterEndpoint, VoterSet

HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 9092
BROKER, CONTROLLER = "PLAINTEXT", "CONTROLLER"
MOST_CONTROLLERS: Final = 3
_TWO_REPLICAS: Final = {
    "offsets.topic.replication.factor": "2",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.min.isr": "1",
}
"""Of internal topics, on two brokers: the defaults want three, and would leave no node to do without."""


class NodePorts(NamedTuple):
    broker: int
    controller: int


class PlannedNode(NamedTuple):
    """`properties` is the whole server.properties of the node."""

    node_id: int
    address: str
    properties: Mapping[str, str]


class ClusterPlan(NamedTuple):
    """`voters` are the first ones of a new cluster; one that is known has them in its log."""

    nodes: tuple[PlannedNode, ...]
    voters: VoterSet | None = None

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(node.address for node in self.nodes)


def plan_cluster(
    folder: str, ports: Sequence[NodePorts], directory_ids: Sequence[UUID], settings: Mapping[str, str]
) -> ClusterPlan:
    """One node for each pair of ports; `settings` are given to all of them."""
    controllers = min(len(ports), MOST_CONTROLLERS)
    voters = VoterSet(
        Voter(i, directory_ids[i - 1], (VoterEndpoint(CONTROLLER, HOST, ports[i - 1].controller),))
        for i in range(1, controllers + 1)
    )
    quorum = ",".join(f"{HOST}:{pair.controller}" for pair in ports[:controllers])
    nodes = []
    for i, pair in enumerate(ports, 1):
        is_controller = i <= controllers
        listeners = [f"{BROKER}://{HOST}:{pair.broker}"]
        if is_controller:
            listeners.append(f"{CONTROLLER}://{HOST}:{pair.controller}")
        properties = {
            "node.id": str(i),
            "process.roles": "broker,controller" if is_controller else "broker",
            "listeners": ",".join(listeners),
            "controller.listener.names": CONTROLLER,
            "controller.quorum.bootstrap.servers": quorum,
            "log.dirs": f"{folder}/node-{i}",
            **(_TWO_REPLICAS if len(ports) == 2 else {}),
            **settings,
        }
        nodes.append(PlannedNode(i, f"{HOST}:{pair.broker}", properties))
    return ClusterPlan(tuple(nodes), voters)


def properties_text(properties: Mapping[str, str]) -> str:
    return "".join(f"{key}={value}\n" for key, value in properties.items())


def known_cluster(properties: Sequence[Mapping[str, str]]) -> ClusterPlan:
    """The cluster of files that `properties_text` wrote before."""
    nodes = []
    for values in properties:
        address = next(
            listener.partition("://")[2]
            for listener in values["listeners"].split(",")
            if listener.startswith(f"{BROKER}://")
        )
        nodes.append(PlannedNode(int(values["node.id"]), address, values))
    return ClusterPlan(tuple(sorted(nodes)))
