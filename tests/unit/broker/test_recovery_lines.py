"""A recovery that takes long is in the log, at most once in a second."""

import asyncio
import logging
from typing import Any

import pytest

from odradek.broker.recovery_lines import RecoveryLines
from odradek.sim.world.world import World


def test_a_line_comes_after_a_second_and_then_once_in_each(caplog: pytest.LogCaptureFixture) -> None:
    recovery: Any = "1 of 9 logs"

    async def main() -> None:
        lines = RecoveryLines(recovery)
        for _ in range(25):
            lines.write()
            await asyncio.sleep(0.1)

    with caplog.at_level(logging.INFO, "odradek.broker.recovery_lines"):
        World(1).run(main())
    assert caplog.messages == ["1 of 9 logs"] * 2
