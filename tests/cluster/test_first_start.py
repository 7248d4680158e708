"""Processes that nobody formatted: `odradek start --config` three times makes a cluster."""

import json
import shutil
import signal
import time
from pathlib import Path

from odradek.cli.node.local_cluster import LocalNode
from odradek.cli.node.local_plan import HOST, ClusterPlan, PlannedNode
from tests.cluster.nodes import START_SECONDS, Processes, free_ports
from tests.support.command import odradek


def plan(folder: Path) -> ClusterPlan:
    ports = free_ports(3)
    voters = ",".join(f"{n}@{HOST}:{pair.controller}" for n, pair in enumerate(ports, 1))
    nodes = []
    for n, pair in enumerate(ports, 1):
        properties = {
            "node.id": str(n),
            "process.roles": "broker,controller",
            "listeners": f"PLAINTEXT://{HOST}:{pair.broker},CONTROLLER://{HOST}:{pair.controller}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": voters,
            "log.dirs": f"{folder}/node-{n}",
        }
        nodes.append(PlannedNode(n, f"{HOST}:{pair.broker}", properties))
    return ClusterPlan(tuple(nodes))


def test_three_fresh_processes_become_a_cluster_and_take_a_wiped_one_back(tmp_path: Path) -> None:
    started = Processes(tmp_path, plan(tmp_path))
    try:
        started.cluster.launch()
        started.cluster.wait_until_ready(START_SECONDS)
        servers = started.plan.bootstrap_servers
        created = odradek("topic", "create", "orders", "-p", "3", "-b", servers)
        assert created.code == 0, created
        started.kill(3)
        shutil.rmtree(tmp_path / "node-3")
        started.restart(3)
        listed = odradek("topic", "list", "-f", "json", "-b", started.plan.nodes[2].address)
        assert [row["topic"] for row in json.loads(listed.text)] == ["orders"]
        assert any("votes when it has caught up" in line for line in started.nodes[3].last_words())
    finally:
        started.cluster.stop(is_kept=False)


def test_a_process_that_waits_for_voters_ends_with_sigterm(tmp_path: Path) -> None:
    first = plan(tmp_path).nodes[0]
    started = Processes(tmp_path, ClusterPlan((first,)))
    node = LocalNode(first, started.paths[0], lambda node_id, line: None)
    try:
        while not any("Waiting for voters 2 at" in line for line in node.last_words()):
            assert not node.has_ended, node.last_words()
            time.sleep(0.05)
        node.process.send_signal(signal.SIGTERM)
        assert node.process.wait(20) == 0
    finally:
        node.kill()
        node.wait(10)
    assert "Stopping: SIGTERM" in node.last_words()[-1]
