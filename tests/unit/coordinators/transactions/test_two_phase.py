"""KIP-939: transactions that an outside coordinator decides, kept open over a restart of their producer."""

from collections.abc import Callable

import pytest

from odradek.coordinators.transactions.metadata import MAX_EPOCH, TransactionMetadata
from odradek.coordinators.transactions.states import TxnState
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import ProducerIdAndEpoch
from tests.unit.coordinators.transactions.harness import ABORT, COMMIT, START_MS, TID, A, B, Harness

E = ErrorCode
S = TxnState


def init_code(h: Harness, *, two_phase: bool = False, keep: bool = False) -> ErrorCode:
    return h.code(
        lambda: h.coordinator.init_producer_id(TID, 60_000, None, 1, enable_2pc=two_phase, keep_prepared=keep)
    )


@pytest.mark.parametrize("commit", [COMMIT, ABORT])
@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("version", [0, 2])
def test_a_kept_transaction_is_decided_by_its_successor(
    h: Harness, commit: bool, moved: bool, version: int
) -> None:
    producer = h.producer(two_phase=True)
    h.add(producer, A, B)
    kept = h.init(two_phase=True, keep=True)
    assert kept.ongoing == producer
    successor = ProducerIdAndEpoch(kept.producer_id, kept.producer_epoch)
    assert successor == ProducerIdAndEpoch(producer.producer_id, 1)
    if moved:
        h.reload()
    assert h.txn().state is S.ONGOING
    assert h.end_code(producer, commit, version=version) is E.PRODUCER_FENCED
    following = h.end(successor, commit, version=version)
    (written,) = h.written
    assert (written.commit, written.partitions) == (commit, [A, B])
    assert written.producer.producer_epoch == (1 if version == 2 else 0)
    assert h.txn().state is (S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT)
    if version == 2:
        assert following == ProducerIdAndEpoch(producer.producer_id, 2)
        assert h.end(successor, commit) == following, "a retry"
    assert h.add(h.txn().client, A) is E.NONE


def test_a_second_keeper_fences_the_first(h: Harness) -> None:
    producer = h.producer(two_phase=True)
    h.add(producer, A)
    first = h.producer(two_phase=True, keep=True)
    second = h.producer(two_phase=True, keep=True)
    assert second.producer_epoch == first.producer_epoch + 1
    assert h.end_code(first, COMMIT) is E.PRODUCER_FENCED
    assert h.end_code(producer, COMMIT) is E.PRODUCER_FENCED
    assert h.end_code(second, COMMIT) is E.NONE
    assert h.written[0].producer == ProducerIdAndEpoch(producer.producer_id, 1)


def test_nobody_adds_to_a_kept_transaction(h: Harness) -> None:
    producer = h.producer(two_phase=True)
    h.add(producer, A)
    successor = h.producer(two_phase=True, keep=True)
    assert h.add(producer, B) is E.PRODUCER_FENCED
    assert h.add(successor, B) is E.INVALID_TXN_STATE
    for who, wanted in ((producer, E.PRODUCER_FENCED), (successor, E.INVALID_TXN_STATE)):
        with pytest.raises(KafkaError) as refusal:
            h.verify(who, A)
        assert refusal.value.code is wanted
    assert h.txn().partitions == (A,)


def test_a_plain_producer_aborts_what_was_kept(h: Harness) -> None:
    producer = h.producer(two_phase=True)
    h.add(producer, A)
    successor = h.producer(two_phase=True, keep=True)
    assert init_code(h) is E.CONCURRENT_TRANSACTIONS
    assert h.txn().state is S.COMPLETE_ABORT
    assert h.written[0].commit is False
    plain = h.producer()
    assert plain.producer_epoch > successor.producer_epoch + 1
    assert h.end_code(successor, COMMIT) is E.PRODUCER_FENCED


@pytest.mark.parametrize("server_version", [1, 2])
def test_whose_kept_transaction_was_aborted_does_not_begin_another(h: Harness, server_version: int) -> None:
    """It would be told of a commit while what it had kept is gone, before its successor has its epoch."""
    h.server_version = server_version
    h.add(h.producer(two_phase=True), A)
    keeper = h.producer(two_phase=True, keep=True)
    assert init_code(h) is E.CONCURRENT_TRANSACTIONS
    assert h.txn().state is S.COMPLETE_ABORT
    assert h.add(keeper, B, version=0) is E.PRODUCER_FENCED
    assert h.end_code(keeper, COMMIT, version=0) is E.PRODUCER_FENCED
    assert h.txn().producer_epoch > keeper.producer_epoch


def test_who_was_fenced_by_a_keeper_does_not_come_back_by_name(h: Harness) -> None:
    producer = h.producer(two_phase=True)
    h.add(producer, A)
    keeper = h.producer(two_phase=True, keep=True)
    assert init_code(h) is E.CONCURRENT_TRANSACTIONS
    by_name = h.coordinator.init_producer_id
    assert h.code(lambda: by_name(TID, 60_000, producer, 1)) is E.PRODUCER_FENCED
    assert h.code(lambda: by_name(TID, 60_000, keeper, 1)) is E.NONE


def test_keeping_what_is_not_open_is_a_plain_start(h: Harness) -> None:
    producer = h.producer(two_phase=True)
    given = h.init(two_phase=True, keep=True)
    assert given.producer_epoch == producer.producer_epoch + 1
    assert given.ongoing == ProducerIdAndEpoch(-1, -1)


def test_a_kept_transaction_never_times_out(h: Harness) -> None:
    producer = h.producer(timeout_ms=1_000)
    h.add(producer, A)
    h.producer(two_phase=True, keep=True)
    h.advance(3_600_000)
    assert h.txn().state is S.ONGOING


def test_a_keeper_of_an_exhausted_id_gets_a_new_one(h: Harness) -> None:
    h.put(TransactionMetadata(TID, 7, MAX_EPOCH - 1, 2**31 - 1, S.EMPTY, last_update_ms=START_MS))
    last = ProducerIdAndEpoch(7, MAX_EPOCH - 1)
    h.add(last, A)
    kept = h.init(two_phase=True, keep=True)
    successor = ProducerIdAndEpoch(kept.producer_id, kept.producer_epoch)
    assert (successor.producer_id != 7, successor.producer_epoch, kept.ongoing) == (True, 0, last)
    h.reload()
    following = h.end(successor, COMMIT)
    assert h.written[0].producer == ProducerIdAndEpoch(7, MAX_EPOCH)
    assert following == ProducerIdAndEpoch(successor.producer_id, 1)
    assert h.end(successor, COMMIT) == following, "a retry"
    assert h.add(following, A) is E.NONE


def test_a_keeper_with_a_new_id_may_name_itself(h: Harness) -> None:
    h.put(TransactionMetadata(TID, 7, MAX_EPOCH - 1, 1_000, S.EMPTY, last_update_ms=START_MS))
    h.add(ProducerIdAndEpoch(7, MAX_EPOCH - 1), A)
    keeper = h.producer(two_phase=True, keep=True)
    assert keeper.producer_id != 7
    assert h.producer(expected=keeper, two_phase=True, keep=True) == ProducerIdAndEpoch(keeper.producer_id, 1)
    assert h.txn().state is S.ONGOING


def test_an_outside_coordinator_needs_the_brokers_consent(new: Callable[..., Harness]) -> None:
    h = new(two_phase_commit=False)
    assert init_code(h, two_phase=True) is E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert init_code(h, two_phase=True, keep=True) is E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert init_code(h) is E.NONE


def test_keeping_asks_for_two_phases(h: Harness) -> None:
    assert init_code(h, keep=True) is E.INVALID_REQUEST
