"""Clusters for tests: whole nodes on one event loop, or each in a process that can be killed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from random import Random

from odradek.broker.node import Node
from odradek.cli.node.formatting import format_node
from odradek.cli.node.local_cluster import LocalCluster, LocalNode
from odradek.cli.node.local_directories import format_cluster, free_ports
from odradek.cli.node.local_plan import (
    HOST,
    ClusterPlan,
    NodePorts,
    PlannedNode,
    plan_cluster,
    properties_text,
)
from odradek.core.configs import NodeConfig
from odradek.core.types import uuid_to_text
from odradek.metadata.formatting import OBSERVER, STATIC, FirstVoters, new_id
from odradek.runtime.real import RealRuntime

START_SECONDS = 60.0


def formatted(folder: Path, count: int, settings: Mapping[str, str] | None = None) -> ClusterPlan:
    """A new cluster whose directories are formatted, as `odradek up` does it."""
    return format_cluster(str(folder), free_ports(count), settings or {})


def formatted_with(
    folder: Path,
    count: int,
    settings: Mapping[str, str],
    change: Callable[[PlannedNode], Mapping[str, str]],
    ports: Sequence[NodePorts] | None = None,
) -> ClusterPlan:
    """The same, where each node has properties of its own. `ports` are those that the nodes are known by."""
    rng = Random()
    directory_ids = [new_id(rng) for _ in range(count)]
    plan = plan_cluster(str(folder), ports or free_ports(count), directory_ids, settings)
    nodes = tuple(node._replace(properties={**node.properties, **change(node)}) for node in plan.nodes)
    cluster_id = uuid_to_text(new_id(rng))
    for node in nodes:
        config = config_of(node.properties)
        first = FirstVoters(voters=plan.voters) if config.is_controller else OBSERVER
        format_node(config, cluster_id, first)
    return ClusterPlan(nodes, plan.voters)


def config_of(properties: Mapping[str, str]) -> NodeConfig:
    return NodeConfig.from_sources({}, properties)[0]


@asynccontextmanager
async def nodes_on_this_loop(plan: ClusterPlan) -> AsyncIterator[list[Node]]:
    """Started together, stopped together. A node that a test stopped itself is left out."""
    nodes = [Node(config_of(node.properties), RealRuntime()) for node in plan.nodes]
    await asyncio.gather(*(node.start() for node in nodes))
    running = list(nodes)
    try:
        yield running
    finally:
        await asyncio.gather(*(node.stop() for node in running))


async def alone(
    folder: Path, first_voters: FirstVoters, settings: Mapping[str, str] | None = None
) -> tuple[Node, ClusterPlan]:
    """A quorum of one that runs, with a controller listener for others. A second call starts it again."""
    (ports,) = free_ports(1)
    properties = {
        "node.id": "1",
        "listeners": f"PLAINTEXT://{HOST}:{ports.broker},CONTROLLER://{HOST}:{ports.controller}",
        "log.dirs": str(folder / "node-1"),
        **(settings or {}),
    }
    if first_voters is STATIC:
        properties["controller.quorum.voters"] = f"1@{HOST}:{ports.controller}"
    if not (folder / "node-1").exists():
        format_node(config_of(properties), uuid_to_text(new_id(Random())), first_voters)
    node = Node(config_of(properties), RealRuntime())
    await node.start()
    return node, ClusterPlan((PlannedNode(1, f"{HOST}:{ports.broker}", properties),))


class Processes:
    """Nodes in processes, by id."""

    def __init__(self, folder: Path, plan: ClusterPlan) -> None:
        self.plan = plan
        self.lines: list[tuple[int, str]] = []
        paths = []
        for node in plan.nodes:
            path = folder / f"node-{node.node_id}.properties"
            path.write_text(properties_text(node.properties))
            paths.append(str(path))
        self.paths = paths
        self.cluster = LocalCluster(plan.nodes, paths, self._note)

    def _note(self, node_id: int, line: str) -> None:
        self.lines.append((node_id, line))

    @property
    def nodes(self) -> dict[int, LocalNode]:
        return {node.node_id: node for node in self.cluster.nodes}

    @property
    def folders(self) -> dict[int, list[Path]]:
        """The log directories of each node."""
        return {
            node.node_id: [Path(path) for path in node.properties["log.dirs"].split(",")]
            for node in self.plan.nodes
        }

    def kill(self, node_id: int) -> None:
        node = self.nodes[node_id]
        node.kill()
        node.wait(10)

    def stop(self, node_id: int) -> None:
        """In an orderly way: its leaders move first."""
        node = self.nodes[node_id]
        node.stop()
        node.wait(START_SECONDS)
        assert node.process.returncode == 0, node.last_words()

    def send(self, node_id: int, sig: int) -> None:
        self.nodes[node_id].process.send_signal(sig)

    def restart(self, node_id: int) -> None:
        at = [node.node_id for node in self.cluster.nodes].index(node_id)
        node = LocalNode(self.plan.nodes[at], self.paths[at], self._note)
        self.cluster.nodes[at] = node
        assert node.ready.wait(START_SECONDS) and not node.has_ended, node.last_words()


@contextmanager
def processes(folder: Path, count: int, settings: Mapping[str, str] | None = None) -> Iterator[Processes]:
    with running(Processes(folder, formatted(folder, count, settings))) as started:
        yield started


@contextmanager
def running(started: Processes) -> Iterator[Processes]:
    try:
        started.cluster.launch()
        started.cluster.wait_until_ready(START_SECONDS)
        yield started
    finally:
        started.cluster.stop(is_kept=False)
