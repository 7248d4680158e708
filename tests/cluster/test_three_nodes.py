"""Three whole nodes, each broker and controller, and five of which three are controllers."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from odradek.broker.node import Node
from odradek.client import Admin, Client, Producer
from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.digest import image_digest
from odradek.runtime.eager import new_event_loop
from tests.cluster.nodes import formatted, nodes_on_this_loop
from tests.unit.metadata.stack import until

Story = Callable[[list[Node], Client], Coroutine[Any, Any, None]]


def play(folder: Path, count: int, story: Story) -> None:
    plan = formatted(folder, count)

    async def main() -> None:
        async with nodes_on_this_loop(plan) as nodes, Client(plan.bootstrap_servers) as client:
            await story(nodes, client)

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(main())


def active(nodes: list[Node]) -> Node:
    (found,) = [node for node in nodes if node.quorum.is_active]
    return found


@pytest.mark.parametrize("count", [3, 5])
def test_every_node_shows_what_any_of_them_was_asked_for(tmp_path: Path, count: int) -> None:
    async def story(nodes: list[Node], client: Client) -> None:
        await Admin(client).create_topics({"orders": 2 * count}, replication_factor=1)
        offset = active(nodes).metadata.image.offset
        for node in nodes:
            await until(lambda node=node: node.metadata.image.offset >= offset)
            image = node.metadata.image
            assert {p.leader for p in image.topics_by_name["orders"].partitions.values()} == set(
                range(1, count + 1)
            )
            assert not any(broker.fenced for broker in image.brokers.values())
        async with Producer(client) as producer:
            for i in range(50):
                await producer.send("orders", b"%d" % i, key=b"%d" % i)

    play(tmp_path, count, story)


def test_images_of_all_nodes_are_equal_at_the_same_offset(tmp_path: Path) -> None:
    async def story(nodes: list[Node], client: Client) -> None:
        await Admin(client).create_topics({"a": 3, "b": 1}, replication_factor=1)
        seen: dict[int, set[str]] = {}
        for _ in range(20):
            for node in nodes:
                image = node.metadata.image
                seen.setdefault(image.offset, set()).add(image_digest(image))
            await asyncio.sleep(0.05)
        assert all(len(digests) == 1 for digests in seen.values()), seen

    play(tmp_path, 3, story)


def test_more_replicas_than_brokers_are_refused(tmp_path: Path) -> None:
    async def story(nodes: list[Node], client: Client) -> None:
        with pytest.raises(KafkaError) as refused:
            await Admin(client).create_topics({"orders": 1}, replication_factor=4)
        assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
        assert "orders" not in active(nodes).metadata.image.topics_by_name

    play(tmp_path, 3, story)


def test_a_group_of_a_real_client_works_through_any_node(tmp_path: Path) -> None:
    async def story(nodes: list[Node], client: Client) -> None:
        await Admin(client).create_topics({"orders": 6}, replication_factor=1)
        async with Producer(client) as producer:
            for i in range(60):
                await producer.send("orders", b"%d" % i, key=b"%d" % i)

        def consume() -> set[bytes]:
            consumer = Consumer(
                {
                    "bootstrap.servers": ",".join(f"{n.address[0]}:{n.address[1]}" for n in nodes),
                    "group.id": "g",
                    "auto.offset.reset": "earliest",
                }
            )
            consumer.subscribe(["orders"])
            values: set[bytes] = set()
            while len(values) < 60:
                message = consumer.poll(30)
                assert message is not None and message.error() is None, message
                values.add(message.value())
            consumer.commit(asynchronous=False)
            consumer.close()
            return values

        values = await asyncio.get_running_loop().run_in_executor(None, consume)
        assert values == {b"%d" % i for i in range(60)}

    play(tmp_path, 3, story)


def test_another_controller_takes_over_when_the_active_one_stops(tmp_path: Path) -> None:
    async def story(nodes: list[Node], client: Client) -> None:
        first = active(nodes)
        epoch = first.quorum.raft.epoch
        nodes.remove(first)
        await first.stop()
        loop = asyncio.get_running_loop()
        began = loop.time()
        await Admin(client).create_topics({"after": 2}, replication_factor=1)
        assert loop.time() - began < 3, "the next answer comes within three seconds"
        assert active(nodes).quorum.raft.epoch > epoch
        broker = active(nodes).metadata.image.brokers[first.config.node_id]
        assert broker.fenced or broker.in_controlled_shutdown

    play(tmp_path, 3, story)
