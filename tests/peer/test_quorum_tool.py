"""Apache Kafka's kafka-metadata-quorum changes the voters of three nodes of ours, and shows them."""

import asyncio
from pathlib import Path

import pytest

from odradek.broker.node import Node
from odradek.cli.node.formatting import format_node
from odradek.cli.node.local_plan import HOST, properties_text
from odradek.core.types import uuid_to_text
from odradek.metadata.formatting import OBSERVER
from odradek.runtime.real import RealRuntime
from tests.cluster.nodes import config_of, free_ports
from tests.support import peer
from tests.support.three_nodes import ThreeNodes, three_nodes

pytestmark = [pytest.mark.apache, pytest.mark.timeout(300)]


def tool(*arguments: object) -> str:
    done = peer.tool("metadata-quorum", *arguments)
    assert done.returncode == 0, f"exited {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


async def started(cluster: ThreeNodes, properties: dict[str, str]) -> Node:
    """A fourth controller, whose fetches have shown it to the leader."""
    node = Node(config_of(properties), RealRuntime())
    await node.start()
    leader = next(n for n in cluster.nodes.values() if n.quorum.is_active)
    while all(state.key.id != 4 for state in leader.quorum.raft.node.replicas()[1]):
        await asyncio.sleep(0.01)
    return node


def voters(nodes: dict[int, Node]) -> set[int]:
    leader = next(n for n in nodes.values() if n.quorum.is_active)
    found = leader.quorum.raft.facts.voters
    return set() if found is None else set(found.ids)


def test_a_controller_is_added_described_and_removed(tmp_path: Path) -> None:
    (ports,) = free_ports(1)
    with three_nodes(tmp_path) as cluster:
        properties = {
            "node.id": "4",
            "process.roles": "controller",
            "listeners": f"CONTROLLER://{HOST}:{ports.controller}",
            "advertised.listeners": f"CONTROLLER://{HOST}:{ports.controller}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": ",".join(
                f"{HOST}:{node.config.controller_listeners[0].port}" for node in cluster.nodes.values()
            ),
            "log.dirs": str(tmp_path / "node-4"),
        }
        file = tmp_path / "node-4.properties"
        file.write_text(properties_text(properties))
        format_node(config_of(properties), cluster.nodes[1].cluster_id, OBSERVER)
        node = cluster.call(started(cluster, properties))
        try:
            added = tool(
                "--bootstrap-server", cluster.bootstrap_servers, "--command-config", file, "add-controller"
            )
            assert (
                f"Added controller 4 with directory id {uuid_to_text(node.quorum.raft.directory_id)}" in added
            )
            assert cluster.look(voters) == {1, 2, 3, 4}

            described = tool("--bootstrap-server", cluster.bootstrap_servers, "describe", "--status")
            (line,) = [line for line in described.splitlines() if line.startswith("CurrentVoters:")]
            assert all(f'"id": {n}' in line for n in (1, 2, 3, 4)), line

            removed = tool(
                *("--bootstrap-controller", properties["controller.quorum.bootstrap.servers"]),
                *("remove-controller", "--controller-id", 4),
                *("--controller-directory-id", uuid_to_text(node.quorum.raft.directory_id)),
            )
            assert removed.split()[:4] == ["Removed", "KRaft", "controller", "4"]
            assert cluster.look(voters) == {1, 2, 3}
        finally:
            cluster.call(node.stop())
