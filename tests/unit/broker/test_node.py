"""A whole node: what it counts, and what it releases when it cannot start."""

import asyncio
from pathlib import Path

import pytest

from odradek.broker.node import Node
from odradek.core.configs import NodeConfig, node_defaults
from odradek.runtime.real import RealRuntime
from odradek.testing.broker import Broker
from tests.support.batches import batch
from tests.support.produce import PRODUCE, produce_values
from tests.support.raw import Connection
from tests.support.topics import create_topic

API_VERSIONS, DELETE_TOPICS = 18, 20


def test_a_start_that_fails_gives_up_directories_and_sockets(tmp_path: Path) -> None:
    def node(node_id: int, port: int = 0) -> Node:
        settings = node_defaults(str(tmp_path / "data"), port=port) | {"node.id": str(node_id)}
        return Node(NodeConfig(settings), RealRuntime())

    async def scenario() -> None:
        first = node(1)
        await first.start()
        await first.stop()
        other = node(2)
        with pytest.raises(Exception, match="Stored node id"):
            await other.start()
        again = node(1, port=other.address[1])
        await again.start()
        await again.stop()

    asyncio.run(scenario())


def test_what_is_counted_of_a_topic_ends_with_it_and_a_produce_without_an_answer_counts() -> None:
    with Broker() as broker, Connection(broker.bootstrap_servers) as connection:
        create_topic(broker.bootstrap_servers, "t")
        for _ in range(3):
            connection.send(PRODUCE, 9, produce_values("t", batch(), acks=0))
        assert connection.call(API_VERSIONS, 0, {}).error_code == 0
        assert broker.look(lambda node: node.metrics.requests[PRODUCE].versions) == {9: 3}
        assert broker.look(lambda node: node.metrics.topics["t"].messages_in) == 3
        connection.call(DELETE_TOPICS, 5, {"topic_names": ["t"], "timeout": 10_000})
        assert "t" not in broker.look(lambda node: dict(node.metrics.topics))
        create_topic(broker.bootstrap_servers, "t")
        assert broker.look(lambda node: node.metrics.topics["t"].messages_in) == 0


def test_share_and_streams_groups_are_supported_features_that_a_new_cluster_does_not_finalize() -> None:
    with Broker() as broker, Connection(broker.bootstrap_servers) as connection:
        answer = connection.call(
            API_VERSIONS, 4, {"client_software_name": "test", "client_software_version": "1"}
        )
    supported = {f.name: (f.min_version, f.max_version) for f in answer.supported_features}
    finalized = {f.name: f.max_version_level for f in answer.finalized_features}
    for feature in ("share.version", "streams.version"):
        assert supported[feature] == (0, 1)
        assert feature not in finalized
    assert finalized["group.version"] == 1


def test_clients_are_served_until_the_controller_lets_the_broker_go(tmp_path: Path) -> None:
    """They hear who leads now; a broker that closes first leaves them to their timeouts."""

    async def scenario() -> None:
        node = Node(NodeConfig(node_defaults(str(tmp_path / "data"), port=0)), RealRuntime())
        await node.start()
        shut_down = node.lifecycle.shut_down
        served = []

        async def shut_down_under_load() -> None:
            await shut_down()
            reader, writer = await asyncio.open_connection(*node.address)
            writer.write(API_VERSIONS_FRAME)
            served.append(await reader.readexactly(100))
            writer.close()

        node.lifecycle.shut_down = shut_down_under_load  # type: ignore[method-assign]
        await node.stop()
        assert served
        assert not node.server.connections
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*node.address)

    asyncio.run(scenario())


API_VERSIONS_FRAME = b"\0\0\0\x0a\0\x12\0\0\0\0\0\x01\xff\xff"


def test_brokers_are_let_in_when_clients_are_too_many_and_the_least_recently_used_goes(
    tmp_path: Path,
) -> None:
    settings = node_defaults(str(tmp_path / "data"), port=0) | {
        "listeners": "PLAINTEXT://127.0.0.1:0,INTERNAL://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "advertised.listeners": "PLAINTEXT://127.0.0.1:0,INTERNAL://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
        "max.connections": "2",
    }

    async def connect(node: Node, listener: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        stream = await asyncio.open_connection(*node.server.addresses[listener])
        stream[1].write(API_VERSIONS_FRAME)
        return stream

    async def scenario() -> None:
        node = Node(NodeConfig(settings), RealRuntime())
        await node.start()
        try:
            older, newer = await connect(node, "PLAINTEXT"), await connect(node, "PLAINTEXT")
            for reader, _ in (older, newer):
                await reader.readexactly(100)
            client = await connect(node, "PLAINTEXT")
            broker = await connect(node, "INTERNAL")
            await broker[0].readexactly(100)
            await older[0].read()
            assert older[0].at_eof() and not newer[0].at_eof()
            assert len(node.server.connections) == 2
            newer[1].close()
            await client[0].readexactly(100)  # it has waited until a client left
            for _, writer in (older, client, broker):
                writer.close()
        finally:
            await node.stop()

    asyncio.run(scenario())
