"""A client that makes a new producer for every record: memory is limited."""

import tracemalloc

from odradek.log.producers.rules import AppendOrigin
from odradek.log.producers.state import MAX_PRODUCERS, ProducerState, StagedProducers
from odradek.records.header import BatchMeta
from tests.unit.log.support import idempotent, transactional

FLOOD = 100_000
TEMPLATE = idempotent(0).batches[0]
OPEN = transactional(0).batches[0]


def send(
    state: ProducerState, producer_id: int, batch: BatchMeta = TEMPLATE, *, replayed: bool = False
) -> None:
    offset = state.end_offset
    written = batch._replace(producer_id=producer_id, base_offset=offset)
    if replayed:
        state.replay(written, None)
    else:
        staged = StagedProducers(state)
        assert staged.add(written, offset, AppendOrigin.CLIENT) is None
        state.commit(staged)
    state.end_offset += 1


def test_a_hundred_thousand_producers_take_less_than_a_kilobyte_each() -> None:
    state = ProducerState()
    tracemalloc.start()
    try:
        for producer_id in range(FLOOD):
            send(state, producer_id)
        assert tracemalloc.get_traced_memory()[0] < FLOOD * 1024
    finally:
        tracemalloc.stop()
    assert state.expire(10**15, 86_400_000) == FLOOD
    assert state.entries == {}


def test_beyond_the_limit_the_longest_silent_are_forgotten() -> None:
    for replayed in (False, True):
        state = ProducerState()
        send(state, 1, OPEN, replayed=replayed)
        for producer_id in range(2, MAX_PRODUCERS + 1):
            send(state, producer_id, replayed=replayed)
        again = TEMPLATE._replace(base_sequence=1)
        send(state, 2, again, replayed=replayed)
        assert len(state.entries) == MAX_PRODUCERS
        for producer_id in range(MAX_PRODUCERS + 1, MAX_PRODUCERS + 101):
            send(state, producer_id, replayed=replayed)
        assert len(state.entries) <= MAX_PRODUCERS
        assert 1 in state.entries, "its transaction is open"
        assert state.first_unstable_offset == 0
        assert 2 in state.entries, "it wrote a moment ago"
        assert 3 not in state.entries
        assert MAX_PRODUCERS + 100 in state.entries
