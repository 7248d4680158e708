"""EndTxn: every state, both outcomes, the current request and its retry, for both kinds of clients."""

from collections.abc import Callable

import pytest

from odradek.coordinators.transactions.ending import UNCHANGED
from odradek.coordinators.transactions.metadata import MAX_EPOCH, TransactionMetadata
from odradek.coordinators.transactions.states import TxnState
from odradek.core.errors import ErrorCode
from odradek.core.types import ProducerIdAndEpoch
from tests.unit.coordinators.transactions.harness import ABORT, COMMIT, START_MS, TID, A, B, Harness

E = ErrorCode
S = TxnState
NEXT = {COMMIT: S.COMPLETE_COMMIT, ABORT: S.COMPLETE_ABORT}
EMPTY, OPEN, COMMITTED, ABORTED, COMMITTING, ABORTING = (
    S.EMPTY,
    S.ONGOING,
    S.COMPLETE_COMMIT,
    S.COMPLETE_ABORT,
    S.PREPARE_COMMIT,
    S.PREPARE_ABORT,
)


def bring_to(h: Harness, state: TxnState, version: int) -> tuple[ProducerIdAndEpoch, ProducerIdAndEpoch]:
    """A transaction in a state; who began it, and who its producer is now."""
    producer = h.producer()
    if state is EMPTY:
        return producer, producer
    assert h.add(producer, A, version=version) is E.NONE
    if state is OPEN:
        return producer, producer
    h.slow_markers = state in (COMMITTING, ABORTING)
    given = h.end(producer, state in (COMMITTED, COMMITTING), version=version)
    assert h.txn().state is state
    return producer, producer if given == UNCHANGED else given


# From version 2 on: what the request of the transaction's own epoch is told where it is a retry, and where
# the producer goes on with its next epoch.
V2_RETRY = {
    (COMMITTED, COMMIT): E.NONE,
    (COMMITTED, ABORT): E.INVALID_TXN_STATE,
    (ABORTED, COMMIT): E.INVALID_TXN_STATE,
    (ABORTED, ABORT): E.NONE,
    (COMMITTING, COMMIT): E.CONCURRENT_TRANSACTIONS,
    (COMMITTING, ABORT): E.INVALID_TXN_STATE,
    (ABORTING, COMMIT): E.INVALID_TXN_STATE,
    (ABORTING, ABORT): E.CONCURRENT_TRANSACTIONS,
}
V2_CURRENT = {
    (EMPTY, COMMIT): E.INVALID_TXN_STATE,
    (EMPTY, ABORT): E.NONE,
    (OPEN, COMMIT): E.NONE,
    (OPEN, ABORT): E.NONE,
    (COMMITTED, COMMIT): E.INVALID_TXN_STATE,
    (COMMITTED, ABORT): E.NONE,
    (ABORTED, COMMIT): E.INVALID_TXN_STATE,
    (ABORTED, ABORT): E.NONE,
    # The next epoch ends nothing while the last transaction is still being ended.
    (COMMITTING, COMMIT): E.CONCURRENT_TRANSACTIONS,
    (COMMITTING, ABORT): E.CONCURRENT_TRANSACTIONS,
    (ABORTING, COMMIT): E.CONCURRENT_TRANSACTIONS,
    (ABORTING, ABORT): E.CONCURRENT_TRANSACTIONS,
}
# Below, the producer keeps its epoch: a retry looks like the request itself.
V1 = {
    (EMPTY, COMMIT): E.INVALID_TXN_STATE,
    (EMPTY, ABORT): E.NONE,
    (OPEN, COMMIT): E.NONE,
    (OPEN, ABORT): E.NONE,
    (COMMITTED, COMMIT): E.NONE,
    (COMMITTED, ABORT): E.INVALID_TXN_STATE,
    (ABORTED, COMMIT): E.INVALID_TXN_STATE,
    (ABORTED, ABORT): E.NONE,
    (COMMITTING, COMMIT): E.CONCURRENT_TRANSACTIONS,
    (COMMITTING, ABORT): E.INVALID_TXN_STATE,
    (ABORTING, COMMIT): E.INVALID_TXN_STATE,
    (ABORTING, ABORT): E.CONCURRENT_TRANSACTIONS,
}


@pytest.mark.parametrize(("state", "commit"), V2_RETRY)
@pytest.mark.parametrize("moved", [False, True])
def test_a_retry_is_recognised_by_its_epoch(h: Harness, state: TxnState, commit: bool, moved: bool) -> None:
    producer, now = bring_to(h, state, 2)
    if moved:
        h.reload()
    writes = h.log.log_end_offset
    wanted = V2_RETRY[state, commit]
    if wanted is E.NONE:
        assert h.end(producer, commit) == now
    else:
        assert h.end_code(producer, commit) is wanted
    assert h.log.log_end_offset == writes
    assert h.txn().client == now


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("commit", [COMMIT, ABORT])
def test_what_an_old_successor_ended_is_not_taken_for_the_end_of_its_predecessor(
    h: Harness, commit: bool, slow: bool
) -> None:
    """Its end keeps the epoch that it was given: the one before is another producer's, not a retry's."""
    zombie = h.producer()
    successor = h.producer()
    h.slow_markers = slow
    assert h.add(successor, A, version=0) is E.NONE
    assert h.end(successor, commit, version=0) == UNCHANGED
    ended = h.txn()
    assert h.end_code(zombie, commit) is E.PRODUCER_FENCED
    assert h.txn() == ended


@pytest.mark.parametrize(("state", "commit"), V2_CURRENT)
def test_an_epoch_per_transaction(h: Harness, state: TxnState, commit: bool) -> None:
    _, now = bring_to(h, state, 2)
    before = h.txn()
    wanted = V2_CURRENT[state, commit]
    if wanted is E.NONE:
        assert h.end(now, commit) == ProducerIdAndEpoch(now.producer_id, now.producer_epoch + 1)
        assert h.txn().state is NEXT[commit]
    else:
        assert h.end_code(now, commit) is wanted
        assert h.txn() == before


@pytest.mark.parametrize(("state", "commit"), V1)
@pytest.mark.parametrize("server_version", [0, 1, 2])
def test_an_epoch_per_producer(
    new: Callable[..., Harness], server_version: int, state: TxnState, commit: bool
) -> None:
    h = new(server_version=server_version)
    producer, now = bring_to(h, state, 0)
    assert producer == now
    before = h.txn()
    wanted = V1[state, commit]
    if wanted is E.NONE:
        assert h.end(now, commit, version=0) == UNCHANGED
        assert h.txn().client == now
        if state is OPEN:
            assert h.txn().state is NEXT[commit]
        else:
            assert h.txn() == before
    else:
        assert h.end_code(now, commit, version=0) is wanted
        assert h.txn() == before


def test_aborting_an_empty_transaction_leaves_an_old_producer_alive(h: Harness) -> None:
    producer = h.producer()
    assert h.end_code(producer, ABORT, version=0) is E.NONE
    assert h.add(producer, A, version=0) is E.NONE
    assert h.end_code(producer, COMMIT, version=0) is E.NONE


@pytest.mark.parametrize("version", [0, 2])
def test_strangers_are_told_so(h: Harness, version: int) -> None:
    producer = h.producer()
    h.add(producer, A)
    stranger = producer._replace(producer_id=77)
    zombie, prophet = producer._replace(producer_epoch=-1), producer._replace(producer_epoch=9)
    assert h.end_code(stranger, version=version) is E.INVALID_PRODUCER_ID_MAPPING
    assert h.end_code(zombie, version=version) is E.PRODUCER_FENCED
    assert h.end_code(prophet, version=version) is E.PRODUCER_FENCED
    assert h.end_code(producer, tid="nobody", version=version) is E.INVALID_PRODUCER_ID_MAPPING
    assert h.end_code(producer, tid="", version=version) is E.INVALID_REQUEST
    assert h.txn().state is S.ONGOING


@pytest.mark.parametrize("state", [EMPTY, COMMITTED, ABORTED])
def test_an_abort_of_what_was_never_begun_begins_with_itself(h: Harness, state: TxnState) -> None:
    _, now = bring_to(h, state, 2)
    h.advance(7_000)
    aborted_ms = h.clock.now_ms()
    h.end(now, ABORT)
    assert h.txn().start_ms == aborted_ms


def test_what_was_begun_keeps_its_beginning_to_the_end(h: Harness) -> None:
    producer, _ = bring_to(h, OPEN, 2)
    begun_ms = h.txn().start_ms
    h.advance(7_000)
    h.end(producer, COMMIT)
    assert h.txn().start_ms == begun_ms < h.txn().last_update_ms


def test_markers_have_the_epoch_after_that_of_the_data(h: Harness) -> None:
    producer = h.producer()
    h.add(producer, A, B)
    h.end(producer, COMMIT)
    (written,) = h.written
    assert written.producer == ProducerIdAndEpoch(producer.producer_id, 1)
    assert (written.commit, written.version, written.partitions) == (True, 2, [A, B])


def test_markers_of_an_old_client_have_the_epoch_of_the_data(h: Harness) -> None:
    producer = h.producer()
    h.add(producer, A, version=0)
    h.end(producer, ABORT, version=0)
    (written,) = h.written
    assert (written.producer, written.commit, written.version) == (producer, False, 0)


@pytest.mark.parametrize("version", [0, 2])
def test_the_answer_waits_for_the_decision_and_the_markers_too(
    new: Callable[..., Harness], version: int
) -> None:
    h = new(held=True)
    task = h.start(lambda: h.coordinator.init_producer_id(TID, 60_000, None, 1))
    h.commit_log()
    producer = ProducerIdAndEpoch(*task.result()[:2])
    adding = h.start(lambda: h.coordinator.add_partitions(TID, producer, [A], version, 1))
    assert not adding.done()
    h.commit_log()
    assert adding.result() is E.NONE
    ending = h.start(h.end_step(producer, COMMIT, version=version))
    assert not ending.done()
    assert h.written == []
    assert h.end_code(producer, COMMIT, version=version) is E.CONCURRENT_TRANSACTIONS
    assert h.code(lambda: h.coordinator.init_producer_id(TID, 1, None, 1)) is E.CONCURRENT_TRANSACTIONS
    assert h.add(h.txn().client, B, version=version) is E.CONCURRENT_TRANSACTIONS
    h.commit_log()
    assert ending.done()
    assert len(h.written) == 1


def test_a_transaction_open_or_pending_keeps_the_next_one_out(h: Harness) -> None:
    """The client has its answer and goes on while the markers are still on their way (KAFKA-18575)."""
    producer = h.producer()
    h.add(producer, A)
    h.slow_markers = True
    following = h.end(producer, COMMIT)
    assert h.add(following, A) is E.CONCURRENT_TRANSACTIONS
    h.let_markers_through()
    assert h.add(following, A) is E.NONE
    assert h.txn().state is S.ONGOING


@pytest.mark.parametrize("commit", [COMMIT, ABORT])
@pytest.mark.parametrize("moved", [False, True])
def test_the_last_epoch_is_never_given_to_a_client(h: Harness, commit: bool, moved: bool) -> None:
    """KAFKA-18660: a fresh producer id follows, and is known before the old one is ended everywhere."""
    h.put(TransactionMetadata(TID, 7, MAX_EPOCH - 1, 60_000, S.EMPTY, last_update_ms=START_MS))
    last = ProducerIdAndEpoch(7, MAX_EPOCH - 1)
    h.add(last, A)
    h.slow_markers = True
    fresh = h.end(last, commit)
    assert fresh.producer_id not in (7, -1)
    assert fresh.producer_epoch == 0
    if moved:
        h.reload()
    assert h.add(fresh, A) is E.CONCURRENT_TRANSACTIONS
    assert h.end_code(last, commit) is E.CONCURRENT_TRANSACTIONS
    assert h.end_code(last, not commit) is E.INVALID_TXN_STATE
    if moved:
        h.slow_markers = False
        h.reload()
    else:
        h.let_markers_through()
    assert {written.producer for written in h.written} == {ProducerIdAndEpoch(7, MAX_EPOCH)}
    assert h.txn().state is NEXT[commit]
    assert h.end(last, commit) == fresh
    assert h.end_code(last, not commit) is E.INVALID_TXN_STATE
    assert h.add(fresh, A) is E.NONE
    assert h.end_code(last, commit) is E.INVALID_PRODUCER_ID_MAPPING
    assert h.end(fresh, COMMIT) == ProducerIdAndEpoch(fresh.producer_id, 1)


def test_without_a_producer_id_at_hand_the_last_epoch_cannot_end(h: Harness) -> None:
    h.put(TransactionMetadata(TID, 7, MAX_EPOCH - 1, 60_000, S.EMPTY, last_update_ms=START_MS))
    last = ProducerIdAndEpoch(7, MAX_EPOCH - 1)
    h.add(last, A)
    h.ids_are_dry = True
    assert h.end_code(last) is E.COORDINATOR_LOAD_IN_PROGRESS
    assert h.txn().state is S.ONGOING
    h.ids_are_dry = False
    assert h.end(last).producer_epoch == 0


def test_what_an_older_connection_held_back_cannot_end_the_next_transaction(h: Harness) -> None:
    """KAFKA-17754: the producer gave the connection up, asked again by another and has gone on since."""
    old, young = h.connect(), h.connect()
    producer = h.producer(connection=old)
    h.add(producer, A, version=0, connection=old)
    h.end(producer, COMMIT, version=0, connection=young)
    h.add(producer, A, version=0, connection=young)
    with pytest.raises(Exception, match="has a newer connection"):
        h.end(producer, ABORT, version=0, connection=old)
    assert h.txn().state is S.ONGOING
    assert h.end_code(producer, COMMIT, version=0, connection=young) is E.NONE
    assert h.txn().state is S.COMPLETE_COMMIT


def test_a_delayed_end_names_an_epoch_that_is_over(h: Harness) -> None:
    """KAFKA-17754 from version 2 on."""
    producer = h.producer()
    h.add(producer, A)
    following = h.end(producer, COMMIT)
    h.add(following, A)
    assert h.end_code(producer, COMMIT) is E.PRODUCER_FENCED
    assert h.end_code(producer, ABORT) is E.PRODUCER_FENCED
    assert h.txn().state is S.ONGOING


# --- an abort of what was not begun, after a commit ---------------------------------------------------------


@pytest.mark.parametrize("server_version", [0, 1, 2])
def test_an_abort_after_an_acknowledged_commit_is_of_the_next_transaction(
    new: Callable[..., Harness], server_version: int
) -> None:
    h = new(server_version=server_version)
    producer, _ = bring_to(h, COMMITTED, 0)
    before = h.txn()
    assert h.end(producer, ABORT, version=0, is_acknowledged=True) == UNCHANGED
    assert h.txn() == before
    assert h.add(producer, A, version=0) is E.NONE
    assert h.end(producer, ABORT, version=0, is_acknowledged=True) == UNCHANGED
    assert h.txn().state is ABORTED


def test_an_abort_waits_while_the_markers_of_an_acknowledged_commit_are_written(h: Harness) -> None:
    producer, _ = bring_to(h, COMMITTING, 0)
    assert h.end_code(producer, ABORT, version=0, is_acknowledged=True) is E.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize("state", [COMMITTED, COMMITTING])
def test_an_abort_is_refused_where_the_answer_to_the_commit_may_be_lost(h: Harness, state: TxnState) -> None:
    """By a new connection, or by one that nobody has heard of since the coordinator moved."""
    producer, _ = bring_to(h, state, 0)
    assert h.end_code(producer, ABORT, version=0) is E.INVALID_TXN_STATE
    assert h.end_code(producer, ABORT, version=0, connection=2, is_acknowledged=True) is E.INVALID_TXN_STATE


def test_an_acknowledgement_is_of_no_use_after_the_coordinator_has_moved(h: Harness) -> None:
    producer, _ = bring_to(h, COMMITTED, 0)
    h.reload()
    assert h.end_code(producer, ABORT, version=0, is_acknowledged=True) is E.INVALID_TXN_STATE


def test_an_abort_after_a_retry_of_a_commit_is_refused(h: Harness) -> None:
    """With an epoch for each transaction the epoch tells, whatever was acknowledged."""
    producer, _ = bring_to(h, COMMITTED, 2)
    assert h.end_code(producer, ABORT, is_acknowledged=True) is E.INVALID_TXN_STATE


def test_what_is_not_committed_to_the_log_yet_cannot_be_ended(new: Callable[..., Harness]) -> None:
    h = new(held=True)
    beginning = h.start(lambda: h.coordinator.init_producer_id(TID, 60_000, None, 1))
    h.commit_log()
    producer = ProducerIdAndEpoch(beginning.result().producer_id, beginning.result().producer_epoch)
    h.start(lambda: h.coordinator.add_partitions(TID, producer, [A], 2, 1))
    assert h.txn().state is S.ONGOING
    assert h.end_code(producer) is E.CONCURRENT_TRANSACTIONS
    h.commit_log()
