"""The table of states, held against the one of Apache Kafka and walked edge by edge."""

import pytest

from odradek.coordinators.transactions.metadata import TransactionMetadata
from odradek.coordinators.transactions.states import BY_TITLE, VALID_PREVIOUS, TxnState

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
    txn = TransactionMetadata("id", 1, 0, 60_000, source)
    if source in APACHE[target]:
        assert txn._to(target, 5).state is target
    else:
        with pytest.raises(AssertionError, match=f"{source.name} to {target.name}"):
            txn._to(target, 5)


def test_time_does_not_go_back_in_what_is_recorded() -> None:
    txn = TransactionMetadata("id", 1, 0, 60_000, S.ONGOING, last_update_ms=1000)
    assert txn.prepared(commit=True, client_version=2, fresh_id=-1, now_ms=900).last_update_ms == 1000
