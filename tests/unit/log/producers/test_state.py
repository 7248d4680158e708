"""Sequences, epochs and transactions of producers, checked against what a partition remembers."""

import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.log.producers.entry import ProducerBatch, ProducerEntry
from odradek.log.producers.markers import Marker
from odradek.log.producers.rules import AppendOrigin
from odradek.log.producers.snapshot import CorruptSnapshotError, format_snapshot, parse_snapshot
from odradek.log.producers.state import CompletedTxn, ProducerState, StagedProducers
from odradek.records.control import EndTransactionMarker
from odradek.records.header import BatchMeta
from tests.golden import loader
from tests.unit.log.support import NOW_MS, idempotent, marker, transactional

MAX_INT16 = 0x7FFF
MAX_INT32 = 0x7FFFFFFF


class Partition:
    """Producer state with a log end offset, fed batch by batch."""

    def __init__(self) -> None:
        self.state = ProducerState()
        self.end_offset = 0

    def add(
        self,
        batch: BatchMeta,
        origin: AppendOrigin | None = AppendOrigin.CLIENT,
        end: Marker | None = None,
        transaction_version: int = 0,
    ) -> ProducerBatch | None:
        staged = StagedProducers(self.state)
        duplicate = staged.add(batch, self.end_offset, origin, end, transaction_version)
        if duplicate is None:
            self.state.commit(staged)
            for completed in staged.completed:
                self.state.complete(completed)
            self.end_offset += batch.last_offset_delta + 1
        return duplicate

    def send(
        self, sequence: int, count: int = 1, epoch: int = 0, producer_id: int = 7
    ) -> ProducerBatch | None:
        return self.add(idempotent(sequence, count, producer_id, epoch).batches[0])

    def write(self, sequence: int, count: int = 1, epoch: int = 0, producer_id: int = 7) -> None:
        self.add(transactional(sequence, count, producer_id=producer_id, epoch=epoch).batches[0])

    def end(
        self,
        *,
        committed: bool,
        epoch: int = 0,
        coordinator_epoch: int = 0,
        producer_id: int = 7,
        transaction_version: int = 0,
        origin: AppendOrigin | None = AppendOrigin.COORDINATOR,
    ) -> None:
        built = marker(
            committed=committed, producer_id=producer_id, epoch=epoch, coordinator_epoch=coordinator_epoch
        )
        end = Marker(EndTransactionMarker(committed, coordinator_epoch), 5)
        self.add(built.batches[0], origin, end, transaction_version)


@pytest.fixture
def partition() -> Partition:
    return Partition()


def refused(code: ErrorCode) -> "pytest.RaisesContext[KafkaError]":
    return pytest.raises(KafkaError, check=lambda e: e.code == code)


def test_sequences_must_be_contiguous(partition: Partition) -> None:
    partition.send(0, 5)
    partition.send(5, 2)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        partition.send(8)
    partition.send(7)


def test_a_refused_batch_changes_nothing(partition: Partition) -> None:
    partition.send(0)
    before = partition.state.entries[7]
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        partition.send(2)
    assert partition.state.entries[7] == before


def test_sequences_wrap_to_zero_after_the_largest_int32(partition: Partition) -> None:
    partition.send(MAX_INT32 - 1, 2)
    partition.send(0, 3)
    partition.send(3)


def test_a_batch_may_span_the_wrap_and_is_known_as_a_duplicate(partition: Partition) -> None:
    partition.send(MAX_INT32, 3)
    partition.send(2)
    duplicate = partition.send(MAX_INT32, 3)
    assert duplicate is not None
    assert (duplicate.first_offset, duplicate.last_offset) == (0, 2)


def test_the_last_five_batches_are_known_as_duplicates(partition: Partition) -> None:
    for sequence in range(6):
        partition.send(sequence)
    for sequence in range(1, 6):
        duplicate = partition.send(sequence)
        assert duplicate is not None
        assert duplicate.first_offset == duplicate.last_offset == sequence
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        partition.send(0)


def test_a_duplicate_has_the_same_range_of_sequences(partition: Partition) -> None:
    partition.send(0, 4)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        partition.send(0, 3)


def test_an_unknown_producer_may_begin_anywhere(partition: Partition) -> None:
    partition.send(123)
    partition.send(124)


def test_a_new_epoch_begins_at_zero(partition: Partition) -> None:
    partition.send(0, 9)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        partition.send(9, epoch=1)
    partition.send(0, epoch=1)
    assert partition.state.entries[7].batches == (ProducerBatch(0, 9, 0, 1_750_000_000_000),)


def test_an_older_epoch_is_fenced(partition: Partition) -> None:
    partition.send(0, epoch=3)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        partition.send(1, epoch=2)


def test_a_replicated_batch_is_taken_as_it_is(partition: Partition) -> None:
    partition.send(0, epoch=3)
    partition.add(idempotent(90, 2, epoch=2).batches[0], origin=None)
    assert partition.state.entries[7].last_sequence == 91


def test_the_first_unstable_offset_is_where_the_oldest_open_transaction_begins(partition: Partition) -> None:
    partition.write(0, 3, producer_id=1)
    partition.write(0, 2, producer_id=2)
    assert partition.state.first_unstable_offset == 0
    partition.end(committed=True, producer_id=1)
    assert partition.state.first_unstable_offset == 0  # decided, but its marker is not replicated
    partition.state.high_watermark_moved(5)
    assert partition.state.first_unstable_offset == 0
    partition.state.high_watermark_moved(6)
    assert partition.state.first_unstable_offset == 3
    partition.end(committed=False, producer_id=2)
    partition.state.high_watermark_moved(7)
    assert partition.state.first_unstable_offset is None


def test_a_completed_transaction_ends_stability_where_the_next_open_one_begins(partition: Partition) -> None:
    partition.write(0, 3, producer_id=1)
    partition.write(0, 2, producer_id=2)
    first = CompletedTxn(1, 0, 5, aborted=True)
    assert partition.state.stable_offset_after(first) == 3
    partition.end(committed=False, producer_id=1)
    assert partition.state.stable_offset_after(CompletedTxn(2, 3, 6, aborted=True)) == 7


def test_a_plain_write_inside_a_transaction_is_refused(partition: Partition) -> None:
    partition.write(0)
    with refused(ErrorCode.INVALID_TXN_STATE):
        partition.send(1)


def test_a_marker_without_a_transaction_completes_none(partition: Partition) -> None:
    partition.end(committed=True)
    assert partition.state.first_unstable_offset is None
    assert partition.state.entries[7].batches == ()


def test_a_marker_of_an_older_epoch_is_refused(partition: Partition) -> None:
    partition.write(0, epoch=2)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        partition.end(committed=True, epoch=1)


def test_a_marker_of_an_older_coordinator_is_refused(partition: Partition) -> None:
    partition.write(0)
    partition.end(committed=True, coordinator_epoch=4)
    partition.write(1)
    with refused(ErrorCode.TRANSACTION_COORDINATOR_FENCED):
        partition.end(committed=True, coordinator_epoch=3)


def test_with_an_epoch_per_transaction_the_marker_must_raise_it(partition: Partition) -> None:
    partition.write(0, epoch=4)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        partition.end(committed=True, epoch=4, transaction_version=2)
    partition.end(committed=True, epoch=5, transaction_version=2)
    partition.end(committed=True, epoch=5, transaction_version=2)  # a retry of the same marker
    partition.write(0, epoch=5)


def test_at_the_last_epoch_the_marker_has_that_of_the_data(partition: Partition) -> None:
    """There is none above it: nobody else can write at it, since no client is ever given it."""
    partition.write(0, epoch=MAX_INT16)
    partition.end(committed=True, epoch=MAX_INT16, transaction_version=2)
    assert partition.state.first_unstable_offset == 0, "until the high watermark has passed the marker"
    partition.state.high_watermark_moved(partition.end_offset)
    assert not partition.state.has_transactions


def test_below_the_last_epoch_the_marker_must_raise_it(partition: Partition) -> None:
    partition.write(0, epoch=MAX_INT16 - 1)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        partition.end(committed=True, epoch=MAX_INT16 - 1, transaction_version=2)
    partition.end(committed=True, epoch=MAX_INT16, transaction_version=2)


def test_a_transaction_is_late_five_minutes_after_the_longest_timeout(partition: Partition) -> None:
    longest_ms, five_minutes_ms = 900_000, 300_000
    partition.send(0, producer_id=1)
    partition.write(0, producer_id=2)
    late_ms = NOW_MS + longest_ms + five_minutes_ms

    def is_late(now_ms: int) -> bool:
        return partition.state.has_late_transaction(now_ms, longest_ms)

    assert not is_late(late_ms)
    assert is_late(late_ms + 1)
    assert not partition.state.has_late_transaction(late_ms + 1, longest_ms + 1)
    partition.end(committed=True, producer_id=2)
    assert not is_late(late_ms + 1)


def test_a_stage_over_a_stage_sees_its_changes_and_may_be_dropped(partition: Partition) -> None:
    lower = StagedProducers(partition.state)
    lower.add(idempotent(0, 2).batches[0], 0, AppendOrigin.CLIENT)
    dropped = StagedProducers(lower)
    dropped.add(idempotent(2).batches[0], 2, AppendOrigin.CLIENT)
    upper = StagedProducers(lower)
    upper.add(idempotent(2, 3).batches[0], 2, AppendOrigin.CLIENT)
    lower.merge(upper)
    partition.state.commit(lower)
    assert partition.state.entries[7].last_sequence == 4


def test_silent_producers_are_forgotten_but_not_in_a_transaction(partition: Partition) -> None:
    partition.send(0, producer_id=1)
    partition.write(0, producer_id=2)
    day_ms = 86_400_000
    assert partition.state.expire(1_750_000_000_000 + day_ms - 1, day_ms) == 0
    assert partition.state.expire(1_750_000_000_000 + day_ms, day_ms) == 1
    assert list(partition.state.entries) == [2]


def test_snapshots_of_apache_are_read_and_written_back_byte_for_byte() -> None:
    found = loader.files("clean", suffix=".snapshot")
    assert found
    for name, data in found.items():
        assert format_snapshot(parse_snapshot(data)) == data, name


def test_a_snapshot_keeps_open_transactions_and_the_last_batch(partition: Partition) -> None:
    partition.write(0, 3)
    partition.write(3, 2)
    loaded = ProducerState()
    loaded.load(parse_snapshot(format_snapshot(partition.state.entries.values())), 5)
    assert loaded.first_unstable_offset == 0
    assert loaded.entries[7] == partition.state.entries[7]._replace(
        batches=partition.state.entries[7].batches[-1:]
    )


def test_a_producer_known_by_its_marker_only_has_no_batch_after_a_snapshot() -> None:
    entry = ProducerEntry(5, 2, 1, 99)
    assert parse_snapshot(format_snapshot([entry])) == [entry]


def test_a_flipped_bit_anywhere_in_a_snapshot_is_noticed() -> None:
    data = format_snapshot([ProducerEntry(5, 2, 1, 99, -1, (ProducerBatch(1, 2, 0, 99),))])
    for position in range(len(data)):
        broken = bytearray(data)
        broken[position] ^= 1
        with pytest.raises(CorruptSnapshotError):
            parse_snapshot(bytes(broken))
    for size in range(len(data)):
        with pytest.raises(CorruptSnapshotError):
            parse_snapshot(data[:size])


def test_what_was_refused_is_not_overtaken_by_what_was_under_way_behind_it(partition: Partition) -> None:
    partition.state.expect_start(7, 0, 3)
    partition.state.expect_start(7, 0, 4)
    with pytest.raises(KafkaError) as refused:
        partition.write(4)
    assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    partition.write(3)
    partition.write(4)


def test_a_start_is_expected_of_its_epoch_only_and_until_the_producer_is_known(partition: Partition) -> None:
    partition.state.expect_start(7, 0, 0)
    partition.write(5, epoch=1)
    assert not partition.state.starts
    partition.state.expect_start(8, 0, 3)
    partition.state.expect_start(8, 1, 5)
    partition.write(5, epoch=1, producer_id=8)


def test_starts_that_nobody_makes_are_forgotten(partition: Partition) -> None:
    for producer_id in range(20_000):
        partition.state.expect_start(producer_id, 0, 0)
    assert len(partition.state.starts) == 10_000
    assert 19_999 in partition.state.starts
