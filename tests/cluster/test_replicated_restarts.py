"""Every node is stopped and started in turn, while real clients write and read: none sees an error."""

import os
import time
from pathlib import Path

import pytest

from odradek.client.blocking import BlockingClient
from tests.cluster.nodes import processes
from tests.cluster.test_replicated_kills import REPLICATED
from tests.support.recorded import judge, load
from tests.support.replicas import create_replicated, until_in_sync

ROUNDS = int(os.environ.get("ODRADEK_SOAK_ROLLS", "1"))

pytestmark = pytest.mark.timeout(120 + 60 * ROUNDS)


SIZES = [pytest.param(3, (), id="three")]
if ROUNDS > 1:  # test_rolling_restart.py has it, without recorded clients
    SIZES.append(pytest.param(5, (5,), id="five, one of them dead"))


@pytest.mark.parametrize(("count", "dead"), SIZES)
def test_no_client_sees_an_error_while_nodes_are_restarted_in_turn(
    tmp_path: Path, count: int, dead: tuple[int, ...]
) -> None:
    gaps: list[float] = []
    with processes(tmp_path, count, REPLICATED) as cluster:
        alive = [node for node in cluster.plan.nodes if node.node_id not in dead]
        servers = ",".join(node.address for node in alive)
        with BlockingClient(servers) as client:
            create_replicated(client, "orders", count)
            with load(servers, "orders", count, producers=1, pause_s=0.01) as clients:
                for node_id in dead:
                    cluster.kill(node_id)
                clients.await_acknowledgements(10)
                for _ in range(ROUNDS):
                    for node in alive:
                        until_in_sync(client, "orders", "__consumer_offsets", without=dead)
                        began = time.monotonic()
                        cluster.stop(node.node_id)
                        cluster.restart(node.node_id)
                        clients.await_acknowledgements(10)
                        gaps.append(round(clients.longest_gap_s(began), 2))
                for node_id in dead:
                    cluster.restart(node_id)
                until_in_sync(client, "orders", "__consumer_offsets")
                judge(clients, cluster.folders)
    print(f"{clients.acknowledged()} acknowledged; longest gaps of restarts in s: {gaps}")
