"""Majorities are counted right for any number of voters."""

import pytest

from odradek.raft.quorum import committed_offset, has_majority, majority


@pytest.mark.parametrize(("voters", "needed"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_a_majority_is_more_than_half(voters: int, needed: int) -> None:
    assert majority(voters) == needed


def test_only_voters_count() -> None:
    assert not has_majority([1, 2, 3], [1, 7, 8, 9])
    assert has_majority([1, 2, 3], [1, 3, 9])


@pytest.mark.parametrize(
    ("ends", "committed"),
    [
        ({1: 10}, 0),
        ({1: 10, 2: 4}, 4),
        ({1: 10, 2: 4, 3: 7}, 7),
        ({1: 10, 2: 10, 3: 10}, 10),
        ({1: 10, 9: 10}, 0),
    ],
)
def test_committed_is_what_a_majority_of_three_holds(ends: dict[int, int], committed: int) -> None:
    assert committed_offset([1, 2, 3], ends) == committed


def test_one_voter_commits_what_it_holds() -> None:
    assert committed_offset([1], {1: 42}) == 42
