import asyncio

import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.replication.isr import CommittedIsr, committed_offset
from odradek.replication.waiters import CommitWaiters, future_of


def test_waiters_are_released_in_offset_order_up_to_the_high_watermark():
    waiters, seen = CommitWaiters(), []
    for offset in (30, 10, 20):
        waiters.add(offset, lambda error, offset=offset: seen.append((offset, error)))
    waiters.release(20)
    assert seen == [(10, None), (20, None)]
    assert len(waiters) == 1


def test_lost_leadership_fails_every_waiter():
    waiters, seen = CommitWaiters(), []
    waiters.add(5, seen.append)
    waiters.add(3, seen.append)
    waiters.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert [e.code for e in seen] == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2
    assert len(waiters) == 0


def test_a_wait_times_out_and_a_later_release_is_harmless():
    async def run():
        waiters = CommitWaiters()
        future = future_of(waiters, 5, timeout_ms=1)
        with pytest.raises(KafkaError) as e:
            await future
        assert e.value.code is ErrorCode.REQUEST_TIMED_OUT
        waiters.release(5)

    asyncio.run(run())


def test_the_high_watermark_is_the_smallest_end_of_the_in_sync_set():
    isr = CommittedIsr((1, 2, 3))
    assert committed_offset(1, 105, {2: 104, 3: 102, 4: 5}, isr) == 102
    assert committed_offset(1, 105, {2: 104}, isr) == 0, "a member never heard of holds everything back"
    assert committed_offset(1, 105, {}, CommittedIsr((1,))) == 105
