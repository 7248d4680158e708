"""A killed process is noticed at once: its broker is fenced before its session ends, and may come back."""

import time
from pathlib import Path

import pytest

from odradek.client.blocking import BlockingClient
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.cluster.nodes import START_SECONDS, processes
from tests.cluster.test_kills import leader_of

LONG = {"broker.session.timeout.ms": "600000"}
"""No session ends in these tests: what comes of a kill comes of the broken connection."""


def serving(client: BlockingClient) -> set[int]:
    """The brokers that are not fenced."""
    types = request_types(ApiKey.DESCRIBE_CLUSTER)
    response = client.send(ApiKey.DESCRIBE_CLUSTER, types.DescribeClusterRequest())
    return {broker.broker_id for broker in response.brokers}


@pytest.mark.parametrize("is_controller", [False, True], ids=["a broker", "the active controller"])
def test_a_killed_broker_is_fenced_at_once_and_registers_again_at_once(
    tmp_path: Path, is_controller: bool
) -> None:
    with processes(tmp_path, 3, LONG) as cluster:
        with BlockingClient(cluster.plan.bootstrap_servers) as client:
            active = leader_of(client)
            killed = next(n for n in cluster.nodes if (n == active) is is_controller)
            others = [node.address for node in cluster.plan.nodes if node.node_id != killed]
        with BlockingClient(",".join(others)) as client:
            cluster.kill(killed)
            deadline = time.monotonic() + START_SECONDS
            while killed in serving(client):
                assert time.monotonic() < deadline, "the session was waited for"
                time.sleep(0.01)
            cluster.restart(killed)
            assert serving(client) == set(cluster.nodes)
