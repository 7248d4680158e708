"""How long requests are admitted: a limit of bytes together, the shortest first."""

import asyncio

import pytest

from odradek.broker.long_requests import MAX_BYTES_IN_HAND, LongRequests, Room

HALF = MAX_BYTES_IN_HAND // 2


async def turns(n: int = 3) -> None:
    for _ in range(n):
        await asyncio.sleep(0)


def test_requests_are_let_in_while_their_bytes_have_room() -> None:
    async def story() -> None:
        requests = LongRequests()
        first, second = await requests.enter(HALF), await requests.enter(HALF)
        third = asyncio.ensure_future(requests.enter(1))
        await turns()
        assert not third.done()
        second.leave()
        await turns()
        assert third.done()
        first.leave()
        third.result().leave()

    asyncio.run(story())


def test_the_shortest_goes_first_and_those_of_one_length_in_their_order() -> None:
    async def story() -> None:
        requests = LongRequests()
        room = await requests.enter(MAX_BYTES_IN_HAND)
        entered: list[str] = []

        async def enter(name: str, size: int) -> None:
            mine = await requests.enter(size)
            entered.append(name)
            await turns()
            mine.leave()

        sizes = {"large": MAX_BYTES_IN_HAND, "a": HALF + 1, "b": HALF + 1, "small": HALF + 2 - 3}
        tasks = [asyncio.ensure_future(enter(name, size)) for name, size in sizes.items()]
        await turns()
        room.leave()
        await asyncio.gather(*tasks)
        assert entered == ["small", "a", "b", "large"]

    asyncio.run(story())


def test_one_that_is_larger_than_all_the_room_is_alone() -> None:
    async def story() -> None:
        requests = LongRequests()
        small = await requests.enter(10)
        large = asyncio.ensure_future(requests.enter(3 * MAX_BYTES_IN_HAND))
        await turns()
        assert not large.done()
        small.leave()
        await turns()
        other = asyncio.ensure_future(requests.enter(10))
        await turns()
        assert large.done() and not other.done()
        large.result().leave()
        (await other).leave()

    asyncio.run(story())


def test_whoever_gives_up_waiting_takes_no_room() -> None:
    async def story() -> None:
        requests = LongRequests()
        room = await requests.enter(MAX_BYTES_IN_HAND)
        waiting = [asyncio.ensure_future(requests.enter(HALF + i)) for i in range(4)]
        await turns()
        waiting[0].cancel()
        room.leave()
        waiting[1].cancel()  # it has just been let in, and does not know yet
        await turns(5)
        with pytest.raises(asyncio.CancelledError):
            await waiting[1]
        assert isinstance(await waiting[2], Room)
        assert not waiting[3].done()
        waiting[2].result().leave()
        (await waiting[3]).leave()
        (await requests.enter(MAX_BYTES_IN_HAND)).leave()

    asyncio.run(story())


def test_room_is_given_back_once() -> None:
    async def story() -> None:
        requests = LongRequests()
        first, second = await requests.enter(HALF), await requests.enter(HALF)
        first.leave()
        first.leave()
        third = await requests.enter(HALF)
        fourth = asyncio.ensure_future(requests.enter(1))
        await turns()
        assert not fourth.done()
        for room in (second, third):
            room.leave()
        (await fourth).leave()

    asyncio.run(story())
