"""How much of the metadata log, or of a snapshot, an observer asks for at a time is configured."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from odradek.broker.node import Node
from odradek.cli.node.formatting import format_node
from odradek.cli.node.local_plan import HOST
from odradek.client import Admin, Client
from odradek.metadata.formatting import OBSERVER, STANDALONE
from odradek.runtime.eager import new_event_loop
from odradek.runtime.real import RealRuntime
from tests.cluster.nodes import alone, config_of, free_ports
from tests.unit.metadata.stack import until


async def requests_to_catch_up(folder: Path, leader: Node, settings: Mapping[str, str]) -> int:
    """Of a controller that begins with nothing and asks its one bootstrap server for the quorum."""
    (ports,) = free_ports(1)
    port = leader.config.controller_listeners[0].port
    properties = {
        "node.id": "4",
        "process.roles": "controller",
        "listeners": f"CONTROLLER://{HOST}:{ports.controller}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"{HOST}:{port}",
        "log.dirs": str(folder),
        **settings,
    }
    format_node(config_of(properties), leader.cluster_id, OBSERVER)
    node = Node(config_of(properties), RealRuntime())
    await node.start()
    await until(
        lambda: node.metadata.image.topics_by_name.keys() == leader.metadata.image.topics_by_name.keys()
    )
    requests = node.quorum.raft.traffic.requests
    await node.stop()
    return requests


def compared(
    folder: Path, of_leader: Mapping[str, str], of_observer: Mapping[str, str]
) -> tuple[Node, int, int]:
    """The leader, and how many requests an observer needs: as it is by default, and with settings."""

    async def story() -> tuple[Node, int, int]:
        quiet = {"metadata.max.idle.interval.ms": "0", **of_leader}
        leader, plan = await alone(folder, STANDALONE, quiet)
        try:
            async with Client(plan.bootstrap_servers) as client:
                for n in range(40):
                    await Admin(client).create_topics({f"topic-{n}": 3}, replication_factor=1)
            large = await requests_to_catch_up(folder / "large", leader, {})
            small = await requests_to_catch_up(folder / "small", leader, of_observer)
        finally:
            await leader.stop()
        return leader, large, small

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(story())


def test_fetch_max_bytes_is_how_much_of_the_log_is_asked_for(tmp_path: Path) -> None:
    _, large, small = compared(tmp_path, {}, {"controller.quorum.fetch.max.bytes": "1"})
    assert large < 25 < 40 < small, "a batch in each answer: one for each topic"


def test_fetch_snapshot_max_bytes_is_how_much_of_a_snapshot_is_asked_for(tmp_path: Path) -> None:
    snapshots = {
        "metadata.log.max.record.bytes.between.snapshots": "3000",
        "metadata.max.retention.bytes": "1",
    }
    pieces = {"controller.quorum.fetch.snapshot.max.bytes": "100"}
    leader, large, small = compared(tmp_path, snapshots, pieces)
    newest = leader.quorum.raft.snapshots.newest
    assert newest is not None and leader.quorum.raft.log.log_start_offset > 0
    size = leader.quorum.raft.snapshots.size_bytes(newest)
    assert small - large > size // 100 // 2 > 10, f"{size} bytes in pieces of 100"
