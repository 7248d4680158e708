"""A follower loses what is on its disk: it fetches all of it again, and until then it counts for nothing."""

import os
import shutil
from pathlib import Path

import pytest

from odradek.client.blocking import BlockingClient
from tests.cluster.nodes import Processes, formatted_with, processes, running
from tests.cluster.test_replicated_kills import REPLICATED
from tests.support.quorum_tables import until
from tests.support.recorded import judge, load
from tests.support.replicas import create_replicated, states_of, until_in_sync

PARTITIONS = 3
VICTIMS = 2 if "ODRADEK_SOAK_ROLLS" in os.environ else 1

pytestmark = pytest.mark.timeout(180)


def remove_partitions(folder: Path) -> None:
    """What is left is what a node needs to know itself: its identity and the metadata log."""
    removed = [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("__cluster_")]
    assert removed
    for path in removed:
        shutil.rmtree(path)
    for name in ("recovery-point", "replication", "log-start"):
        (folder / f"{name}-offset-checkpoint").unlink(missing_ok=True)


@pytest.mark.parametrize("is_orderly", [True, False], ids=["stopped", "killed"])
def test_a_node_whose_partitions_are_gone_catches_up(tmp_path: Path, is_orderly: bool) -> None:
    with processes(tmp_path, 3, REPLICATED) as cluster:
        servers = cluster.plan.bootstrap_servers
        with BlockingClient(servers) as client:
            create_replicated(client, "orders", PARTITIONS)
            with load(servers, "orders", PARTITIONS, producers=1, consumers=1) as clients:
                clients.await_acknowledgements(50)
                for victim in (1, 2)[:VICTIMS]:  # in the end only node 3 has what it wrote in the beginning
                    until_in_sync(client, "orders", "__consumer_offsets")
                    (cluster.stop if is_orderly else cluster.kill)(victim)
                    remove_partitions(cluster.folders[victim][0])
                    cluster.restart(victim)
                    clients.await_acknowledgements(20)
                until_in_sync(client, "orders", "__consumer_offsets")
                judge(clients, cluster.folders)
        print(f"{clients.acknowledged()} acknowledged")


def test_a_log_directory_of_a_follower_that_is_removed_costs_only_its_own_replicas(tmp_path: Path) -> None:
    """The second one of node 3, while it runs. An empty disk takes its place: what was there is offline."""
    plan = formatted_with(tmp_path, 3, REPLICATED, lambda node: two_directories(tmp_path, node.node_id))
    with running(Processes(tmp_path, plan)) as cluster, BlockingClient(plan.bootstrap_servers) as client:
        create_replicated(client, "orders", PARTITIONS)
        second = cluster.folders[3][1]
        with load(plan.bootstrap_servers, "orders", PARTITIONS, producers=1, consumers=1) as clients:
            until_in_sync(client, "orders", "__consumer_offsets")
            lost = {int(path.name.rpartition("-")[2]) for path in second.glob("orders-*")}
            assert lost, "no replica is there"
            shutil.rmtree(second)
            clients.await_acknowledgements(20)
            cluster.kill(3)
            clients.await_acknowledgements(20)
            second.mkdir()
            cluster.restart(3)
            until(
                lambda: all((3 in s.isr) is (p not in lost) for p, s in states_of(client, "orders").items())
            )
            judge(clients, cluster.folders)


def two_directories(folder: Path, node_id: int) -> dict[str, str]:
    return {"log.dirs": f"{folder}/node-{node_id},{folder}/more-{node_id}"}
