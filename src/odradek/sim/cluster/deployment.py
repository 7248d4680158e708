"""The nodes of a simulated cluster: their roles, their configuration, and their disks before the first start.

Every node has a host of its own. The metadata log is short-lived on purpose: snapshots are taken every second
or so and the log before them goes, so that a node that was away for a while has to fetch one.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from random import Random
from typing import Final, NamedTuple

from odradek.broker.node import Node
from odradek.core.configs import NodeConfig
from odradek.core.types import uuid_to_text
from odradek.log.managing.log_dir import LogDir
from odradek.metadata.formatting import STATIC, FirstVoters, new_id, prepare_directories
from odradek.raft.voters import Voter, VoterEndpoint, VoterSet
from odradek.sim.world.cluster import DATA_DIR
from odradek.sim.world.runtime import SimRuntime

BROKER_PORT: Final = 9092
CONTROLLER_PORT: Final = 9093
_BROKER, _CONTROLLER = "PLAINTEXT", "CONTROLLER"


class Layout(Enum):
    """Which nodes a cluster has, by the roles of each."""

    COMBINED = ("broker,controller",) * 3
    SEPARATE = ("controller",) * 3 + ("broker",) * 2


class ReplicatedLayout(Enum):
    """The same, where three replicas must find their brokers."""

    COMBINED = ("broker,controller",) * 3
    WIDE = ("broker,controller",) * 3 + ("broker",) * 2


class Member(NamedTuple):
    """A node of the cluster, on the host of its name."""

    node_id: int
    host: str
    roles: str

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles


class Deployment:
    """One cluster. Its quorum is of kraft.version 1 (the log names the voters), or 0 (the configuration)."""

    def __init__(
        self,
        layout: Layout | ReplicatedLayout,
        rng: Random,
        *,
        is_static: bool,
        settings: Mapping[str, str],
    ) -> None:
        self.members = tuple(Member(i, f"node{i}", roles) for i, roles in enumerate(layout.value, 1))
        self.cluster_id = uuid_to_text(new_id(rng))
        self._is_static = is_static
        self._settings = settings
        self._voters = VoterSet(
            Voter(m.node_id, new_id(rng), (VoterEndpoint(_CONTROLLER, m.host, CONTROLLER_PORT),))
            for m in self.controllers
        )

    @property
    def controllers(self) -> Sequence[Member]:
        return [member for member in self.members if member.is_controller]

    @property
    def brokers(self) -> Sequence[Member]:
        return [member for member in self.members if member.is_broker]

    def config(self, member: Member) -> NodeConfig:
        listeners = []
        if member.is_broker:
            listeners.append(f"{_BROKER}://{member.host}:{BROKER_PORT}")
        if member.is_controller:
            listeners.append(f"{_CONTROLLER}://{member.host}:{CONTROLLER_PORT}")
        if self._is_static:
            voters = ",".join(f"{m.node_id}@{m.host}:{CONTROLLER_PORT}" for m in self.controllers)
            quorum = {"controller.quorum.voters": voters}
        else:
            servers = ",".join(f"{m.host}:{CONTROLLER_PORT}" for m in self.controllers)
            quorum = {"controller.quorum.bootstrap.servers": servers}
        properties = {
            "node.id": str(member.node_id),
            "process.roles": member.roles,
            "listeners": ",".join(listeners),
            "controller.listener.names": _CONTROLLER,
            "log.dirs": DATA_DIR,
            **quorum,
        }
        return NodeConfig.from_sources(properties, dict(self._settings))[0]

    def format(self, member: Member, runtime: SimRuntime) -> None:
        """What `odradek cluster format` does on the host of a node, before its first start."""
        config = self.config(member)
        directory = LogDir(runtime.disk, DATA_DIR)
        directory.open()
        prepare_directories(
            runtime,
            [directory],
            node_id=member.node_id,
            metadata_log_dir=DATA_DIR,
            controller_endpoints=[
                VoterEndpoint(c.name, c.host, c.port) for c in config.advertised_controller_listeners
            ],
            cluster_id=self.cluster_id,
            first_voters=STATIC if self._is_static else FirstVoters(voters=self._voters),
        )
        directory.unlock()

    def node(self, member: Member, runtime: SimRuntime) -> Node:
        return Node(self.config(member), runtime)
