"""A partition's queue of batches: their order, their sequences, and which of them goes next."""

import pytest

from odradek.client.batches import PartitionQueue, Stage, record_size
from odradek.core.types import ProducerIdAndEpoch, TopicPartition


def test_a_queue_waits_grows_and_keeps_its_order() -> None:
    queue = PartitionQueue(TopicPartition("t", 0), 100)
    assert queue.ready_at(1.0) is None
    queue.add((0, None, b"a", ()), 40, "A", now=10.0)
    assert queue.ready_at(1.0) == 11.0
    queue.add((0, None, b"b", ()), 40, "B", now=10.5)
    queue.add((0, None, b"c", ()), 40, "C", now=10.6)
    assert queue.ready_at(1.0) == 10.0
    first, second = queue.batches
    assert (first.waiters, second.waiters) == (["A", "B"], ["C"])
    us = ProducerIdAndEpoch(7, 0)
    queue.take(first, us)
    assert queue.ready_at(1.0) is None
    queue.delivered(first)
    assert queue.next_sequence == 2
    queue.next_sequence = 0x7FFFFFFF
    queue.take(second, us)
    assert (second.sequence, queue.next_sequence) == (0x7FFFFFFF, 0)


def queue_of(*stages: Stage) -> PartitionQueue:
    """Batches of one record each, in these stages; those in doubt are lost, the others refused."""
    queue = PartitionQueue(TopicPartition("t", 0), 1, max_in_flight=5)
    queue.add((0, None, b"", ()), 10, None, now=0.0)
    queue.take(queue.batches[0], ProducerIdAndEpoch(7, 0))
    queue.delivered(queue.batches[0])
    queue.next_sequence = 0
    for i, _ in enumerate(stages):
        queue.add((0, None, b"", ()), 10, i, now=0.0)
    for batch, stage in zip(list(queue.batches), stages, strict=True):
        if stage is not Stage.FRESH:
            queue.take(batch, ProducerIdAndEpoch(7, 0))
        if stage is Stage.RETRY:
            queue.put_back(batch, 0.0)
    for batch, stage in zip(list(queue.batches), stages, strict=True):
        if stage in (Stage.LOST, Stage.REFUSED):
            batch.in_doubt = stage is Stage.LOST
            queue.give_up(batch)
    return queue


F, W, R, L, X = Stage.FRESH, Stage.IN_FLIGHT, Stage.RETRY, Stage.LOST, Stage.REFUSED


@pytest.mark.parametrize(
    ("stages", "goes", "restarts"),
    [
        ([F], 0, False),
        ([W, F], 1, False),
        ([W, W, W, W, W, F], None, False),
        ([W, W, W, W, F], 4, False),
        ([R, W, W, F], 0, False),
        ([W, R, F], None, False),
        ([R, R, F], 0, False),
        ([L, R, F], 1, False),
        ([L, L, R, F], 2, False),
        ([L, W, R], None, False),
        ([L, F], None, True),
        ([L, W, F], None, False),
        ([L], None, True),
        ([X, R, F], None, True),
        ([X, W, F], None, False),
        ([R, X, R], 0, False),
        ([W, X, F], 2, False),
        ([W, X, W, F], None, False),
    ],
)
def test_which_batch_goes_next_and_when_sequences_begin_anew(
    stages: list[Stage], goes: int | None, restarts: bool
) -> None:
    queue = queue_of(*stages)
    candidate = queue.candidate()
    assert (None if candidate is None else candidate.waiters[0]) == goes
    assert queue.restart_due is restarts


def test_a_lost_batch_is_forgotten_when_a_later_one_proves_to_be_in_the_log() -> None:
    queue = queue_of(L, W, F)
    queue.delivered(queue.batches[1])
    assert not queue.has_gap
    assert [batch.waiters for batch in queue.batches] == [[2]]
    queue = queue_of(W, L, F)
    queue.delivered(queue.batches[0])
    assert queue.restart_due


def test_a_restart_gives_new_sequences_in_the_old_order() -> None:
    queue = queue_of(X, R, R, F)
    assert not queue.wants(ProducerIdAndEpoch(7, 1))
    queue.restart()
    assert queue.wants(ProducerIdAndEpoch(7, 1))
    for batch in list(queue.batches):
        assert queue.candidate() is batch
        queue.take(batch, ProducerIdAndEpoch(7, 1))
    assert [(b.waiters[0], b.sequence) for b in queue.batches] == [(1, 0), (2, 1), (3, 2)]


def test_the_sequence_of_a_refused_batch_is_used_again_only_if_none_follows() -> None:
    queue = queue_of(W, W, F)
    queue.give_up(queue.batches[1])
    assert (queue.has_gap, queue.next_sequence) == (False, 1)
    queue = queue_of(W, W, F)
    queue.give_up(queue.batches[0])
    assert queue.has_gap


def test_a_record_is_never_larger_than_its_estimate() -> None:
    from odradek.records.batch import HEADER_BYTES, build_batch

    for key, value, headers in (
        (None, None, ()),
        (b"k" * 300, b"v" * 70_000, (("ü" * 100, b"x"), ("n", None))),
    ):
        batch = build_batch([(1 << 40, key, value, headers)])
        assert len(batch) - HEADER_BYTES <= record_size(key, value, headers)
