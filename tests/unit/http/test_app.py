"""What a node says over HTTP before it serves clients."""

import asyncio
from pathlib import Path

import pytest

from odradek.broker.node import Node
from odradek.core.configs import NodeConfig
from odradek.http.app import App
from odradek.http.message import Request
from odradek.runtime.real import RealRuntime


@pytest.mark.parametrize("path", ["/healthz", "/metrics"])
def test_a_node_that_recovers_its_logs_says_how_far_it_is(tmp_path: Path, path: str) -> None:
    async def scenario() -> None:
        config, _ = NodeConfig.from_sources({}, {"log.dirs": str(tmp_path)})
        node = Node(config, RealRuntime())
        app = App(node)
        answer = await app(Request("GET", path, True))
        assert (answer.status, answer.body) == (503, b"starting\n")
        for _ in range(2):
            node.logs.recovery.expect(1_500_000_000)
        node.logs.recovery.opened()
        answer = await app(Request("GET", path, True))
        assert (answer.status, answer.body) == (
            503,
            b"starting: recovered 1 of 2 partitions, 0.0 of 3.0 GB\n",
        )

    asyncio.run(scenario())
