"""A guard is good until its transaction's producer ends one here."""

from odradek.replication.verification import Verification


def test_a_guard_holds_until_it_is_released() -> None:
    verification = Verification()
    guard = verification.begin(7)
    assert verification.holds(guard) and len(verification) == 1
    verification.release(guard)
    assert not verification.holds(guard) and len(verification) == 0


def test_those_who_ask_at_the_same_time_share_a_guard() -> None:
    verification = Verification()
    guard = verification.begin(7)
    assert verification.begin(7) is guard
    verification.release(guard)
    assert verification.holds(guard), "another one still has it"
    verification.release(guard)
    assert len(verification) == 0


def test_an_end_voids_the_guards_of_its_producer_only() -> None:
    verification = Verification()
    of_seven, of_eight = verification.begin(7), verification.begin(8)
    assert of_seven is not of_eight
    verification.ended(7)
    assert not verification.holds(of_seven)
    assert verification.holds(of_eight)
    verification.ended(9)
    assert len(verification) == 1


def test_a_guard_from_before_an_end_neither_holds_nor_releases_the_next_one() -> None:
    verification = Verification()
    before = verification.begin(7)
    verification.ended(7)
    after = verification.begin(7)
    assert not verification.holds(before)
    verification.release(before)
    assert verification.holds(after)
