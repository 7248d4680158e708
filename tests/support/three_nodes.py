"""Three nodes that are broker and controller each, in one process: they form a quorum over real sockets."""

import asyncio
import contextlib
import pathlib
import threading
from collections.abc import Callable, Coroutine, Iterator
from random import Random
from typing import Any, TypeVar

from odradek.broker.node import Node
from odradek.cli.commands.up import free_ports
from odradek.cli.node.formatting import format_node
from odradek.cli.node.local_plan import plan_cluster
from odradek.core.configs import NodeConfig
from odradek.core.types import TopicPartition, uuid_to_text
from odradek.metadata.formatting import FirstVoters, new_id
from odradek.runtime.real import RealRuntime

T = TypeVar("T")
SETTINGS = {
    "offsets.topic.num.partitions": "6",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "6",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    # The last node to stop has no quorum left to let it go: it waits for a session.
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
}


class ThreeNodes:
    def __init__(self, nodes: dict[int, Node], loop: asyncio.AbstractEventLoop, bootstrap: str) -> None:
        self.nodes = nodes
        self.bootstrap_servers = bootstrap
        self._loop = loop

    def look(self, function: Callable[[dict[int, Node]], T]) -> T:
        """Read the state of the nodes on their own thread."""

        async def looked() -> T:
            return function(self.nodes)

        return asyncio.run_coroutine_threadsafe(looked(), self._loop).result()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the nodes' own thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def leader_of(self, topic: str, partition: int) -> int | None:
        return self.look(lambda nodes: nodes[1].metadata.image.leader_of(TopicPartition(topic, partition)))


@contextlib.contextmanager
def three_nodes(folder: pathlib.Path, **settings: str) -> Iterator[ThreeNodes]:
    """Ready when the block begins, stopped when it ends."""
    rng = Random()
    ports = free_ports(3, 0)
    plan = plan_cluster(str(folder), ports, [new_id(rng) for _ in ports], {**SETTINGS, **settings})
    cluster_id = uuid_to_text(new_id(rng))
    configs = [NodeConfig.from_sources({}, node.properties)[0] for node in plan.nodes]
    for config in configs:
        format_node(config, cluster_id, FirstVoters(voters=plan.voters))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="three-nodes", daemon=True)
    thread.start()
    nodes = {config.node_id: Node(config, RealRuntime()) for config in configs}

    async def all_of(step: Callable[[Node], Coroutine[Any, Any, None]]) -> None:
        await asyncio.gather(*(step(node) for node in nodes.values()))

    try:
        asyncio.run_coroutine_threadsafe(all_of(lambda node: node.start()), loop).result(60)
        try:
            yield ThreeNodes(nodes, loop, plan.bootstrap_servers)
        finally:
            asyncio.run_coroutine_threadsafe(all_of(lambda node: node.stop()), loop).result(60)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
