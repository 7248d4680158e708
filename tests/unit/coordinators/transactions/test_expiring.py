"""Transactions over their timeout, unused transactional ids, and clocks that jump."""

from collections.abc import Callable

import pytest

from odradek.coordinators.shard import Now
from odradek.coordinators.transactions.commands import ExpireIds
from odradek.coordinators.transactions.expiring import expire as expire_ids
from odradek.coordinators.transactions.expiring import is_over_time
from odradek.coordinators.transactions.metadata import MAX_EPOCH, TransactionMetadata
from odradek.coordinators.transactions.states import TxnState
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import ProducerIdAndEpoch
from odradek.records.batch import iter_batches, iter_records
from odradek.runtime.slices import at_once
from tests.unit.coordinators.transactions.harness import ABORT, COMMIT, START_MS, TID, A, Harness

E = ErrorCode
S = TxnState
DAY_MS = 24 * 3_600_000


@pytest.mark.parametrize("server_version", [1, 2])
def test_an_open_transaction_is_aborted_after_its_time(
    new: Callable[..., Harness], server_version: int
) -> None:
    h = new(server_version=server_version, abort_interval_ms=1_000)
    producer = h.producer(timeout_ms=5_000)
    h.add(producer, A, version=server_version)
    h.advance(4_900)
    assert h.txn().state is S.ONGOING
    h.advance(2_200)
    assert h.txn().state is S.COMPLETE_ABORT
    (written,) = h.written
    assert (written.commit, written.producer) == (False, ProducerIdAndEpoch(producer.producer_id, 1))


def test_late_transactions_are_looked_for_as_often_as_configured(new: Callable[..., Harness]) -> None:
    h = new(abort_interval_ms=60_000)
    h.add(h.producer(timeout_ms=1_000), A)
    h.advance(59_000)
    assert h.txn().state is S.ONGOING
    h.advance(2_000)
    assert h.txn().state is S.COMPLETE_ABORT


def test_after_one_look_the_next_is_an_interval_away(new: Callable[..., Harness]) -> None:
    h = new(abort_interval_ms=60_000)
    h.advance(61_000)
    h.add(h.producer(timeout_ms=1_000), A)
    h.advance(55_000)
    assert h.txn().state is S.ONGOING
    h.advance(5_000)
    assert h.txn().state is S.COMPLETE_ABORT


def test_a_new_leader_gives_an_interval_to_what_it_finds_open(new: Callable[..., Harness]) -> None:
    h = new(abort_interval_ms=60_000)
    h.add(h.producer(timeout_ms=1_000), A)
    h.advance(30_000)
    h.reload()
    h.advance(59_000)
    assert h.txn().state is S.ONGOING
    h.advance(2_000)
    assert h.txn().state is S.COMPLETE_ABORT


@pytest.mark.parametrize("version", [0, 2])
def test_a_timeout_is_told_as_such_and_not_as_a_fence(h: Harness, version: int) -> None:
    producer = h.producer(timeout_ms=1_000)
    h.add(producer, A, version=version)
    h.advance(20_000)
    assert h.add(producer, A, version=version) is E.TRANSACTION_ABORTABLE
    # A client that keeps its epoch could not go on after the abort either: told to abort, it would for ever.
    assert (
        h.end_code(producer, COMMIT, version=version)
        is [E.PRODUCER_FENCED, E.TRANSACTION_ABORTABLE][version // 2]
    )
    with pytest.raises(KafkaError) as refusal:
        h.verify(producer, A)
    assert refusal.value.code is E.TRANSACTION_ABORTABLE


def test_a_producer_that_took_too_long_aborts_and_goes_on(h: Harness) -> None:
    producer = h.producer(timeout_ms=1_000)
    h.add(producer, A)
    h.advance(20_000)
    assert h.end_code(producer, COMMIT) is E.TRANSACTION_ABORTABLE
    following = h.end(producer, ABORT)
    assert following == ProducerIdAndEpoch(producer.producer_id, 1)
    assert h.add(following, A) is E.NONE
    assert h.end_code(following, COMMIT) is E.NONE


def test_a_fence_stays_a_fence_where_a_timeout_came_first(h: Harness) -> None:
    producer = h.producer(timeout_ms=1_000)
    h.add(producer, A)
    h.advance(20_000)
    successor = h.producer()
    assert h.add(producer._replace(producer_epoch=1), A) is E.PRODUCER_FENCED
    h.add(successor, A)
    h.end(successor, COMMIT)
    assert h.add(successor, A) is E.PRODUCER_FENCED


def test_a_timeout_is_forgotten_with_its_id(h: Harness) -> None:
    producer = h.producer(timeout_ms=1_000)
    h.add(producer, A)
    h.advance(20_000)
    assert h.shard.fence(TID, producer).code is E.TRANSACTION_ABORTABLE
    h.run(lambda: h.shard.replay(TID, None, 0, -1))
    assert h.shard.fence(TID, producer).code is E.PRODUCER_FENCED


def test_an_abort_that_the_log_refuses_is_tried_again_at_the_next_look(h: Harness) -> None:
    producer = h.producer(timeout_ms=1_000)
    h.add(producer, A)
    h.log.error = KafkaError(E.NOT_ENOUGH_REPLICAS)
    h.advance(25_000)
    assert h.txn().state is S.ONGOING
    h.log.error = None
    h.advance(10_000)
    assert h.txn().state is S.COMPLETE_ABORT
    assert h.txn().producer_epoch == 1


def test_a_producer_may_still_commit_what_could_not_be_aborted(h: Harness) -> None:
    producer = h.producer(timeout_ms=1_000)
    h.add(producer, A)
    h.log.error = KafkaError(E.NOT_ENOUGH_REPLICAS)
    h.advance(15_000)
    h.log.error = None
    following = h.end(producer, COMMIT)
    h.add(following, A)
    assert h.end_code(producer, COMMIT) is E.PRODUCER_FENCED, "its time was not what ended it"


def test_every_late_transaction_is_dealt_with_in_one_look(new: Callable[..., Harness]) -> None:
    h = new(abort_interval_ms=10_000)
    for tid in ("x", "y", "z"):
        h.add(h.producer(tid, timeout_ms=1_000), A, tid=tid)
    h.advance(10_100)
    assert [h.txn(tid).state for tid in ("x", "y", "z")] == [S.COMPLETE_ABORT] * 3


def test_a_late_transaction_waits_for_a_producer_id_where_it_needs_one(h: Harness) -> None:
    h.put(TransactionMetadata(TID, 7, MAX_EPOCH - 1, 1_000, S.EMPTY, last_update_ms=START_MS))
    h.add(ProducerIdAndEpoch(7, MAX_EPOCH - 1), A)
    h.ids_are_dry = True
    h.advance(25_000)
    assert h.txn().state is S.ONGOING
    h.ids_are_dry = False
    h.advance(10_000)
    assert h.txn().state is S.COMPLETE_ABORT
    assert h.txn().client.producer_epoch == 0


def test_a_transaction_of_an_outside_coordinator_has_no_timeout(h: Harness) -> None:
    """Its timeout is written as the largest int32: as one it would be over after 24.8 days."""
    producer = h.producer(two_phase=True)
    h.add(producer, A)
    h.clock.skew_ms += 365 * DAY_MS
    h.advance(60_000)
    assert h.txn().state is S.ONGOING
    assert h.end_code(producer, COMMIT) is E.NONE


def test_a_timeout_is_over_one_ms_after_it_has_passed(h: Harness) -> None:
    txn = TransactionMetadata(TID, 7, 0, 5_000, S.ONGOING, (A,), start_ms=START_MS)
    assert not is_over_time(h.shard, txn, Now(START_MS + 5_000, 0))
    assert is_over_time(h.shard, txn, Now(START_MS + 5_001, 0))


@pytest.mark.parametrize("days", [1, 3650])
def test_a_clock_that_is_set_back_leaves_no_transaction_open_until_it_has_caught_up(
    h: Harness, days: int
) -> None:
    h.add(h.producer(timeout_ms=60_000), A)
    h.clock.skew_ms -= days * DAY_MS
    h.advance(55_000)
    assert h.txn().state is S.ONGOING
    h.advance(30_000)
    assert h.txn().state is S.COMPLETE_ABORT


def test_what_ended_before_the_clock_had_caught_up_is_not_remembered(h: Harness) -> None:
    producer = h.producer()
    h.add(producer, A)
    h.clock.skew_ms -= DAY_MS
    h.advance(15_000)
    assert list(h.shard.seen_ahead) == [TID]
    h.end(producer, COMMIT)
    assert h.shard.seen_ahead == {}


def test_time_that_jumps_ahead_may_abort_and_time_that_jumps_back_only_delays(h: Harness) -> None:
    producer = h.producer(timeout_ms=60_000)
    h.add(producer, A)
    h.clock.skew_ms -= 3_600_000
    h.advance(55_000)
    assert h.txn().state is S.ONGOING
    h.clock.skew_ms += 3_600_000
    h.advance(20_000)
    assert h.txn().state is S.COMPLETE_ABORT
    following = h.end(producer, ABORT)
    h.clock.skew_ms -= DAY_MS
    assert h.add(following, A) is E.NONE
    assert h.end_code(following, COMMIT) is E.NONE
    assert h.txn().state is S.COMPLETE_COMMIT


# --- ids that nobody uses -----------------------------------------------------------------------------


def expire(h: Harness) -> int:
    removed = h.run(lambda: h.coordinator.host.submit(0, ExpireIds()))
    assert isinstance(removed, int)
    return removed


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_an_id_at_rest_expires_with_a_tombstone(new: Callable[..., Harness], state: TxnState) -> None:
    h = new(id_expiration_ms=DAY_MS)
    producer = h.producer()
    if state is not S.EMPTY:
        h.add(producer, A)
        h.end(producer, state is S.COMPLETE_COMMIT)
    h.advance(DAY_MS - 1_000)
    assert expire(h) == 0
    h.advance(2_000)
    assert expire(h) == 1
    assert h.shard.transactions == {}
    data = h.log.batches[-1][1]
    (record,) = iter_records(data, next(iter_batches(data)))
    assert record.value is None
    h.reload()
    assert h.shard.transactions == {}
    assert h.add(producer, A) is E.INVALID_PRODUCER_ID_MAPPING
    assert h.producer().producer_id != producer.producer_id


def test_an_id_expires_as_soon_as_its_time_has_passed(new: Callable[..., Harness]) -> None:
    h = new(id_expiration_ms=DAY_MS)
    h.put(TransactionMetadata(TID, 7, 0, 5_000, last_update_ms=START_MS))
    for passed_ms, gone in ((DAY_MS - 1, 0), (DAY_MS, 1)):
        result = at_once(expire_ids(h.shard, ExpireIds(), 0, Now(START_MS + passed_ms, 0)))
        assert (result.response, len(result.records)) == (gone, gone)


@pytest.mark.parametrize("state", [S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_an_id_never_expires_while_a_transaction_is_open(
    new: Callable[..., Harness], state: TxnState
) -> None:
    h = new(id_expiration_ms=1_000)
    producer = h.producer(two_phase=True)
    h.add(producer, A)
    h.slow_markers = True
    if state is not S.ONGOING:
        h.end(producer, state is S.PREPARE_COMMIT)
    h.advance(DAY_MS)
    assert expire(h) == 0
    assert h.txn().state is state


def test_a_pending_id_does_not_expire(new: Callable[..., Harness]) -> None:
    h = new(held=True, id_expiration_ms=1_000)
    h.start(lambda: h.coordinator.init_producer_id(TID, 60_000, None, 1))
    h.advance(5_000)
    sweep = h.start(lambda: h.coordinator.host.submit(0, ExpireIds()))
    h.commit_log()
    assert sweep.result() == 0


def test_ids_are_looked_at_as_often_as_configured(new: Callable[..., Harness]) -> None:
    h = new(id_expiration_ms=1_000, remove_interval_ms=50_000)
    h.run(h.coordinator.start)
    h.producer()
    h.advance(49_000)
    assert TID in h.shard.transactions
    h.advance(2_000)
    assert h.shard.transactions == {}


def test_many_ids_go_in_several_batches(new: Callable[..., Harness]) -> None:
    """One batch of all of them might be larger than the log takes."""
    h = new(id_expiration_ms=1_000)
    for i in range(1_000):
        name = f"{i:0400d}"
        h.shard.replay(name, TransactionMetadata(name, i, 0, 1_000, last_update_ms=START_MS), 0, -1)
    before = len(h.log.batches)
    h.advance(2_000)
    assert expire(h) == 1_000
    assert len(h.log.batches) == before + 2
    assert h.shard.transactions == {}


def test_a_sweep_that_the_log_refuses_removes_nothing(new: Callable[..., Harness]) -> None:
    h = new(id_expiration_ms=1_000, remove_interval_ms=5_000)
    h.run(h.coordinator.start)
    h.producer()
    h.log.error = KafkaError(E.NOT_ENOUGH_REPLICAS)
    h.advance(6_000)
    assert TID in h.shard.transactions
    h.log.error = None
    h.advance(5_000)
    assert h.shard.transactions == {}
