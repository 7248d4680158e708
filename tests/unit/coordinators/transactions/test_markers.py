"""Markers: retries for partitions without a leader, none for deleted ones, and the different refusals."""

from typing import Any

import pytest

from odradek.coordinators.transactions.states import TxnState
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import TopicPartition
from tests.unit.coordinators.transactions.harness import ABORT, COMMIT, A, B, Harness

E = ErrorCode
S = TxnState


def open_transaction(h: Harness) -> None:
    h.add(h.producer(), A, B)


def test_a_partition_without_a_leader_is_asked_again(h: Harness) -> None:
    open_transaction(h)
    h.leaderless.add(B)
    h.end(h.txn().client, COMMIT)
    h.advance(60_000)
    assert h.txn().state is S.PREPARE_COMMIT
    assert [w.partitions for w in h.written] == [[A]]
    assert list(h.coordinator.markers._orders["id"].left) == [B]
    h.leaderless.clear()
    h.advance(200)
    assert h.txn().state is S.COMPLETE_COMMIT
    assert [w.partitions for w in h.written] == [[A], [B]]
    assert len(h.coordinator.markers) == 0


def test_a_deleted_partition_is_left_out(h: Harness) -> None:
    open_transaction(h)
    h.gone.add(A)
    h.end(h.txn().client, ABORT)
    assert h.txn().state is S.COMPLETE_ABORT
    assert [w.partitions for w in h.written] == [[B]]


def test_a_partition_deleted_while_it_is_waited_for_is_left_out(h: Harness) -> None:
    open_transaction(h)
    h.leaderless |= {A, B}
    h.end(h.txn().client, COMMIT)
    h.advance(1_000)
    h.leaderless.clear()
    h.gone |= {A, B}
    h.advance(200)
    assert h.txn().state is S.COMPLETE_COMMIT
    assert h.written == []


@pytest.mark.parametrize(
    "refusal",
    [
        E.NOT_LEADER_OR_FOLLOWER,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.NOT_ENOUGH_REPLICAS,
        E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        E.REQUEST_TIMED_OUT,
        E.KAFKA_STORAGE_ERROR,
        E.COORDINATOR_LOAD_IN_PROGRESS,
    ],
)
def test_a_refusal_that_may_pass_is_tried_again(h: Harness, refusal: ErrorCode) -> None:
    open_transaction(h)
    h.refusals[B] = refusal
    h.end(h.txn().client, COMMIT)
    h.advance(1_000)
    assert h.txn().state is S.PREPARE_COMMIT
    h.refusals.clear()
    h.advance(200)
    assert h.txn().state is S.COMPLETE_COMMIT
    assert [w.partitions for w in h.written] == [[A], [B]]


@pytest.mark.parametrize("refusal", [E.INVALID_PRODUCER_EPOCH, E.TRANSACTION_COORDINATOR_FENCED])
def test_a_fenced_coordinator_gives_up(h: Harness, refusal: ErrorCode) -> None:
    open_transaction(h)
    h.refusals[B] = refusal
    h.end(h.txn().client, COMMIT)
    h.refusals.clear()
    h.advance(60_000)
    assert h.txn().state is S.PREPARE_COMMIT
    assert len(h.coordinator.markers) == 0
    h.reload()
    assert h.txn().state is S.COMPLETE_COMMIT, "whoever leads next begins anew"


def test_completion_is_tried_again_where_the_log_refuses_it(h: Harness) -> None:
    open_transaction(h)
    h.slow_markers = True
    h.end(h.txn().client, COMMIT)
    h.log.error = KafkaError(E.NOT_ENOUGH_REPLICAS)
    h.let_markers_through()
    h.advance(5_000)
    assert h.txn().state is S.PREPARE_COMMIT
    h.log.error = None
    h.advance(200)
    assert h.txn().state is S.COMPLETE_COMMIT
    assert len(h.written) == 1


def test_answers_that_come_after_the_leadership_moved_change_nothing(h: Harness) -> None:
    open_transaction(h)
    h.slow_markers = True
    h.end(h.txn().client, COMMIT)
    slow, h._slow = h._slow, []
    h.reload()
    assert h.txn().state is S.PREPARE_COMMIT
    writes = h.log.log_end_offset
    ((written, future),) = slow
    h.run(lambda: future.set_result(h._arrive(written)))
    h.turn_a_while()
    assert h.log.log_end_offset == writes
    h.let_markers_through()
    assert h.txn().state is S.COMPLETE_COMMIT


def test_markers_name_the_epoch_at_which_their_coordinator_was_elected(h: Harness) -> None:
    """Partitions refuse those of a former coordinator by it."""
    open_transaction(h)
    h.reload()
    assert h.log.leader_epoch > 0
    h.end(h.txn().client, COMMIT)
    assert [w.coordinator_epoch for w in h.written] == [h.log.leader_epoch]


def test_what_a_former_coordinator_decided_is_finished_with_the_epoch_of_the_present_one(h: Harness) -> None:
    open_transaction(h)
    h.slow_markers = True
    h.end(h.txn().client, COMMIT)
    h.slow_markers = False
    h.reload()
    assert [w.coordinator_epoch for w in h.written] == [h.log.leader_epoch]


def test_completion_that_waits_for_its_shard_is_tried_again_too(h: Harness) -> None:
    """A decision over many partitions has the shard while its markers are written."""
    many = [TopicPartition("t", i) for i in range(200)]
    h.add(h.producer(), *many)
    h.slow_markers = True
    h.end(h.txn().client, COMMIT)
    h.log.error = KafkaError(E.NOT_ENOUGH_REPLICAS)
    slot = h.coordinator.host._slots[0]
    slot.is_taken = True
    h.let_markers_through()
    slot.is_taken = False
    h.run(lambda: h.coordinator.host._serve_waiting(slot))
    h.advance(1_000)
    assert h.txn().state is S.PREPARE_COMMIT
    h.log.error = None
    h.advance(200)
    assert h.txn().state is S.COMPLETE_COMMIT


def test_one_partition_that_fences_the_coordinator_does_not_keep_markers_from_the_others(h: Harness) -> None:
    many = [TopicPartition("t", i) for i in range(20)]
    h.add(h.producer(), *many)
    h.refusals[many[0]] = E.TRANSACTION_COORDINATOR_FENCED
    h.end(h.txn().client, COMMIT)
    h.turn_a_while()
    assert sorted(tp for w in h.written for tp in w.partitions) == many[1:]
    assert len(h.coordinator.markers) == 0


def test_a_transaction_of_many_partitions_does_not_hold_up_a_short_one(h: Harness) -> None:
    """Both are decided before their markers are sent: the short one is complete long before the other."""
    many = [TopicPartition("t", i) for i in range(400)]
    h.leaderless |= {*many, A}
    h.add(h.producer("long"), *many, tid="long")
    h.add(h.producer("short"), A, tid="short")
    h.end(h.txn("long").client, COMMIT, tid="long")
    h.end(h.txn("short").client, COMMIT, tid="short")
    h.leaderless.clear()
    h.advance(300)
    order = [w.partitions for w in h.written]
    assert h.txn("long").state is h.txn("short").state is S.COMPLETE_COMMIT
    assert order.index([A]) < len(order) - 50


def test_a_delivery_that_fails_is_told_and_the_others_go_on(
    h: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    """A mistake of ours: those that wait behind it must not wait for the next transaction."""
    sender = h.coordinator.markers
    deliver = sender._deliver

    def breaks(broker_id: int, order: Any, partitions: Any) -> Any:
        if order.transactional_id == "broken":
            raise ZeroDivisionError
        return deliver(broker_id, order, partitions)

    sender._deliver = breaks
    many = [TopicPartition("t", i) for i in range(400)]
    h.leaderless |= {*many, A}
    for tid, partitions in (("long", many), ("broken", [A])):
        h.add(h.producer(tid), *partitions, tid=tid)
        h.end(h.txn(tid).client, COMMIT, tid=tid)
    h.leaderless.clear()
    h.advance(1_000)
    assert h.txn("broken").state is S.PREPARE_COMMIT
    assert h.txn("long").state is S.COMPLETE_COMMIT
    assert "ZeroDivisionError" in caplog.text


def test_who_comes_as_the_last_attempt_ends_is_attempted_too(h: Harness) -> None:
    """Between the end of long work and the turn of the loop that notes it."""
    many = [TopicPartition("t", i) for i in range(400)]
    h.leaderless |= {*many, A}
    for tid, partitions in (("long", many), ("short", [A])):
        h.add(h.producer(tid), *partitions, tid=tid)
        h.end(h.txn(tid).client, COMMIT, tid=tid)
    h.leaderless.clear()
    h.advance(1_000)
    assert [h.txn(tid).state for tid in ("long", "short")] == [S.COMPLETE_COMMIT] * 2


def test_what_another_partition_of_the_coordinator_decided_is_not_forgotten_with_one(h: Harness) -> None:
    h.leaderless.add(A)
    h.add(h.producer(), A)
    h.end(h.txn().client, COMMIT)
    sender = h.coordinator.markers
    h.run(lambda: sender.forget(7))
    assert len(sender) == 1
    h.run(lambda: sender.forget(0))
    assert len(sender) == 0
    h.leaderless.clear()
    h.advance(1_000)
    assert h.written == []


def test_a_coordinator_that_is_closed_sends_no_more_markers(h: Harness) -> None:
    h.leaderless.add(A)
    h.add(h.producer(), A)
    h.end(h.txn().client, COMMIT)
    h.run(h.coordinator.close)
    h.leaderless.clear()
    h.advance(1_000)
    assert (h.written, len(h.coordinator.markers)) == ([], 0)


def test_what_is_over_is_not_looked_at_again(h: Harness) -> None:
    """Neither for its time nor, by a later leader, for its markers."""
    open_transaction(h)
    assert list(h.shard._open) == ["id"]
    h.slow_markers = True
    h.end(h.txn().client, COMMIT)
    assert (list(h.shard._open), list(h.shard._decided)) == ([], ["id"])
    h.let_markers_through()
    assert h.shard._decided == {}
