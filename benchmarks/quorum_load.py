"""Three nodes and their controllers: failover, decisions, start, memory. Every cluster is asked the same."""

import asyncio
import pathlib
import time
from collections.abc import Iterator

from asking import WITHIN_S, active_controller, create, until_brokers, until_led
from confluent_kafka import Producer
from three_nodes import APART, HOST, KINDS, Nodes, beside, new_folder, rss_mb

MANY_PER_TOPIC = 1_000
Sample = tuple[str, float]


def quorum(
    broker: str, work: pathlib.Path, port: int, *, partitions: int, many: int, creates: int, runs: int
) -> Iterator[Sample]:
    """Row keys and values, for three nodes, and then for a controller apart from its broker."""
    for _ in range(runs):
        with new_folder(work, broker) as folder:
            nodes = KINDS[broker](folder, port)
            try:
                yield from _three(nodes, partitions, creates)
            finally:
                nodes.stop()
    with new_folder(work, broker) as folder:
        nodes = KINDS[broker](folder, port, apart=True)
        try:
            yield from _apart_with(nodes, many)
        finally:
            nodes.stop()


def _three(nodes: Nodes, partitions: int, creates: int) -> Iterator[Sample]:
    began = time.monotonic()
    with beside(nodes.start):
        asyncio.run(_until_acknowledged(nodes.ports[0]))
        yield "quorum.start", (time.monotonic() - began) * 1000
    asyncio.run(until_brokers(nodes.ports[0], 3))
    began = time.monotonic()
    asyncio.run(create(nodes.ports, ["wide"], partitions))
    asyncio.run(until_led(nodes.ports, "wide", partitions))
    yield "quorum.led", (time.monotonic() - began) * 1000
    began = time.monotonic()
    asyncio.run(create(nodes.ports, [f"one-{i}" for i in range(creates)], 1))
    yield "quorum.create", creates / (time.monotonic() - began)
    leader = asyncio.run(active_controller(nodes.ports[0]))
    others = [port for i, port in enumerate(nodes.ports, 1) if i != leader]
    nodes.kill(leader)
    began = time.monotonic()
    asyncio.run(create(others, ["after-the-kill"], 1))
    yield "quorum.failover", (time.monotonic() - began) * 1000


def _apart_with(nodes: Nodes, many: int) -> Iterator[Sample]:
    with beside(nodes.start):
        asyncio.run(_until_acknowledged(nodes.ports[0]))
    names = [f"many-{i}" for i in range(0, many, MANY_PER_TOPIC)]
    asyncio.run(create(nodes.ports, names, min(many, MANY_PER_TOPIC)))
    yield "quorum.controller.rss", rss_mb(nodes.pid(APART))
    nodes.kill(APART)
    began = time.monotonic()
    with beside(lambda: nodes.restart(APART)):
        asyncio.run(create(nodes.ports, ["after-the-restart"], 1))
        yield "quorum.controller.restart", (time.monotonic() - began) * 1000


async def _until_acknowledged(port: int) -> None:
    """The first record that a client writes, to a topic that it creates, is acknowledged."""
    await create([port], ["first"], 1)
    producer = Producer({"bootstrap.servers": f"{HOST}:{port}", "linger.ms": 0})
    producer.produce("first", b"a record")
    if producer.flush(WITHIN_S):
        raise RuntimeError("the first record is not acknowledged")
