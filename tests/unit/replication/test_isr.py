"""The ISR with a proposed change, and the high watermark that it allows."""

from collections.abc import Callable

import pytest

from odradek.replication.isr import CommittedIsr, PendingExpand, PendingShrink, high_watermark_of
from odradek.replication.progress import FollowerProgress


def followers(*ends: int) -> list[FollowerProgress]:
    """-1 has not fetched."""
    made = []
    for broker_id, end in enumerate(ends, 2):
        follower = FollowerProgress(broker_id)
        if end >= 0:
            follower.record(end, 0, -1, 1_000, 0)
        made.append(follower)
    return made


def only(*broker_ids: int) -> Callable[[FollowerProgress], bool]:
    return lambda follower: follower.broker_id in broker_ids


def test_the_smallest_end_of_the_in_sync_set_is_committed() -> None:
    assert high_watermark_of(105, followers(104, 102), [], only()) == 102
    assert high_watermark_of(101, followers(104, 102), [], only()) == 101, "the leader has not flushed as far"


def test_a_member_that_was_not_heard_yet_holds_everything_back() -> None:
    assert high_watermark_of(105, followers(104, -1), [], only()) == 0


def test_a_leader_alone_commits_what_it_has() -> None:
    assert high_watermark_of(105, [], followers(3), only()) == 105


def test_a_replica_outside_that_may_join_holds_back_too() -> None:
    in_sync, outside = followers(104)[:1], followers(0, 90, 80)[1:]
    assert high_watermark_of(105, in_sync, outside, only()) == 104
    assert high_watermark_of(105, in_sync, outside, only(3)) == 90
    assert high_watermark_of(105, in_sync, outside, only(3, 4)) == 80


def test_a_replica_outside_is_looked_at_only_if_it_would_hold_back() -> None:
    def fail(follower: FollowerProgress) -> bool:
        raise AssertionError

    assert high_watermark_of(105, followers(90), followers(0, 90)[1:], fail) == 90


def test_a_new_member_counts_at_once_and_a_leaving_one_until_the_answer() -> None:
    committed = CommittedIsr((3, 1))
    assert committed.maximal == (3, 1)
    expand = PendingExpand(committed, 2)
    assert (expand.members, expand.maximal, expand.proposed) == ((3, 1), (3, 1, 2), (3, 1, 2))
    shrink = PendingShrink(committed, (3,))
    assert (shrink.members, shrink.maximal, shrink.proposed) == ((3, 1), (3, 1), (1,))


def test_proposals_with_the_same_content_are_different() -> None:
    """An answer belongs to the proposal that was sent."""
    committed = CommittedIsr((1, 2))
    assert PendingExpand(committed, 3) != PendingExpand(committed, 3)
    assert PendingShrink(committed, (2,)) != PendingShrink(committed, (2,))
    assert committed == CommittedIsr((1, 2))


@pytest.mark.parametrize(
    "impossible",
    [
        lambda: CommittedIsr((1, 1)),
        lambda: PendingExpand(CommittedIsr((1, 2)), 2),
        lambda: PendingShrink(CommittedIsr((1, 2)), ()),
        lambda: PendingShrink(CommittedIsr((1, 2)), (3,)),
        lambda: PendingShrink(CommittedIsr((1, 2)), (1, 2)),
    ],
    ids=["twice", "is a member", "nobody leaves", "no member", "nobody stays"],
)
def test_changes_that_cannot_be_are_faults_of_ours(impossible: Callable[[], object]) -> None:
    with pytest.raises(AssertionError):
        impossible()
