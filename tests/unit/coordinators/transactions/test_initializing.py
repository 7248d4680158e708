"""InitProducerId: epochs, fences, the identity a producer names after an error, ids that are used up."""

from collections.abc import Callable

import pytest

from odradek.coordinators.transactions.metadata import MAX_EPOCH, TransactionMetadata
from odradek.coordinators.transactions.states import TxnState
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import ProducerIdAndEpoch
from tests.unit.coordinators.transactions.harness import ABORT, COMMIT, START_MS, TID, A, Harness

E = ErrorCode
S = TxnState


def init_code(h: Harness, expected: ProducerIdAndEpoch | None = None, timeout_ms: int = 60_000) -> ErrorCode:
    return h.code(lambda: h.coordinator.init_producer_id(TID, timeout_ms, expected, 1))


def at_epoch(h: Harness, epoch: int, state: TxnState = S.EMPTY) -> ProducerIdAndEpoch:
    h.put(TransactionMetadata(TID, 7, epoch, 60_000, state, last_update_ms=START_MS))
    return ProducerIdAndEpoch(7, epoch)


def test_every_producer_gets_the_next_epoch(h: Harness) -> None:
    first = h.producer()
    assert first.producer_epoch == 0
    for epoch in (1, 2, 3):
        assert h.producer() == ProducerIdAndEpoch(first.producer_id, epoch)
    assert h.producer("other").producer_id != first.producer_id


@pytest.mark.parametrize("timeout_ms", [-1, 0, 900_001, 2**31 - 1])
def test_a_timeout_out_of_range_is_refused(h: Harness, timeout_ms: int) -> None:
    assert init_code(h, timeout_ms=timeout_ms) is E.INVALID_TRANSACTION_TIMEOUT
    assert h.shard.transactions == {}


def test_the_largest_timeout_is_configured(new: Callable[..., Harness]) -> None:
    h = new(max_timeout_ms=5_000)
    assert init_code(h, timeout_ms=5_001) is E.INVALID_TRANSACTION_TIMEOUT
    assert init_code(h, timeout_ms=5_000) is E.NONE


def test_without_a_producer_id_at_hand_an_unknown_id_waits(h: Harness) -> None:
    h.ids_are_dry = True
    assert init_code(h) is E.COORDINATOR_LOAD_IN_PROGRESS
    h.ids_are_dry = False
    assert init_code(h) is E.NONE


# --- an open transaction ------------------------------------------------------------------------------


@pytest.mark.parametrize(("server_version", "epochs"), [(1, 2), (2, 2)])
def test_an_open_transaction_is_aborted_first(
    new: Callable[..., Harness], server_version: int, epochs: int
) -> None:
    """KAFKA-19367: from version 2 on the abort itself bumps the epoch, and nothing else does before."""
    h = new(server_version=server_version)
    zombie = h.producer()
    h.add(zombie, A, version=server_version)
    assert init_code(h) is E.CONCURRENT_TRANSACTIONS
    assert h.txn().state is S.COMPLETE_ABORT
    (written,) = h.written
    assert (written.commit, written.producer) == (False, ProducerIdAndEpoch(zombie.producer_id, 1))
    assert h.producer() == ProducerIdAndEpoch(zombie.producer_id, epochs)
    assert h.end_code(zombie, version=server_version) is E.PRODUCER_FENCED


@pytest.mark.parametrize("server_version", [1, 2])
def test_a_fence_that_cannot_be_written_bumps_the_epoch_once(
    new: Callable[..., Harness], server_version: int
) -> None:
    h = new(server_version=server_version)
    zombie = h.producer()
    h.add(zombie, A)
    h.log.error = KafkaError(E.NOT_ENOUGH_REPLICAS)
    for _ in range(5):
        assert init_code(h) is E.COORDINATOR_NOT_AVAILABLE
    assert h.txn().client == zombie
    assert h.txn().state is S.ONGOING
    h.log.error = None
    assert init_code(h) is E.CONCURRENT_TRANSACTIONS
    assert h.txn().producer_epoch == 1
    assert h.producer().producer_epoch == 2


def test_while_a_transaction_is_being_ended_a_producer_waits(h: Harness) -> None:
    producer = h.producer()
    h.add(producer, A)
    h.slow_markers = True
    h.end(producer, COMMIT)
    assert init_code(h) is E.CONCURRENT_TRANSACTIONS
    assert init_code(h, h.txn().client) is E.CONCURRENT_TRANSACTIONS
    h.let_markers_through()
    assert h.producer().producer_epoch == 2


# --- a producer that names who it was (KIP-360) -------------------------------------------------------


def test_a_producer_goes_on_with_the_epoch_after_the_one_it_names(h: Harness) -> None:
    producer = h.producer()
    assert h.producer(expected=producer) == ProducerIdAndEpoch(producer.producer_id, 1)


def test_a_lost_answer_is_given_again(h: Harness) -> None:
    producer = h.producer()
    following = h.producer(expected=producer)
    assert h.producer(expected=producer) == following
    assert h.producer(expected=following) == ProducerIdAndEpoch(producer.producer_id, 2)
    assert init_code(h, producer) is E.PRODUCER_FENCED


def test_epochs_from_the_past_and_the_future_are_fenced(h: Harness) -> None:
    producer = h.producer()
    for _ in range(3):
        h.producer()
    assert init_code(h, producer) is E.PRODUCER_FENCED
    assert init_code(h, ProducerIdAndEpoch(producer.producer_id, 17)) is E.PRODUCER_FENCED
    assert init_code(h, ProducerIdAndEpoch(4711, 0)) is E.PRODUCER_FENCED
    assert init_code(h, ProducerIdAndEpoch(4711, 3)) is E.PRODUCER_FENCED
    assert h.txn().producer_epoch == 3


@pytest.mark.parametrize("server_version", [0, 1, 2])
@pytest.mark.parametrize("late", [False, True])
def test_after_a_fence_the_epoch_before_it_is_no_retry(
    new: Callable[..., Harness], server_version: int, late: bool
) -> None:
    """Whoever had the epoch before the fenced one has been told the fenced one. It is a zombie since."""
    h = new(server_version=server_version)
    first = h.producer(timeout_ms=1_000)
    second = h.producer(expected=first, timeout_ms=1_000)
    h.add(second, A, version=server_version)
    if late:
        h.advance(20_000)
    else:
        assert init_code(h) is E.CONCURRENT_TRANSACTIONS
    assert h.txn().state is S.COMPLETE_ABORT
    assert init_code(h, first) is E.PRODUCER_FENCED


@pytest.mark.parametrize("server_version", [1, 2])
def test_a_zombie_that_names_itself_cannot_abort_its_successors_transaction(
    new: Callable[..., Harness], server_version: int
) -> None:
    h = new(server_version=server_version)
    zombie = h.producer()
    successor = h.producer()
    h.add(successor, A)
    assert init_code(h, zombie) is E.PRODUCER_FENCED
    assert h.txn().state is S.ONGOING
    assert h.end_code(successor) is E.NONE


def test_a_producer_that_aborts_its_own_transaction_by_name_goes_on(h: Harness) -> None:
    """KAFKA-19367: its retry finds the epoch that the abort gave it."""
    producer = h.producer()
    h.add(producer, A)
    assert init_code(h, producer) is E.CONCURRENT_TRANSACTIONS
    assert h.producer(expected=producer) == ProducerIdAndEpoch(producer.producer_id, 1)


def test_an_id_that_was_forgotten_takes_any_name(h: Harness) -> None:
    given = h.producer(expected=ProducerIdAndEpoch(4711, 3))
    assert given.producer_epoch == 0
    assert given.producer_id != 4711


# --- ids that are used up -----------------------------------------------------------------------------


def test_after_the_last_but_one_epoch_comes_a_new_id(h: Harness) -> None:
    at_epoch(h, MAX_EPOCH - 2)
    assert h.producer() == ProducerIdAndEpoch(7, MAX_EPOCH - 1)
    fresh = h.producer()
    assert fresh.producer_id != 7
    assert fresh.producer_epoch == 0


def test_an_exhausted_producer_that_names_itself_gets_a_new_id_once(h: Harness) -> None:
    last = at_epoch(h, MAX_EPOCH - 1)
    fresh = h.producer(expected=last)
    assert (fresh.producer_id != 7, fresh.producer_epoch) == (True, 0)
    assert h.producer(expected=last) == fresh
    assert h.producer(expected=fresh) == ProducerIdAndEpoch(fresh.producer_id, 1)


def test_a_lost_answer_with_the_last_epoch_of_an_id_is_given_again(h: Harness) -> None:
    before = at_epoch(h, MAX_EPOCH - 2)
    given = h.producer(expected=before)
    assert given == ProducerIdAndEpoch(7, MAX_EPOCH - 1)
    assert h.producer(expected=before) == given
    h.producer()
    assert init_code(h, before) is E.PRODUCER_FENCED


def test_an_exhausted_id_fences_who_names_an_older_epoch(h: Harness) -> None:
    last = at_epoch(h, MAX_EPOCH - 1)
    assert init_code(h, ProducerIdAndEpoch(7, MAX_EPOCH - 3)) is E.PRODUCER_FENCED
    assert h.txn().client == last


@pytest.mark.parametrize("server_version", [1, 2])
def test_a_fence_may_use_the_last_epoch(new: Callable[..., Harness], server_version: int) -> None:
    h = new(server_version=server_version)
    last = at_epoch(h, MAX_EPOCH - 1)
    h.add(last, A, version=server_version)
    assert init_code(h) is E.CONCURRENT_TRANSACTIONS
    (written,) = h.written
    assert written.producer == ProducerIdAndEpoch(7, MAX_EPOCH)
    given = h.producer()
    assert given.producer_id != 7
    assert given.producer_epoch == (1 if server_version == 2 else 0)


def test_an_old_client_may_end_with_the_last_epoch_it_has(h: Harness) -> None:
    last = at_epoch(h, MAX_EPOCH - 1)
    h.add(last, A, version=0)
    h.end(last, ABORT, version=0)
    assert h.written[0].producer == last
    assert h.producer().producer_id != 7
