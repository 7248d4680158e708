"""Five real processes, one of them dead: the others are stopped and started one after the other, and every
partition can be written with acks=all all the time."""

from pathlib import Path
from typing import Any

import pytest

from odradek.client.blocking import BlockingClient
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.cluster.nodes import processes
from tests.cluster.replicas import wait_for
from tests.support.mixed_clients import produce, read

pytestmark = pytest.mark.timeout(240)

TOPIC, PARTITIONS, COUNT = "orders", 5, 10
SETTINGS = {"auto.leader.rebalance.enable": "false"}
"""The min ISR is 1: a partition on the dead node and on the one that restarts has one replica left."""
DEAD = 5
NOT_GRANTED = "Controlled shutdown was not granted"


def partitions(client: BlockingClient) -> list[Any]:
    types = request_types(ApiKey.METADATA)
    request = types.MetadataRequest(topics=[types.MetadataRequestTopic(name=TOPIC)])
    return list(client.send(ApiKey.METADATA, request).topics[0].partitions)


def test_the_living_of_five_nodes_are_restarted_one_after_the_other(tmp_path: Path) -> None:
    with processes(tmp_path, 5, SETTINGS) as cluster:
        servers = cluster.plan.bootstrap_servers
        written: list[bytes] = []

        def write(tag: str) -> None:
            values = [b"%s-%d" % (tag.encode(), i) for i in range(COUNT)]
            for index in range(PARTITIONS):
                produce(servers, TOPIC, values, partition=index)
            written.extend(values)

        with BlockingClient(servers) as client:
            client.call(client.admin.create_topics, {TOPIC: PARTITIONS}, replication_factor=3)

            def all_in_sync() -> bool:
                return all(
                    set(p.isr_nodes) == set(p.replica_nodes) - {DEAD} and p.leader_id > 0
                    for p in partitions(client)
                )

            write("before")
            cluster.kill(DEAD)
            wait_for(all_in_sync)
            for node_id in (1, 2, 3, 4):
                cluster.nodes[node_id].stop()
                cluster.nodes[node_id].wait(30)
                wait_for(lambda gone=node_id: not {gone, -1} & {p.leader_id for p in partitions(client)})
                write(f"without {node_id}")
                cluster.restart(node_id)
                wait_for(all_in_sync)
            write("after")
        assert not [line for _, line in cluster.lines if NOT_GRANTED in line]
        for index in range(PARTITIONS):
            assert read(servers, TOPIC, index, len(written)) == written
