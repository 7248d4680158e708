"""A voter with an empty disk: part of a new quorum, or wiped."""

import pytest

from odradek.raft.first_start import Format, FormatAnswer, Wait, decide, may_start

VOTERS = (1, 2, 3)
EMPTY, NEW = FormatAnswer(False, 0), FormatAnswer(True, 0)


def test_every_other_voter_must_answer() -> None:
    assert decide(1, VOTERS, {}) == Wait((2, 3))
    assert decide(1, VOTERS, {2: EMPTY}) == Wait((3,))


@pytest.mark.parametrize("other", [EMPTY, NEW])
def test_a_quorum_in_which_nobody_has_seen_an_epoch_is_new(other: FormatAnswer) -> None:
    assert decide(1, VOTERS, {2: EMPTY, 3: other}) == Format(0, may_vote=True)


def test_the_highest_epoch_counts_as_voted_in() -> None:
    answers = {2: FormatAnswer(True, 4), 3: FormatAnswer(True, 7)}
    assert decide(1, VOTERS, answers) == Format(7, may_vote=False)
    assert decide(1, VOTERS, {2: EMPTY, 3: FormatAnswer(True, 7)}) == Format(7, may_vote=False)


def test_a_new_quorum_votes_after_all_have_formatted() -> None:
    assert may_start(1, VOTERS, {2: NEW}) == Wait((3,))
    assert may_start(1, VOTERS, {2: NEW, 3: EMPTY}) == Wait((3,))
    assert may_start(1, VOTERS, {2: NEW, 3: NEW}) is None


def test_where_an_election_was_held_all_had_formatted() -> None:
    assert may_start(1, VOTERS, {2: FormatAnswer(True, 1)}) is None
