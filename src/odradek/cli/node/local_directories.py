"""What a new cluster on this machine needs before its nodes start: free ports, formatted directories."""

import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from random import Random

from odradek.cli.errors import Failure
from odradek.cli.node.formatting import format_node
from odradek.cli.node.local_plan import DEFAULT_PORT, HOST, ClusterPlan, NodePorts, plan_cluster
from odradek.core.configs import NodeConfig
from odradek.core.types import uuid_to_text
from odradek.metadata.formatting import OBSERVER, FirstVoters, new_id


def free_ports(count: int, first: int | None = 0) -> list[NodePorts]:
    """Broker ports from the first on; 0 means any. Where the default ones (None) are taken, any; a given one
    must be free."""
    wanted = DEFAULT_PORT if first is None else first
    brokers = [wanted + i if wanted else 0 for i in range(count)]
    with ExitStack() as held:
        try:
            found = [_bind(held, port) for port in brokers]
        except OSError as e:
            if first is not None:
                raise Failure(f"port {first} and above: {e.strerror}", "next: odradek up --port 0") from e
            found = [_bind(held, 0) for _ in brokers]
        return [NodePorts(port, _bind(held, 0)) for port in found]


def _bind(held: ExitStack, port: int) -> int:
    sock = held.enter_context(socket.socket())
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((HOST, port))
    bound: int = sock.getsockname()[1]
    return bound


def format_cluster(folder: str, ports: Sequence[NodePorts], settings: Mapping[str, str]) -> ClusterPlan:
    """Plan a node for each pair of ports, and format its directories. ConfigError, Failure."""
    rng = Random()
    plan = plan_cluster(folder, ports, [new_id(rng) for _ in ports], settings)
    cluster_id = uuid_to_text(new_id(rng))
    for node in plan.nodes:
        config, _ = NodeConfig.from_sources({}, node.properties)
        format_node(config, cluster_id, FirstVoters(voters=plan.voters) if config.is_controller else OBSERVER)
    return plan
