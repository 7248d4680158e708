"""AddPartitionsToTxn: which producers may add or verify partitions, when, and what that starts."""

from collections.abc import Callable

import pytest

from odradek.coordinators.transactions.states import TxnState
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_TIMESTAMP, ProducerIdAndEpoch
from tests.unit.coordinators.transactions.harness import COMMIT, TID, A, B, Harness

E = ErrorCode
S = TxnState


@pytest.mark.parametrize("version", [0, 2])
def test_the_first_partition_begins_the_transaction(h: Harness, version: int) -> None:
    producer = h.producer()
    assert h.txn().start_ms == NO_TIMESTAMP
    h.advance(500)
    began = h.clock.now_ms()
    assert h.add(producer, A, version=version) is E.NONE
    h.advance(500)
    assert h.add(producer, B, version=version) is E.NONE
    assert (h.txn().state, h.txn().partitions, h.txn().start_ms) == (S.ONGOING, (A, B), began)


def test_what_is_known_is_not_written_again(h: Harness) -> None:
    producer = h.producer()
    h.add(producer, A, B)
    end = h.log.log_end_offset
    assert h.add(producer, B) is E.NONE
    assert h.add(producer, A, B) is E.NONE
    assert h.log.log_end_offset == end


def test_strangers_and_zombies_add_nothing(h: Harness) -> None:
    zombie = h.producer()
    producer = h.producer()
    assert h.add(zombie) is E.PRODUCER_FENCED
    assert h.add(producer._replace(producer_epoch=9)) is E.PRODUCER_FENCED
    assert h.add(ProducerIdAndEpoch(4711, 0)) is E.INVALID_PRODUCER_ID_MAPPING
    assert h.add(producer, tid="nobody") is E.INVALID_PRODUCER_ID_MAPPING
    assert h.add(producer, tid="") is E.INVALID_REQUEST
    assert h.txn().state is S.EMPTY


def test_a_completed_transaction_is_followed_by_the_next(h: Harness) -> None:
    producer = h.producer()
    h.add(producer, A)
    following = h.end(producer, COMMIT)
    assert h.add(producer, A) is E.PRODUCER_FENCED
    assert h.add(following, B) is E.NONE
    assert h.txn().partitions == (B,)


def test_the_question_is_answered_partition_by_partition(h: Harness) -> None:
    producer = h.producer()
    assert h.verify(producer, A) == [E.TRANSACTION_ABORTABLE]
    h.add(producer, A)
    assert h.verify(producer, A, B) == [E.NONE, E.TRANSACTION_ABORTABLE]


@pytest.mark.parametrize("version", [0, 2])
def test_the_question_is_not_answered_while_the_transaction_is_being_ended(h: Harness, version: int) -> None:
    producer = h.producer()
    h.add(producer, A, version=version)
    h.slow_markers = True
    h.end(producer, COMMIT, version=version)
    with pytest.raises(KafkaError) as refusal:
        h.verify(h.txn().client, A)
    assert refusal.value.code is E.CONCURRENT_TRANSACTIONS
    h.let_markers_through()
    assert h.verify(h.txn().client, A) == [E.TRANSACTION_ABORTABLE]


def test_the_question_of_a_zombie_is_refused(h: Harness) -> None:
    zombie = h.producer()
    h.add(zombie, A)
    h.code(lambda: h.coordinator.init_producer_id(TID, 60_000, None, 1))
    with pytest.raises(KafkaError) as refusal:
        h.verify(zombie, A)
    assert refusal.value.code is E.PRODUCER_FENCED


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (E.NOT_ENOUGH_REPLICAS, E.COORDINATOR_NOT_AVAILABLE),
        (E.NOT_ENOUGH_REPLICAS_AFTER_APPEND, E.COORDINATOR_NOT_AVAILABLE),
        (E.REQUEST_TIMED_OUT, E.COORDINATOR_NOT_AVAILABLE),
        (E.UNKNOWN_TOPIC_OR_PARTITION, E.COORDINATOR_NOT_AVAILABLE),
        (E.NOT_LEADER_OR_FOLLOWER, E.NOT_COORDINATOR),
        (E.KAFKA_STORAGE_ERROR, E.NOT_COORDINATOR),
        (E.MESSAGE_TOO_LARGE, E.UNKNOWN_SERVER_ERROR),
        (E.RECORD_LIST_TOO_LARGE, E.UNKNOWN_SERVER_ERROR),
    ],
)
def test_what_the_log_refuses_never_happened(h: Harness, refusal: ErrorCode, told: ErrorCode) -> None:
    producer = h.producer()
    before = h.txn()
    h.log.error = KafkaError(refusal)
    assert h.add(producer, A) is told
    assert h.code(lambda: h.coordinator.init_producer_id(TID, 60_000, None, 1)) is told
    assert h.txn() == before
    h.log.error = None
    assert h.add(producer, A) is E.NONE, "nothing is pending"
    h.log.error = KafkaError(refusal)
    assert h.end_code(producer) is told
    assert h.written == []
    h.log.error = None
    assert h.end_code(producer) is E.NONE
    assert len(h.written) == 1


def test_an_answer_that_is_not_committed_in_time_is_not_given(new: Callable[..., Harness]) -> None:
    h = new(held=True, commit_timeout_ms=5_000)
    task = h.start(lambda: h.coordinator.init_producer_id(TID, 60_000, None, 1))
    h.advance(4_900)
    assert not task.done()
    h.advance(200)
    with pytest.raises(KafkaError) as refusal:
        task.result()
    assert refusal.value.code is E.COORDINATOR_NOT_AVAILABLE
    # It stands in the log and may yet be committed: until then nothing else may happen to the id.
    assert h.code(lambda: h.coordinator.init_producer_id(TID, 1, None, 1)) is E.CONCURRENT_TRANSACTIONS
    h.commit_log()
    again = h.start(lambda: h.coordinator.init_producer_id(TID, 60_000, None, 1))
    h.commit_log()
    assert again.result().producer_epoch == 1
