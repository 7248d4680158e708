"""Nodes of a static quorum (controller.quorum.voters) whose directories nobody formatted."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

from odradek.broker.node import Node
from odradek.cli.node.local_directories import free_ports
from odradek.core.configs import NodeConfig
from odradek.runtime.eager import new_event_loop
from odradek.runtime.real import RealRuntime

HOST = "127.0.0.1"
SETTINGS = {
    "controller.listener.names": "CONTROLLER",
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "200",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


class StaticQuorum:
    """Voters 1 to `count`, and brokers with higher ids."""

    def __init__(self, folder: Path, count: int = 3, brokers: int = 0) -> None:
        self.folder = folder
        self.ports = free_ports(count + brokers, 0)
        self.voters = tuple(range(1, count + 1))
        self.running: dict[int, Node] = {}

    @property
    def quorum_voters(self) -> str:
        return ",".join(f"{n}@{HOST}:{self.ports[n - 1].controller}" for n in self.voters)

    def directory(self, node_id: int) -> Path:
        return self.folder / f"node-{node_id}"

    def properties(self, node_id: int, **changed: str) -> dict[str, str]:
        port = self.ports[node_id - 1]
        is_voter = node_id in self.voters
        return {
            "node.id": str(node_id),
            "process.roles": "controller" if is_voter else "broker",
            "listeners": (
                f"CONTROLLER://{HOST}:{port.controller}" if is_voter else f"PLAINTEXT://{HOST}:{port.broker}"
            ),
            "controller.quorum.voters": self.quorum_voters,
            "log.dirs": str(self.directory(node_id)),
            **SETTINGS,
            **{name.replace("_", "."): value for name, value in changed.items()},
        }

    def node(self, node_id: int, **changed: str) -> Node:
        config = NodeConfig.from_sources({}, self.properties(node_id, **changed))[0]
        return Node(config, RealRuntime())

    async def start(self, *node_ids: int, **changed: str) -> list[Node]:
        nodes = {n: self.node(n, **changed) for n in node_ids}
        await asyncio.gather(*(node.start() for node in nodes.values()))
        self.running |= nodes
        return list(nodes.values())

    async def stop(self, *node_ids: int) -> None:
        await asyncio.gather(*(self.running.pop(n).stop() for n in node_ids))

    def leader(self) -> Node | None:
        return next((node for node in self.running.values() if node.quorum.raft.is_leader), None)


@contextlib.asynccontextmanager
async def _stopped_at_the_end(quorum: StaticQuorum) -> AsyncIterator[StaticQuorum]:
    try:
        yield quorum
    finally:
        brokers_first = sorted(quorum.running, key=lambda n: n in quorum.voters)
        for node_id in brokers_first:
            await quorum.stop(node_id)


def play(
    folder: Path,
    story: Callable[[StaticQuorum], Coroutine[Any, Any, None]],
    *,
    count: int = 3,
    brokers: int = 0,
    kind: type[StaticQuorum] = StaticQuorum,
) -> None:
    """Everything that still runs at the end of a story is stopped."""

    async def main() -> None:
        async with _stopped_at_the_end(kind(folder, count, brokers)) as quorum:
            await asyncio.wait_for(story(quorum), 60)

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(main())
