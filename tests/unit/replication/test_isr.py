"""The high watermark that an in-sync set allows."""

from odradek.replication.isr import CommittedIsr, high_watermark_of


def test_the_smallest_end_of_the_in_sync_set_is_committed() -> None:
    isr = CommittedIsr((1, 2, 3))
    assert high_watermark_of(1, 105, {2: 104, 3: 102, 4: 5}, isr) == 102
    assert high_watermark_of(1, 101, {2: 104, 3: 102}, isr) == 101, "the leader has not flushed as far"


def test_a_member_that_was_not_heard_yet_holds_everything_back() -> None:
    assert high_watermark_of(1, 105, {2: 104}, CommittedIsr((1, 2, 3))) == 0


def test_a_leader_alone_commits_what_it_has() -> None:
    assert high_watermark_of(1, 105, {2: 3}, CommittedIsr((1,))) == 105


def test_the_committed_set_is_what_the_high_watermark_waits_for() -> None:
    assert CommittedIsr((3, 1)).maximal == (3, 1)
