"""Proves that a client of a story goes to the next address when one cannot be connected to."""

import asyncio
import random

import pytest

from odradek.sim.main import odradek_node
from odradek.sim.stories.plan import Settings
from odradek.sim.stories.story import PORT
from odradek.sim.workloads.administering import present_topics
from odradek.sim.workloads.caller import Caller, NoAnswer
from odradek.sim.world.cluster import CrashKind, SimHost
from odradek.sim.world.world import World
from tests.sim.stage import SETTINGS


def test_a_caller_goes_on_with_the_next_address() -> None:
    world = World(1)
    one, two = (SimHost(world, name, odradek_node(Settings(**SETTINGS))) for name in ("one", "two"))
    bootstrap = [("one", PORT), ("two", PORT)]

    async def main() -> None:
        await one.start()
        await two.start()
        caller = Caller(world.runtime("client"), bootstrap, "client", random.Random(1))
        assert await present_topics(caller) == {}
        one.crash(CrashKind.KILL)
        await asyncio.sleep(1)
        with pytest.raises(NoAnswer, match="cannot connect"):
            await present_topics(caller)
        assert await present_topics(caller) == {}
        two.crash(CrashKind.KILL)
        await one.start()
        await asyncio.sleep(1)
        with pytest.raises(NoAnswer, match="cannot connect"):
            await present_topics(caller)
        assert await present_topics(caller) == {}
        caller.close()

    world.run(main())
