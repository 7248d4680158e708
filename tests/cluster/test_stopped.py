"""The process of the active controller is stopped and goes on later: as a zombie it decides nothing."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from odradek.client.blocking import BlockingClient
from odradek.client.connection import BrokerConnection
from odradek.core.errors import ErrorCode, KafkaError
from odradek.runtime.real import RealRuntime
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.cluster.nodes import Processes, config_of, processes
from tests.cluster.test_kills import create, leader_of

STOPPED_S = float(os.environ.get("ODRADEK_SOAK_STOPPED_S", "0"))
"""At least; it lasts until another controller has decided."""
DEADLINE_S = 60.0


def topics(client: BlockingClient) -> set[str]:
    response = client.send(ApiKey.METADATA, request_types(ApiKey.METADATA).MetadataRequest(topics=None))
    return {topic.name for topic in response.topics}


def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.05)


def leads(client: BlockingClient, leader: int) -> bool:
    try:
        return leader_of(client) == leader
    except KafkaError:
        return False


async def ask_a_zombie(cluster: Processes, active: int) -> ErrorCode | None:
    """What it answers to a request that came to it while it was stopped; None if nothing."""
    planned = {node.node_id: node for node in cluster.plan.nodes}
    others = ",".join(node.address for n, node in planned.items() if n != active)
    process = cluster.nodes[active].process
    (listener,) = config_of(planned[active].properties).controller_listeners
    connection = await BrokerConnection.open(
        RealRuntime(), listener.host, listener.port, client_id="test", request_timeout_ms=600_000
    )
    types = request_types(ApiKey.CREATE_TOPICS)
    topic = types.CreatableTopic(name="zombie", num_partitions=1, replication_factor=1)
    process.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    try:
        asked = asyncio.ensure_future(
            connection.send(ApiKey.CREATE_TOPICS, types.CreateTopicsRequest(topics=[topic]))
        )

        def during() -> None:
            with BlockingClient(others) as client:
                until(lambda: not leads(client, active))
                create(client, "during")

        await asyncio.to_thread(during)
        await asyncio.sleep(max(0.0, began + STOPPED_S - time.monotonic()))
    finally:
        process.send_signal(signal.SIGCONT)
    try:
        response = await asked
    except OSError:
        return None
    finally:
        connection.close()
    return ErrorCode(response.topics[0].error_code)


def test_a_controller_that_was_stopped_decides_nothing_when_it_wakes(tmp_path: Path) -> None:
    with processes(tmp_path, 3) as cluster:
        with BlockingClient(cluster.plan.bootstrap_servers) as client:
            active = leader_of(client)
        answer = asyncio.run(ask_a_zombie(cluster, active))
        assert answer in (None, ErrorCode.NOT_CONTROLLER)
        for node in cluster.plan.nodes:
            with BlockingClient(node.address) as client:
                until(lambda client=client: "during" in topics(client))
                create(client, f"after-{node.node_id}")
                assert "zombie" not in topics(client)
                assert not leads(client, active)
