"""A marker goes after the data of its transaction; aborted data goes at once."""

from odradek.log.cleaning.transactions import CleanedTransactions
from odradek.log.segments.txn_index import AbortedTxn
from odradek.records.control import ControlType

ABORT, COMMIT = ControlType.ABORT, ControlType.COMMIT


def test_data_of_an_aborted_transaction_is_told_from_the_next_one_of_its_producer() -> None:
    txns = CleanedTransactions([AbortedTxn(7, 0, 4, 5)])
    assert txns.is_aborted(7, 1)
    assert txns.is_aborted(7, 3)
    assert not txns.is_aborted(8, 2)
    txns.on_marker(7, 4, ABORT)
    assert not txns.is_aborted(7, 6)


def test_an_abort_marker_is_needed_while_its_data_was_there() -> None:
    aborted = AbortedTxn(7, 0, 4, 5)
    txns = CleanedTransactions([aborted])
    txns.is_aborted(7, 1)
    verdict = txns.on_marker(7, 4, ABORT)
    assert (verdict.spent, verdict.aborted) == (False, aborted)
    assert CleanedTransactions([aborted]).on_marker(7, 4, ABORT) == (True, None)


def test_a_commit_marker_is_needed_while_its_data_is_there() -> None:
    txns = CleanedTransactions([])
    assert txns.on_marker(7, 0, COMMIT).spent
    assert not txns.is_aborted(7, 3)
    assert not txns.on_marker(7, 4, COMMIT).spent
    assert txns.on_marker(7, 5, COMMIT).spent


def test_a_marker_that_was_emptied_before_is_spent_and_others_never_are() -> None:
    txns = CleanedTransactions([])
    assert txns.on_marker(7, 0, None).spent
    assert not txns.on_marker(-1, 1, ControlType.LEADER_CHANGE).spent


def test_transactions_are_known_from_their_first_offset_on() -> None:
    txns = CleanedTransactions([AbortedTxn(7, 10, 20, 21), AbortedTxn(7, 2, 5, 6)])
    assert txns.is_aborted(7, 2)
    assert not txns.on_marker(7, 5, ABORT).spent
    assert not txns.is_aborted(7, 8)
    txns.on_marker(7, 9, COMMIT)
    assert txns.is_aborted(7, 10)
