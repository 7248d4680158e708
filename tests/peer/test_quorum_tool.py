"""Apache Kafka's kafka-metadata-quorum changes the voters of three nodes of ours, and shows them."""

import time
from pathlib import Path

import pytest

from odradek.cli.node.formatting import format_node
from odradek.cli.node.local_plan import HOST, properties_text
from odradek.core.types import uuid_to_text
from odradek.metadata.formatting import OBSERVER
from odradek.testing import Cluster
from odradek.testing.broker import Broker
from odradek.testing.cluster_broker import ClusterBroker, Shared
from tests.cluster.nodes import config_of, free_ports
from tests.support import peer

pytestmark = [pytest.mark.apache, pytest.mark.timeout(300)]
FETCHES_WITHIN_S = 60


def tool(*arguments: object) -> str:
    done = peer.tool("metadata-quorum", *arguments)
    assert done.returncode == 0, f"exited {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def leader(cluster: Cluster) -> Broker:
    return next(broker for broker in cluster.brokers.values() if broker.look(lambda n: n.quorum.is_active))


def wait_for_fetches(cluster: Cluster, node_id: int) -> None:
    """Its fetches have shown the node to the leader."""
    deadline = time.monotonic() + FETCHES_WITHIN_S
    while node_id not in leader(cluster).look(
        lambda node: {state.key.id for state in node.quorum.raft.node.replicas()[1]}
    ):
        assert time.monotonic() < deadline, "the new controller does not fetch"
        time.sleep(0.01)


def voters(cluster: Cluster) -> set[int]:
    found = leader(cluster).look(lambda node: node.quorum.raft.facts.voters)
    return set() if found is None else set(found.ids)


def test_a_controller_is_added_described_and_removed(tmp_path: Path) -> None:
    (ports,) = free_ports(1)
    with Cluster(3) as cluster:
        properties = {
            "node.id": "4",
            "process.roles": "controller",
            "listeners": f"CONTROLLER://{HOST}:{ports.controller}",
            "advertised.listeners": f"CONTROLLER://{HOST}:{ports.controller}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": ",".join(
                f"{HOST}:{broker.look(lambda node: node.config.controller_listeners[0].port)}"
                for broker in cluster.brokers.values()
            ),
            "log.dirs": str(tmp_path / "node-4"),
        }
        file = tmp_path / "node-4.properties"
        file.write_text(properties_text(properties))
        format_node(config_of(properties), cluster.brokers[1].look(lambda node: node.cluster_id), OBSERVER)
        fourth = ClusterBroker(properties, Shared())
        fourth.start()
        try:
            wait_for_fetches(cluster, 4)
            directory = uuid_to_text(fourth.look(lambda node: node.quorum.raft.directory_id))
            added = tool(
                "--bootstrap-server", cluster.bootstrap_servers, "--command-config", file, "add-controller"
            )
            assert f"Added controller 4 with directory id {directory}" in added
            assert voters(cluster) == {1, 2, 3, 4}

            described = tool("--bootstrap-server", cluster.bootstrap_servers, "describe", "--status")
            (line,) = [line for line in described.splitlines() if line.startswith("CurrentVoters:")]
            assert all(f'"id": {n}' in line for n in (1, 2, 3, 4)), line

            removed = tool(
                *("--bootstrap-controller", properties["controller.quorum.bootstrap.servers"]),
                *("remove-controller", "--controller-id", 4),
                *("--controller-directory-id", directory),
            )
            assert removed.split()[:4] == ["Removed", "KRaft", "controller", "4"]
            assert voters(cluster) == {1, 2, 3}
        finally:
            fourth.close()
