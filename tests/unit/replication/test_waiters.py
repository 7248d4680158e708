"""Requests that wait for a partition are called once, in order, and never lost."""

import asyncio

import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.log.parts.bounds import Bounds, Isolation
from odradek.log.producers.state import ProducerState
from odradek.replication.fetch_sessions import PartitionFetch
from odradek.replication.waiters import WOKEN_TOGETHER, CommitWaiters, FetchWaiters, FetchWatch, future_of
from odradek.runtime.slices import Slices
from tests.unit.log.support import transactional
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
        waiters.add(waiter, PartitionFetch(0, 1))
    return made


def test_a_few_fetches_are_woken_at_once() -> None:
    waiters = FetchWaiters(Slices())
    few = waiting_on(waiters, WOKEN_TOGETHER + 1)
    waiters.remove(few[3])
    waiters.remove(few[3])
    waiters.wake()
    assert [waiter.times for waiter in few] == [1, 1, 1, 0, *[1] * (WOKEN_TOGETHER - 3)]


def test_a_change_ends_a_watch_until_the_partition_is_read_again() -> None:
    """Otherwise every append would cost something for each session that nobody uses any more."""
    waiters = FetchWaiters(Slices())
    watch = Poked()
    waiters.add(watch, watch.partition)
    waiters.wake()
    assert watch.dirty == {watch.partition: None} and watch.times == 1
    watch.dirty.clear()
    waiters.wake()
    assert watch.dirty == {} and watch.times == 1
    waiters.add(watch, watch.partition)
    waiters.wake()
    assert watch.dirty == {watch.partition: None} and watch.times == 2


def test_each_reader_hears_of_the_bound_that_it_reads_up_to() -> None:
    producers = ProducerState()
    bounds = Bounds(producers, 0, 10, 0)
    waiters = FetchWaiters(Slices())
    follower, consumer, committed = (Poked(isolation=isolation) for isolation in Isolation)
    everyone = [follower, consumer, committed]

    def heard() -> list[tuple[int, bool]]:
        """How often each was poked, and whether it has to read the partition."""
        return [(watch.times, bool(watch.dirty)) for watch in everyone]

    def all_have_read() -> None:
        for watch in everyone:
            watch.dirty.clear()
            waiters.add(watch, PartitionFetch(0, 1))

    all_have_read()
    waiters.log_end_moved()
    assert heard() == [(1, True), (0, False), (0, False)]
    all_have_read()
    bounds.advance_high_watermark(3)
    waiters.high_watermark_moved(bounds)
    assert heard() == [(1, True), (1, True), (1, True)], "a follower hears of it with its next answer"
    waiters.log_end_moved()
    assert follower.times == 2, "its watch goes on"
    all_have_read()
    (open_transaction,) = transactional(0).batches
    producers.replay(open_transaction._replace(base_offset=3), None)
    bounds.transactions_changed()
    bounds.advance_high_watermark(4)
    waiters.high_watermark_moved(bounds)
    assert heard() == [(2, True), (2, True), (1, True)], "the last stable offset has not moved"
    all_have_read()
    waiters.wake()
    assert heard() == [(3, True), (3, True), (2, True)]


def test_only_fetches_that_wait_are_poked() -> None:
    waiters = FetchWaiters(Slices())
    session, waiting = FetchWatch(), Poked()
    waiters.add(session, PartitionFetch(0, 1))
    waiters.add(waiting, PartitionFetch(0, 1))
    assert waiters.waiting == [waiting]
    waiters.wake()
    assert session.dirty and waiting.times == 1 and waiters.waiting == []


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
        assert not any(waiter.times for waiter in many), "not in the call that made the partition move"
        assert all(waiter.dirty for waiter in many), "but who reads now finds what is new"
        await _turns()
        assert all(waiter.times == 1 for waiter in many)
        for waiter in many:
            waiters.add(waiter, PartitionFetch(0, 1))
        waiters.wake()
        await _turns()
        assert all(waiter.times == 2 for waiter in many)
        assert owners == [True, True]

    asyncio.run(run())


def test_a_move_while_many_are_woken_wakes_those_once_more_that_read_before_it() -> None:
    async def run() -> None:
        waiters = FetchWaiters(Slices())
        first = Poked(lambda: waiters.add(first, first.partition) if first.times == 1 else None)

        def move() -> None:
            waiters.wake()
            waiters.wake()

        many = [Poked() for _ in range(WOKEN_TOGETHER)]
        for waiter in (first, Poked(move), *many):
            waiters.add(waiter, PartitionFetch(0, 1))
        waiters.wake()
        await _turns()
        assert [waiter.times for waiter in (first, *many)] == [2] + [1] * WOKEN_TOGETHER

    asyncio.run(run())


def test_a_fetch_that_is_answered_while_many_are_woken_is_left_alone() -> None:
    async def run() -> None:
        waiters = FetchWaiters(Slices())

        def answered() -> None:
            last.fetch = None

        waiters.add(Poked(answered), PartitionFetch(0, 1))
        many = waiting_on(waiters, WOKEN_TOGETHER)
        last = many[-1]
        waiters.wake()
        await _turns()
        assert last.times == 0 and many[0].times == 1

    asyncio.run(run())
