"""More producers than a partition keeps: the longest silent go, those in transactions never."""

import pytest

from odradek.core.errors import KafkaError
from odradek.log.producers import state as state_module
from odradek.log.producers.rules import AppendOrigin
from odradek.log.producers.state import ProducerState, StagedProducers
from odradek.records.header import BatchMeta
from tests.unit.log.support import NOW_MS, idempotent, transactional

MOST = 20


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "MAX_PRODUCERS", MOST)


@pytest.fixture(params=["append", "replay"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Partition:
    def __init__(self, way: str) -> None:
        self.state = ProducerState()
        self.way = way
        self.end_offset = 0

    def take(self, batch: BatchMeta) -> None:
        if self.way == "append":
            staged = StagedProducers(self.state)
            staged.add(batch, self.end_offset, AppendOrigin.CLIENT)
            self.state.commit(staged)
        else:
            self.state.replay(batch._replace(base_offset=self.end_offset), None)
        self.end_offset += 1

    def write(self, *producer_ids: int, sequence: int = 0) -> None:
        for producer_id in producer_ids:
            self.take(idempotent(sequence, producer_id=producer_id).batches[0])


def test_as_many_as_may_be_are_all_known(way: str) -> None:
    partition = Partition(way)
    partition.write(*range(MOST))
    assert sorted(partition.state.entries) == list(range(MOST))
    partition.write(0, sequence=1)
    assert len(partition.state.entries) == MOST, "the one that writes is known already"


def test_one_more_lets_a_tenth_go_that_has_been_silent_longest(way: str) -> None:
    partition = Partition(way)
    partition.write(*range(MOST))
    partition.write(0, 1, sequence=1)
    partition.write(100)
    assert sorted(partition.state.entries) == [0, 1, *range(4, MOST), 100]


def test_one_in_a_transaction_is_not_forgotten(way: str) -> None:
    partition = Partition(way)
    partition.take(transactional(0, producer_id=0).batches[0])
    partition.write(*range(1, MOST))
    partition.write(100)
    assert sorted(partition.state.entries) == [0, *range(3, MOST), 100]
    assert partition.state.first_unstable_offset == 0


def test_one_that_was_forgotten_may_come_back_with_any_sequence(way: str) -> None:
    partition = Partition(way)
    partition.write(*range(MOST))
    partition.write(100)
    partition.write(0, sequence=57)
    assert partition.state.entries[0].last_sequence == 57


# --- questions --------------------------------------------------------------------------------------------


def test_a_producer_is_fenced_by_a_later_epoch_only() -> None:
    partition = Partition("append")
    partition.take(idempotent(0, epoch=3).batches[0])
    assert [partition.state.is_fenced(7, epoch) for epoch in (2, 3, 4)] == [True, False, False]
    assert not partition.state.is_fenced(8, 0)


def test_a_producer_is_in_a_transaction_in_its_own_epoch() -> None:
    partition = Partition("append")
    partition.take(transactional(0, epoch=3).batches[0])
    partition.take(idempotent(0, producer_id=9, epoch=3).batches[0])
    assert [partition.state.in_transaction(7, epoch) for epoch in (2, 3, 4)] == [False, True, False]
    assert not partition.state.in_transaction(8, 3)
    assert not partition.state.in_transaction(9, 3)


def test_what_is_loaded_takes_the_place_of_all_that_was_known() -> None:
    partition = Partition("append")
    partition.take(transactional(0).batches[0])
    (first,) = partition.state.entries.values()
    partition.state.complete(state_module.CompletedTxn(7, 0, 1, False))
    assert partition.state.first_unstable_offset == 0
    partition.state.load([], 5)
    assert partition.state.first_unstable_offset is None
    assert not partition.state.has_transactions
    assert partition.state.end_offset == 5
    partition.state.load([first], 9)
    assert partition.state.first_unstable_offset == 0


def test_a_transaction_that_begins_in_a_stage_over_another_is_open() -> None:
    state = ProducerState()
    below = StagedProducers(state)
    above = StagedProducers(below)
    above.add(transactional(0).batches[0], 4, AppendOrigin.COORDINATOR)
    below.merge(above)
    state.commit(below)
    assert state.first_unstable_offset == 4


def test_a_refused_batch_in_a_stage_over_another_leaves_the_other_as_it_was() -> None:
    state = ProducerState()
    below = StagedProducers(state)
    below.add(idempotent(0, timestamp=NOW_MS).batches[0], 0, AppendOrigin.CLIENT)
    with pytest.raises(KafkaError):
        StagedProducers(below).add(idempotent(5).batches[0], 1, AppendOrigin.CLIENT)
    found = below.get(7)
    assert found is not None
    assert found.last_sequence == 0
