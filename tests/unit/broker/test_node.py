"""A node that cannot start gives up what it had taken."""

import asyncio
from pathlib import Path

import pytest

from odradek.broker.node import Node
from odradek.core.configs import NodeConfig, node_defaults
from odradek.runtime.real import RealRuntime


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
