"""The table of states, held against the one of Apache Kafka and walked edge by edge."""

from typing import Any

import pytest

from odradek.coordinators.transactions import transitions
from odradek.coordinators.transactions.metadata import TransactionMetadata
from odradek.coordinators.transactions.states import BY_TITLE, VALID_PREVIOUS, TxnState
from tests.unit.coordinators.transactions.harness import A, B

S = TxnState
APACHE = {
    S.EMPTY: {S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
    S.ONGOING: {S.ONGOING, S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
    S.PREPARE_COMMIT: {S.ONGOING},
    S.PREPARE_ABORT: {S.ONGOING, S.PREPARE_EPOCH_FENCE, S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
    S.COMPLETE_COMMIT: {S.PREPARE_COMMIT},
    S.COMPLETE_ABORT: {S.PREPARE_ABORT},
    S.DEAD: {S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
    S.PREPARE_EPOCH_FENCE: {S.ONGOING},
}
TITLES = {
    0: "Empty",
    1: "Ongoing",
    2: "PrepareCommit",
    3: "PrepareAbort",
    4: "CompleteCommit",
    5: "CompleteAbort",
    6: "Dead",
    7: "PrepareEpochFence",
}


def test_the_table_is_apaches() -> None:
    assert VALID_PREVIOUS == APACHE


def test_numbers_and_names_are_those_of_the_log_and_the_protocol() -> None:
    assert {int(state): state.title for state in TxnState} == TITLES
    assert {title: int(state) for title, state in BY_TITLE.items()} == {t: n for n, t in TITLES.items()}


@pytest.mark.parametrize("target", TxnState)
@pytest.mark.parametrize("source", TxnState)
def test_only_what_the_table_allows_can_be_entered(source: TxnState, target: TxnState) -> None:
    txn = TransactionMetadata("id", 1, 0, 60_000, source, start_ms=4)
    start_ms = -1 if target in (S.EMPTY, S.DEAD) else 4
    if source in APACHE[target]:
        assert txn._to(target, 5, start_ms=start_ms).state is target
    else:
        with pytest.raises(AssertionError, match=f"{source.name} to {target.name}"):
            txn._to(target, 5, start_ms=start_ms)


WRONG: dict[str, tuple[TxnState, TxnState, dict[str, Any]]] = {
    "a producer skips an epoch": (S.COMPLETE_COMMIT, S.EMPTY, {"producer_epoch": 5, "start_ms": -1}),
    "a producer gets an older epoch": (S.COMPLETE_COMMIT, S.EMPTY, {"producer_epoch": 2, "start_ms": -1}),
    "another producer id begins above 0": (
        S.COMPLETE_COMMIT,
        S.EMPTY,
        {"producer_id": 2, "producer_epoch": 4, "start_ms": -1},
    ),
    "a partition raises the epoch": (S.ONGOING, S.ONGOING, {"producer_epoch": 4}),
    "a partition changes the producer id": (S.ONGOING, S.ONGOING, {"producer_id": 2, "producer_epoch": 0}),
    "a decision skips an epoch": (S.ONGOING, S.PREPARE_COMMIT, {"producer_epoch": 5}),
    "a decision changes the producer id": (S.ONGOING, S.PREPARE_ABORT, {"producer_id": 2}),
    "an end gives another epoch than was told": (
        S.PREPARE_COMMIT,
        S.COMPLETE_COMMIT,
        {"producer_epoch": 4, "partitions": ()},
    ),
    "a partition is forgotten": (S.ONGOING, S.ONGOING, {"partitions": (B,)}),
    "a decision forgets a partition": (S.ONGOING, S.PREPARE_COMMIT, {"partitions": ()}),
    "a decision adds a partition": (S.ONGOING, S.PREPARE_ABORT, {"partitions": (A, B)}),
    "a fence forgets a partition": (S.ONGOING, S.PREPARE_EPOCH_FENCE, {"partitions": ()}),
    "an end leaves a partition": (S.PREPARE_COMMIT, S.COMPLETE_COMMIT, {}),
    "a producer begins with a partition": (S.COMPLETE_ABORT, S.EMPTY, {"start_ms": -1}),
    "a producer begins in a transaction": (S.COMPLETE_ABORT, S.EMPTY, {"partitions": ()}),
    "a transaction begins twice": (S.ONGOING, S.ONGOING, {"start_ms": 9}),
    "a decision begins a transaction anew": (S.ONGOING, S.PREPARE_COMMIT, {"start_ms": 9}),
    "an end forgets the beginning": (S.PREPARE_ABORT, S.COMPLETE_ABORT, {"start_ms": -1, "partitions": ()}),
    "a transaction without a beginning": (S.COMPLETE_ABORT, S.ONGOING, {"start_ms": -1}),
    "a beginning in the future": (S.COMPLETE_ABORT, S.ONGOING, {"start_ms": 11}),
    "time goes back": (S.ONGOING, S.ONGOING, {"last_update_ms": 4}),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_follow_is_never_written(what: str) -> None:
    source, target, changes = WRONG[what]
    before = TransactionMetadata("id", 1, 3, 60_000, source, (A,), start_ms=4, last_update_ms=5)
    after = before._replace(**{"state": target, "last_update_ms": 10, **changes})
    with pytest.raises(AssertionError, match=f"{source.name} to {target.name}: "):
        transitions.check(before, after)


def test_time_does_not_go_back_in_what_is_recorded() -> None:
    txn = TransactionMetadata("id", 1, 0, 60_000, S.ONGOING, last_update_ms=1000)
    assert txn.prepared(commit=True, client_version=2, fresh_id=-1, now_ms=900).last_update_ms == 1000
