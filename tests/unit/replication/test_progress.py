"""What a leader concludes from a follower's fetches."""

import pytest

from odradek.replication.progress import NEVER_MS, NO_BROKER_EPOCH, FollowerProgress

MAX_LAG_MS = 100


def fetches(
    follower: FollowerProgress, offset: int, *, leader_end: int, at: int, epoch: int = NO_BROKER_EPOCH
) -> None:
    follower.record(offset, 0, epoch, leader_end, at)


def test_a_follower_that_has_not_fetched_is_caught_up_only_as_a_member_of_the_isr() -> None:
    member, other = FollowerProgress(2, caught_up_ms=1_000), FollowerProgress(3)
    assert not member.is_heard and not other.is_heard
    assert member.is_caught_up(10, 1_100, MAX_LAG_MS)
    assert not member.is_caught_up(10, 1_101, MAX_LAG_MS)
    assert not other.is_caught_up(10, 1_000, MAX_LAG_MS)
    assert not other.is_caught_up(0, 1_000, MAX_LAG_MS), "an empty log is not proof either"


def test_a_fetch_at_the_log_end_catches_up_now() -> None:
    follower = FollowerProgress(2)
    fetches(follower, 10, leader_end=10, at=500)
    assert (follower.log_end_offset, follower.caught_up_ms) == (10, 500)
    assert follower.is_caught_up(11, 600, MAX_LAG_MS)
    assert not follower.is_caught_up(11, 601, MAX_LAG_MS)
    assert follower.is_caught_up(10, 9_000, MAX_LAG_MS), "nothing was appended: it needs no further fetch"


def test_a_fetch_that_reaches_the_end_of_the_last_fetch_was_caught_up_then() -> None:
    """A follower of a busy leader is always behind, but keeps up."""
    follower = FollowerProgress(2)
    fetches(follower, 0, leader_end=10, at=500)
    assert follower.caught_up_ms == NEVER_MS
    fetches(follower, 10, leader_end=20, at=550)
    assert follower.caught_up_ms == 500
    fetches(follower, 19, leader_end=30, at=600)
    assert follower.caught_up_ms == 500, "one record short of the end that it saw"
    fetches(follower, 30, leader_end=40, at=640)
    assert follower.caught_up_ms == 600


def test_a_fetch_that_goes_back_is_believed() -> None:
    """The follower has truncated, or it lost its disk."""
    follower = FollowerProgress(2)
    fetches(follower, 10, leader_end=10, at=500)
    fetches(follower, 3, leader_end=10, at=510)
    assert (follower.log_end_offset, follower.caught_up_ms) == (3, 500)


def test_a_restarted_follower_starts_from_nothing() -> None:
    follower = FollowerProgress(2, caught_up_ms=400)
    fetches(follower, 10, leader_end=10, at=500, epoch=40)
    fetches(follower, 10, leader_end=20, at=510, epoch=41)
    assert follower.caught_up_ms == NEVER_MS
    assert not follower.is_caught_up(20, 510, MAX_LAG_MS)
    assert follower.broker_epoch == 41
    fetches(follower, 20, leader_end=30, at=520, epoch=41)
    assert follower.caught_up_ms == 510


@pytest.mark.parametrize(
    ("known", "sent", "is_outdated"), [(40, 39, True), (40, 40, False), (40, -1, False), (-1, 39, False)]
)
def test_a_fetch_from_before_the_restart_is_recognized(known: int, sent: int, is_outdated: bool) -> None:
    follower = FollowerProgress(2)
    fetches(follower, 5, leader_end=5, at=500, epoch=known)
    assert follower.is_outdated(sent) is is_outdated
    if is_outdated:
        with pytest.raises(AssertionError):
            fetches(follower, 0, leader_end=5, at=510, epoch=sent)


def test_the_log_start_is_that_of_the_last_fetch() -> None:
    follower = FollowerProgress(2)
    assert follower.log_start_offset == -1
    follower.record(8, 3, NO_BROKER_EPOCH, 10, 500)
    assert follower.log_start_offset == 3
