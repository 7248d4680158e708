"""The driver of quick fencing on real sockets: what is refused, what is not, and what it lets fence."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from odradek.controller.quick_fencer import QuickFencer
from odradek.core.configs import NodeConfig
from odradek.runtime.real import RealRuntime

BROKER, EPOCH, CONNECTION = 2, 40, 7
Story = Callable[[QuickFencer, "Fenced"], Coroutine[Any, Any, None]]


class Fenced:
    """What the controller was asked to fence, and when it was heard last."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int, int]] = []
        self.happened = asyncio.Event()

    async def fence(self, broker_id: int, broker_epoch: int, since_ms: int) -> None:
        self.calls.append((broker_id, broker_epoch, since_ms))
        self.happened.set()


def play(story: Story, *, listens: bool = False, **settings: str) -> Fenced:
    async def main() -> Fenced:
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            if listens:
                sock.listen()
            fenced = Fenced()
            config, _ = NodeConfig.from_sources({}, settings)
            address = sock.getsockname()
            fencer = QuickFencer(RealRuntime(), config, lambda broker_id: address, fenced.fence)
            try:
                await story(fencer, fenced)
            finally:
                fencer.stop()
            return fenced

    return asyncio.run(main())


async def lose(fencer: QuickFencer, fenced: Fenced) -> None:
    fencer.proved(BROKER, EPOCH, CONNECTION)
    fencer.broke(CONNECTION)
    await asyncio.wait_for(fenced.happened.wait(), 30)


async def lose_in_vain(fencer: QuickFencer, fenced: Fenced) -> None:
    fencer.proved(BROKER, EPOCH, CONNECTION)
    fencer.broke(CONNECTION)
    await asyncio.sleep(0.5)


def test_a_broker_whose_address_refuses_twice_is_fenced_since_its_connection_broke() -> None:
    async def story(fencer: QuickFencer, fenced: Fenced) -> None:
        began_s = asyncio.get_running_loop().time()
        await lose(fencer, fenced)
        (call,) = fenced.calls
        assert call[:2] == (BROKER, EPOCH)
        assert call[2] <= began_s * 1000 + 100
        assert asyncio.get_running_loop().time() - began_s >= 0.1, "two dials, 100 ms apart"

    play(story)


def test_a_broker_that_takes_a_connection_is_not_fenced() -> None:
    assert play(lose_in_vain, listens=True).calls == []


def test_a_switch_turns_it_off() -> None:
    assert play(lose_in_vain, **{"odradek.quick.fencing": "false"}).calls == []


def test_a_heartbeat_over_another_connection_ends_it() -> None:
    async def story(fencer: QuickFencer, fenced: Fenced) -> None:
        fencer.proved(BROKER, EPOCH, CONNECTION)
        fencer.broke(CONNECTION)
        for _ in range(10):
            await asyncio.sleep(0.05)
            fencer.proved(BROKER, EPOCH, CONNECTION + 1)

    assert play(story).calls == []


@pytest.mark.parametrize("connection", [CONNECTION, CONNECTION + 1], ids=["told twice", "unknown"])
def test_a_connection_that_proves_nobody_is_no_news(connection: int) -> None:
    async def story(fencer: QuickFencer, fenced: Fenced) -> None:
        if connection == CONNECTION:
            await lose(fencer, fenced)
        fencer.broke(connection)
        await asyncio.sleep(0.3)

    assert len(play(story).calls) == (connection == CONNECTION)


def test_a_controller_that_resigned_dials_nobody() -> None:
    async def story(fencer: QuickFencer, fenced: Fenced) -> None:
        fencer.proved(BROKER, EPOCH, CONNECTION)
        fencer.broke(CONNECTION)
        fencer.stop()
        fencer.proved(BROKER, EPOCH, CONNECTION)
        fencer.broke(CONNECTION)
        await asyncio.sleep(0.4)

    assert play(story).calls == []
