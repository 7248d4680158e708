"""Plants every violation that the checkers of transactions claim to find, and shows them what is allowed."""

import pytest

from odradek.coordinators.transactions.metadata import TransactionMetadata
from odradek.coordinators.transactions.states import TxnState
from odradek.core.types import TopicPartition
from odradek.sim.checkers import transactions as checkers
from odradek.sim.checkers.txn_history import Reader, Txn, TxnFate, TxnHistory

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
S = TxnState


def txn(fate: TxnFate, *writes: tuple[TopicPartition, bytes], producer: str = "p", number: int = 1) -> Txn:
    return Txn(producer, number, list(writes), fate)


def state(kind: TxnState, epoch: int = 1, *tps: TopicPartition, version: int = 2) -> TransactionMetadata:
    return TransactionMetadata("id", 7, epoch, 1000, kind, tps, client_version=version)


GOOD = {A: [(0, b"1"), (1, b"2")], B: [(0, b"3")]}
COMMITTED = txn(TxnFate.COMMITTED, (A, b"1"), (A, b"2"), (B, b"3"))


def test_what_is_right_is_not_found() -> None:
    aborted = txn(TxnFate.ABORTED, (A, b"4"), number=2)
    lost = txn(TxnFate.UNKNOWN, (A, b"5"), (B, b"6"), number=3)
    txns = [COMMITTED, aborted, lost]
    assert checkers.duplicates(GOOD) == []
    assert checkers.lost_writes(txns, GOOD) == []
    assert checkers.aborted_reads(txns, GOOD) == []
    assert checkers.torn_transactions(txns, GOOD) == []
    assert checkers.nonmonotonic_sends(txns, GOOD) == []


def test_a_duplicate_is_found() -> None:
    (found,) = checkers.duplicates({A: [(0, b"1"), (4, b"1")]})
    assert found.startswith("duplicate: b'1'")


def test_a_lost_write_is_found_also_where_it_went_elsewhere() -> None:
    assert len(checkers.lost_writes([COMMITTED], {A: [(0, b"1"), (1, b"2")], B: []})) == 1
    assert len(checkers.lost_writes([COMMITTED], {A: [(0, b"1"), (1, b"2"), (2, b"3")], B: []})) == 1


def test_an_aborted_read_is_found() -> None:
    (found,) = checkers.aborted_reads([txn(TxnFate.ABORTED, (A, b"1"))], GOOD)
    assert found.startswith("aborted read: b'1'")


@pytest.mark.parametrize("fate", TxnFate)
def test_a_torn_transaction_is_found(fate: TxnFate) -> None:
    (found,) = checkers.torn_transactions([txn(fate, (A, b"1"), (B, b"9"))], GOOD)
    assert "1 of 2 writes are visible" in found


def test_a_nonmonotonic_send_is_found() -> None:
    one = txn(TxnFate.COMMITTED, (A, b"2"))
    two = txn(TxnFate.COMMITTED, (A, b"1"), number=2)
    (found,) = checkers.nonmonotonic_sends([one, two], GOOD)
    assert found.startswith("nonmonotonic send: b'2'")
    two.producer = "another life"
    assert checkers.nonmonotonic_sends([one, two], GOOD) == []


def reader(*polled: tuple[int, bytes], position: int) -> Reader:
    return Reader("r", A, list(polled), position)


def test_polls_are_held_against_what_is_visible() -> None:
    good = reader((0, b"1"), (1, b"2"), position=2)
    assert checkers.wrong_polls([good, reader((0, b"1"), position=1)], GOOD) == []
    (found,) = checkers.wrong_polls([reader((1, b"2"), (0, b"1"), position=2)], GOOD)
    assert found.startswith("nonmonotonic poll")
    (found,) = checkers.wrong_polls([reader((0, b"1"), (0, b"1"), (1, b"2"), position=2)], GOOD)
    assert found.startswith("nonmonotonic poll")
    (found,) = checkers.wrong_polls([reader((1, b"2"), position=2)], GOOD)
    assert found.startswith("poll skip")
    (found,) = checkers.wrong_polls([reader((0, b"1"), (1, b"9"), position=1)], GOOD)
    assert found.startswith("aborted read")


def test_what_is_stuck_is_found() -> None:
    assert checkers.stuck({A: (5, 5)}, [state(S.EMPTY), state(S.COMPLETE_ABORT)]) == []
    assert "stuck at 3" in checkers.stuck({A: (3, 5)}, [])[0]
    for kind in (S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT):
        assert "stuck in" in checkers.stuck({}, [state(kind)])[0]


def control(tp: TopicPartition, *, epoch: int = 1, commit: bool = True) -> checkers.Control:
    return checkers.Control(tp, 5, 7, epoch, commit)


def test_markers_and_decisions_belong_together() -> None:
    log = [state(S.ONGOING, 0, A, B), state(S.PREPARE_COMMIT, 1, A, B), state(S.COMPLETE_COMMIT, 1)]
    both = [control(A), control(B)]
    assert checkers.wrong_markers([*both, control(A)], log, [A, B]) == [], "a marker may be repeated"
    assert checkers.wrong_markers([control(A)], log, [A]) == [], "B is gone"
    (found,) = checkers.wrong_markers([control(A)], log, [A, B])
    assert "has no marker" in found
    (found,) = checkers.wrong_markers([*both, control(A, commit=False)], log, [A, B])
    assert found.startswith("a marker without its transaction")
    (found,) = checkers.wrong_markers([*both, control(A, epoch=2)], log, [A, B])
    assert found.startswith("a marker without its transaction")
    assert checkers.wrong_markers([*both, control(A, epoch=2)], log, [A, B], compacted=True) == []
    (found,) = checkers.wrong_markers([*both, control(TopicPartition("u", 0))], log, [A, B])
    assert found.startswith("a marker without its transaction")


def test_two_outcomes_of_one_transaction_are_found() -> None:
    log = [state(S.PREPARE_COMMIT, 1, A), state(S.PREPARE_ABORT, 1, A)]
    controls = [control(A), control(A, commit=False)]
    (found,) = checkers.wrong_markers(controls, log, [A])
    assert "both a commit and an abort" in found
    old = [entry._replace(client_version=0) for entry in log]
    assert checkers.wrong_markers(controls, old, [A]) == [], "one epoch has many transactions there"


def test_copies_are_counted() -> None:
    inputs = [b"0", b"1", b"2"]
    assert checkers.not_exactly_once(inputs, 2, [b"copy/0", b"copy/1"]) == []
    assert "should be b'copy/1' and is None" in checkers.not_exactly_once(inputs, 2, [b"copy/0"])[0]
    assert "is b'copy/0'" in checkers.not_exactly_once(inputs, 2, [b"copy/0", b"copy/0", b"copy/1"])[0]
    assert "not committed" in checkers.not_exactly_once(inputs, 1, [b"copy/0", b"copy/1"])[0]


def test_a_live_state_that_the_log_does_not_tell_is_found() -> None:
    live = {"id": state(S.EMPTY)._replace(last_producer_epoch=0)}
    assert checkers.replay_differs(live, [("id", state(S.ONGOING)), ("id", state(S.EMPTY))]) == []
    assert len(checkers.replay_differs(live, [("id", state(S.ONGOING))])) == 1
    assert len(checkers.replay_differs(live, [("id", state(S.EMPTY)), ("id", None)])) == 1
    assert len(checkers.replay_differs({}, [("id", state(S.EMPTY))])) == 1


def test_a_producer_id_of_two_owners_is_found() -> None:
    history = TxnHistory()
    history.identity_given("x", 1)
    history.identity_given("x", 1)
    assert history.oddities == []
    history.identity_given("y", 1)
    assert history.oddities == ["producer id 1 was given to x and to y"]
