"""What a new leader makes of the log: what was decided is finished, what was open is left to its timeout."""

import logging
from collections.abc import Callable

import pytest

from odradek.coordinators.records import TransactionLogKey, encode_key
from odradek.coordinators.transactions.log_format import (
    decode,
    decode_in_slices,
    encode,
    encode_in_slices,
)
from odradek.coordinators.transactions.metadata import TransactionMetadata
from odradek.coordinators.transactions.states import TxnState
from odradek.core.errors import ErrorCode, ProtocolError
from odradek.core.types import ProducerIdAndEpoch, TopicPartition
from odradek.records.batch import iter_batches, iter_records
from odradek.runtime.slices import at_once
from tests.unit.coordinators.transactions.harness import ABORT, COMMIT, START_MS, TID, A, B, Harness

E = ErrorCode
S = TxnState


@pytest.mark.parametrize("commit", [COMMIT, ABORT])
@pytest.mark.parametrize("version", [0, 2])
def test_what_was_decided_is_finished(h: Harness, commit: bool, version: int) -> None:
    producer = h.producer()
    h.add(producer, A, B, version=version)
    h.slow_markers = True
    h.end(producer, commit, version=version)
    h.slow_markers = False
    h.reload()
    assert h.txn().state is (S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT)
    (written,) = h.written
    epoch = producer.producer_epoch + (version == 2)
    assert written.producer == ProducerIdAndEpoch(producer.producer_id, epoch)
    assert (written.commit, written.version, written.partitions) == (commit, version, [A, B])


def test_nothing_is_driven_before_the_log_is_committed_as_far_as_it_was_loaded(
    new: Callable[..., Harness],
) -> None:
    h = new()
    producer = h.producer()
    h.add(producer, A)
    h.log.held = True
    h.start(h.end_step(producer, COMMIT))
    h.reload()
    assert h.txn().state is S.PREPARE_COMMIT
    h.advance(60_000)
    assert h.written == []
    h.log.held = False
    h.commit_log()
    assert len(h.written) == 1
    assert h.txn().state is S.COMPLETE_COMMIT


def test_what_was_open_is_left_to_its_timeout(h: Harness) -> None:
    producer = h.producer(timeout_ms=60_000)
    h.add(producer, A)
    h.advance(30_000)
    h.reload()
    assert h.txn().state is S.ONGOING
    assert h.add(producer, B) is E.NONE
    h.advance(20_000)
    assert h.txn().state is S.ONGOING
    h.advance(30_000)
    assert h.txn().state is S.COMPLETE_ABORT


def test_a_request_that_waited_is_told_to_look_elsewhere(new: Callable[..., Harness]) -> None:
    h = new(held=True)
    task = h.start(lambda: h.coordinator.init_producer_id(TID, 60_000, None, 1))
    h.run(lambda: h.coordinator.on_resigned(0))
    h.run(h.log.lose_leadership)
    h.turn_a_while()
    exception = task.exception()
    assert getattr(exception, "code", None) is E.NOT_COORDINATOR
    assert h.code(lambda: h.coordinator.init_producer_id(TID, 1, None, 1)) is E.NOT_COORDINATOR


def test_replay_gives_the_live_state_but_for_the_last_epoch(h: Harness) -> None:
    producer = h.producer()
    h.add(producer, A, B)
    following = h.end(producer, COMMIT)
    h.add(following, B)
    before = dict(h.shard.transactions)
    h.reload()
    assert {t: m._replace(last_producer_epoch=-1) for t, m in before.items()} == h.shard.transactions


def test_a_value_of_an_unknown_version_is_skipped_and_told(
    h: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    producer = h.producer()
    key = encode_key(TransactionLogKey(transactional_id="from the future"))
    h.run(lambda: h.log.append([(key, b"\x00\x09whatever")], START_MS))
    with caplog.at_level(logging.WARNING):
        h.reload()
    assert "unknown version 9" in caplog.text
    assert list(h.shard.transactions) == [TID]
    assert h.txn().client == producer


def test_a_changed_number_of_partitions_is_refused(h: Harness, caplog: pytest.LogCaptureFixture) -> None:
    h.producer()
    h.partition_count = 2
    h.run(lambda: h.coordinator.on_resigned(0))
    h.elect()
    assert "now has 2 partitions instead of 1" in caplog.text
    assert h.code(lambda: h.coordinator.init_producer_id(TID, 1, None, 1)) is E.NOT_COORDINATOR


@pytest.mark.parametrize(("server_version", "value_version"), [(0, 0), (1, 1), (2, 1)])
def test_values_are_written_as_the_clusters_version_asks(
    new: Callable[..., Harness], server_version: int, value_version: int
) -> None:
    h = new(server_version=server_version)
    h.producer()
    data = h.log.batches[-1][1]
    (record,) = iter_records(data, next(iter_batches(data)))
    assert record.value is not None
    assert int.from_bytes(record.value[:2], "big") == value_version


def test_the_oldest_values_lose_only_what_they_have_no_room_for() -> None:
    txn = TransactionMetadata(
        TID, 7, 3, 60_000, S.ONGOING, (A, B), START_MS, START_MS + 5, 6, 2, 8, 0, client_version=2
    )
    _, value = encode(lambda: 0, (TID, txn))
    assert decode(encode_key(TransactionLogKey(transactional_id=TID)), value) == (
        TID,
        TransactionMetadata(TID, 7, 3, 60_000, S.ONGOING, (A, B), START_MS, START_MS + 5),
    )


def test_a_transaction_begun_under_another_version_is_ended_under_the_new_one(
    new: Callable[..., Harness],
) -> None:
    h = new(server_version=1)
    producer = h.producer()
    h.add(producer, A, version=0)
    h.server_version = 2
    following = h.end(producer, COMMIT, version=2)
    assert following == ProducerIdAndEpoch(producer.producer_id, 1)
    h.server_version = 1
    h.reload()
    assert h.add(following, A, version=0) is E.NONE
    assert h.end_code(following, COMMIT, version=0) is E.NONE


@pytest.mark.parametrize("version", [0, 1])
def test_a_record_of_many_partitions_is_the_same_in_slices(version: int) -> None:
    """Its topics are sorted, whatever order they were added in."""
    partitions = tuple(TopicPartition(f"t{i % 40:02d}", i) for i in reversed(range(300)))
    txn = TransactionMetadata(TID, 7, 3, 60_000, S.ONGOING, partitions, START_MS, START_MS)
    encoded = encode(lambda: version, (TID, txn))
    assert at_once(encode_in_slices(lambda: version, (TID, txn))) == encoded
    key, value = encoded
    assert value is not None
    assert at_once(decode_in_slices(key, value)) == decode(key, value)
    assert decode(key, value) == (TID, txn._replace(partitions=tuple(sorted(partitions))))


def test_a_long_value_of_an_unknown_version_is_skipped_in_slices_too() -> None:
    key, _ = encode(lambda: 1, (TID, None))
    assert at_once(decode_in_slices(key, b"\x00\x09" + bytes(1_000))) is None


def test_a_record_that_cannot_be_read_is_an_error() -> None:
    key, _ = encode(lambda: 1, (TID, None))
    with pytest.raises(ProtocolError, match="has no key"):
        decode(None, None)
    _, value = encode(lambda: 1, (TID, TransactionMetadata(TID, 7, 3, 60_000)))
    assert value is not None
    status_at = 2 + 8 + 2 + 4  # after version, producer id, epoch and timeout
    with pytest.raises(ProtocolError, match="the unknown state 99"):
        decode(key, value[:status_at] + b"\x63" + value[status_at + 1 :])
