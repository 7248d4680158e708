"""Long work shares one slice for each turn of the loop, and short work waits for none of it."""

import asyncio

import pytest

from odradek.runtime.slices import Paced, Slices, at_once


def counting(name: str, steps: int, seen: list[str], calls: int = 1) -> Paced[str]:
    for _ in range(steps):
        seen.append(name)
        yield calls
    return name


def test_short_work_is_done_where_it_begins() -> None:
    seen: list[str] = []
    reply = Slices(slice_calls=100, short_calls=10).run(counting("short", 9, seen))
    assert reply.is_ready and reply.value == "short" and len(seen) == 9


def test_each_turn_of_the_loop_gives_one_slice_however_many_wait() -> None:
    async def story() -> None:
        seen: list[str] = []
        slices = Slices(slice_calls=10, short_calls=2)
        replies = [slices.run(counting(str(i), 42, seen)) for i in range(5)]
        assert len(seen) == 5 * 2
        before, grown = len(seen), []
        while len(seen) < 5 * 42:
            await asyncio.sleep(0)
            grown.append(len(seen) - before)
            before = len(seen)
        assert max(grown) == 10
        assert [await reply for reply in replies] == ["0", "1", "2", "3", "4"]

    asyncio.run(story())


def test_work_takes_turns() -> None:
    async def story() -> None:
        seen: list[str] = []
        slices = Slices(slice_calls=3, short_calls=1)
        first, second = slices.run(counting("a", 7, seen)), slices.run(counting("b", 7, seen))
        await first
        await second
        assert "".join(seen) == "ab" + "aaabbb" * 2

    asyncio.run(story())


def test_the_nodes_own_work_waits_for_one_slice_of_clients_at_most() -> None:
    async def story() -> None:
        seen: list[str] = []
        slices = Slices(slice_calls=5, short_calls=1)
        for _ in range(20):
            slices.run(counting("c", 1_000, seen))
        seen.clear()
        own = slices.run(counting("n", 21, seen), own=True)
        await own
        assert seen.count("c") <= 5 * 5

    asyncio.run(story())


def test_a_step_that_costs_much_ends_its_slice() -> None:
    async def story() -> None:
        seen: list[str] = []
        slices = Slices(slice_calls=10, short_calls=1)
        slices.run(counting("x", 5, seen, calls=50))
        for turn in range(1, 5):
            assert len(seen) == turn
            await asyncio.sleep(0)

    asyncio.run(story())


def test_an_error_is_the_replys() -> None:
    def failing(steps: int) -> Paced[None]:
        for _ in range(steps):
            yield 1
        raise ValueError("broken")

    async def story() -> None:
        slices = Slices(slice_calls=10, short_calls=5)
        assert isinstance(slices.run(failing(2)).error, ValueError)
        with pytest.raises(ValueError, match="broken"):
            await slices.run(failing(50))

    asyncio.run(story())


def test_work_that_nobody_waits_for_any_more_is_given_up() -> None:
    async def story() -> None:
        seen: list[str] = []
        slices = Slices(slice_calls=10, short_calls=5)
        waiting = asyncio.ensure_future(slices.run(counting("gone", 10_000, seen)))
        await asyncio.sleep(0)
        waiting.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(seen) < 100

    asyncio.run(story())


def test_at_once_gives_the_result() -> None:
    assert at_once(counting("all", 100, [])) == "all"
