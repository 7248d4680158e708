"""A voter with an empty disk: part of a new quorum, or wiped."""

import pytest

from odradek.raft.first_start import (
    ClusterIdError,
    Format,
    FormatAnswer,
    Wait,
    choose_cluster_id,
    decide,
    may_start,
)

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


def test_the_lowest_id_chooses_the_cluster_and_the_others_take_it() -> None:
    assert choose_cluster_id(1, VOTERS, {2: EMPTY, 3: EMPTY}) is None
    assert choose_cluster_id(2, VOTERS, {1: EMPTY, 3: EMPTY}) == Wait((1,))
    assert choose_cluster_id(3, VOTERS, {1: FormatAnswer(True, 0, "c"), 2: EMPTY}) == "c"


def test_a_voter_joins_no_cluster_that_the_others_disagree_about_or_do_not_name() -> None:
    one, two, silent = FormatAnswer(True, 3, "one"), FormatAnswer(True, 3, "two"), FormatAnswer(True, 3)
    with pytest.raises(ClusterIdError, match="voter 1 of one, 2 of two"):
        choose_cluster_id(3, VOTERS, {1: one, 2: two})
    assert choose_cluster_id(1, VOTERS, {2: silent, 3: EMPTY}) == Wait((2,))
    assert choose_cluster_id(1, VOTERS, {2: silent, 3: one}) == "one"
