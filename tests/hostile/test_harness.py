"""What the tests here rely on: work is counted, the same every time, and only what the loop does."""

import asyncio

from odradek.wire.api_keys import ApiKey
from tests.hostile.cases import Case, ask
from tests.hostile.shapes import Shape
from tests.hostile.world import StagedWorld


def calls(count: int) -> None:
    for _ in range(count):
        len("")


def test_the_same_request_takes_the_same_work_every_time(world: StagedWorld) -> None:
    """But for a turn more or less until its bytes have come through the network."""
    case = Case(ApiKey.METADATA, 13, Shape("known", ("topics",)))
    ask(world, case, 100)
    first, second = ask(world, case, 100), ask(world, case, 100)
    assert abs(first.total - second.total) < 100
    assert abs(first.worst.events - second.worst.events) <= 1


def test_a_callback_is_counted_and_named(world: StagedWorld) -> None:
    stage = world.stage
    with stage.work.counting():
        stage.loop.call_soon(calls, 5_000)
        stage.turn()
        assert stage.work.worst.name == "calls"
        assert 5_000 <= stage.work.worst.events <= 5_010
        assert "calls" in stage.work.busiest()
        assert stage.work.busiest_turn >= 5_000


def test_a_step_of_a_task_is_named_after_its_coroutine(world: StagedWorld) -> None:
    async def long_step() -> None:
        calls(1_000)

    stage = world.stage
    with stage.work.counting():
        task = stage.loop.create_task(long_step(), name="a long one")
        stage.wait_until_idle()
        assert task.done()
        assert "a long one" in stage.work.worst.name
        assert "long_step" in stage.work.worst.name


def test_work_in_the_pool_is_not_the_loops(world: StagedWorld) -> None:
    stage = world.stage

    async def offloads() -> None:
        await stage.node.runtime.offload(lambda: calls(5_000))

    with stage.work.counting():
        task = stage.loop.create_task(offloads())
        stage.wait_until_idle()
        assert task.done()
        assert stage.work.total < 200


def test_time_goes_by_work(world: StagedWorld) -> None:
    """20,000 events are 5 ms, so that what is sliced by the loop's clock is sliced the same every time."""
    stage = world.stage
    seen: list[float] = []

    async def works() -> None:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        calls(20_000)
        seen.append(loop.time() - began_s)

    with stage.work.counting():
        stage.loop.create_task(works())
        stage.wait_until_idle()
    assert 0.005 <= seen[0] <= 0.0051
