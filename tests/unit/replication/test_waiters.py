"""Requests that wait for a partition are called once, in order, and never lost."""

import asyncio

import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.replication.waiters import WOKEN_TOGETHER, CommitWaiters, FetchWaiters, future_of
from odradek.runtime.slices import Slices
from tests.unit.replication.support import Poked

# --- commits ----------------------------------------------------------------------------------------------


def test_waiters_are_released_in_offset_order_up_to_the_high_watermark() -> None:
    waiters = CommitWaiters()
    seen: list[tuple[int, KafkaError | None]] = []
    for offset in (30, 10, 20):
        waiters.add(offset, lambda error, offset=offset: seen.append((offset, error)))  # type: ignore[misc]
    waiters.release(20)
    assert seen == [(10, None), (20, None)]
    assert len(waiters) == 1


def test_those_who_wait_for_one_offset_are_called_as_they_came() -> None:
    released, failed = CommitWaiters(), CommitWaiters()
    seen: list[int] = []
    for number in range(8):
        released.add(5, lambda _, number=number: seen.append(number))  # type: ignore[misc]
        failed.add(5, lambda _, number=number: seen.append(number))  # type: ignore[misc]
    released.release(5)
    failed.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert seen == [*range(8), *range(8)]


def test_lost_leadership_fails_every_waiter() -> None:
    waiters = CommitWaiters()
    seen: list[tuple[int, ErrorCode | None]] = []
    for offset in (5, 3):
        waiters.add(offset, lambda e, offset=offset: seen.append((offset, e and e.code)))  # type: ignore[misc]
    waiters.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert seen == [(3, ErrorCode.NOT_LEADER_OR_FOLLOWER), (5, ErrorCode.NOT_LEADER_OR_FOLLOWER)]
    assert len(waiters) == 0


def test_a_wait_times_out_and_a_later_release_is_harmless() -> None:
    async def run() -> None:
        waiters = CommitWaiters()
        future = future_of(waiters, 5, timeout_ms=1)
        with pytest.raises(KafkaError) as e:
            await future
        assert e.value.code is ErrorCode.REQUEST_TIMED_OUT
        waiters.release(5)

    asyncio.run(run())


def test_a_wait_ends_with_the_commit_or_with_the_error() -> None:
    async def run() -> None:
        waiters = CommitWaiters()
        committed, lost = future_of(waiters, 5, 60_000), future_of(waiters, 6, None)
        waiters.release(5)
        assert await committed is None
        assert not lost.done()
        waiters.fail(ErrorCode.KAFKA_STORAGE_ERROR)
        with pytest.raises(KafkaError) as e:
            await lost
        assert e.value.code is ErrorCode.KAFKA_STORAGE_ERROR

    asyncio.run(run())


def test_a_wait_that_is_over_leaves_no_timer() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        timers: list[tuple[float, asyncio.TimerHandle]] = []
        call_later = loop.call_later

        def noted(delay: float, *rest: object) -> asyncio.TimerHandle:
            timers.append((delay, call_later(delay, *rest)))  # type: ignore[arg-type]
            return timers[-1][1]

        loop.call_later = noted  # type: ignore[method-assign, assignment]
        waiters = CommitWaiters()
        future = future_of(waiters, 5, 60_000)
        waiters.release(5)
        await future
        await asyncio.sleep(0)
        ((delay, timer),) = timers
        assert delay == 60 and timer.cancelled()

    asyncio.run(run())


# --- fetches ----------------------------------------------------------------------------------------------


def waiting_on(waiters: FetchWaiters, count: int) -> list[Poked]:
    made = [Poked() for _ in range(count)]
    for waiter in made:
        waiters.add(waiter)
    return made


def test_few_fetches_are_woken_at_once() -> None:
    waiters = FetchWaiters(Slices())
    few = waiting_on(waiters, WOKEN_TOGETHER + 1)
    waiters.remove(few[3])
    waiters.remove(few[3])
    waiters.wake()
    waiters.wake()
    assert [waiter.times for waiter in few] == [2, 2, 2, 0, *[2] * (WOKEN_TOGETHER - 3)]


async def _turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_many_fetches_are_woken_in_turns_of_the_nodes_own() -> None:
    async def run() -> None:
        slices = Slices()
        owners: list[bool] = []
        begin = slices.run

        class Noted(Slices):
            def run(self, work, *, own=False):  # type: ignore[no-untyped-def]
                owners.append(own)
                return begin(work, own=own)

        waiters = FetchWaiters(Noted())
        many = waiting_on(waiters, WOKEN_TOGETHER + 1)
        waiters.wake()
        assert not any(waiter.times for waiter in many), "not by whoever made the partition move"
        await _turns()
        assert all(waiter.times == 1 for waiter in many)
        waiters.wake()
        await _turns()
        assert all(waiter.times == 2 for waiter in many)
        assert owners == [True, True]

    asyncio.run(run())


def test_a_move_while_many_are_woken_wakes_all_of_them_once_more() -> None:
    async def run() -> None:
        waiters = FetchWaiters(Slices())
        moved: list[None] = []

        def move_once() -> None:
            if not moved:
                moved.append(None)
                waiters.wake()
                waiters.wake()

        waiters.add(first := Poked(move_once))
        many = waiting_on(waiters, WOKEN_TOGETHER)
        waiters.wake()
        await _turns()
        assert [waiter.times for waiter in (first, *many)] == [2] * (WOKEN_TOGETHER + 1)

    asyncio.run(run())


def test_a_fetch_that_is_answered_while_many_are_woken_is_left_alone() -> None:
    async def run() -> None:
        waiters = FetchWaiters(Slices())
        waiters.add(Poked(lambda: waiters.remove(last)))
        many = waiting_on(waiters, WOKEN_TOGETHER)
        last = many[-1]
        waiters.wake()
        await _turns()
        assert last.times == 0 and many[0].times == 1

    asyncio.run(run())
