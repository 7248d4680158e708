"""Committed offsets and those of open transactions: which there are, and what is left of removed ones."""

from odradek.coordinators.groups.offsets.offsets import CommittedOffset, OffsetStore
from odradek.core.types import NO_PRODUCER_ID


def store(*entries: tuple[int, str, str, int]) -> OffsetStore:
    found = OffsetStore()
    for at, (producer_id, group_id, topic, partition) in enumerate(entries):
        value = CommittedOffset(partition, 100 + at, -1, "", 0, record_offset=at)
        found.put(producer_id, group_id, topic, partition, value)
    return found


def test_every_offset_of_a_group_is_told_once() -> None:
    offsets = store(
        (NO_PRODUCER_ID, "g", "t", 0), (1, "g", "t", 0), (1, "g", "t", 1), (2, "g", "t", 1), (2, "g", "u", 0)
    )
    assert list(offsets.keys("g")) == [("t", 0), ("t", 1), ("u", 0)]


def test_what_is_removed_leaves_nothing_behind() -> None:
    offsets = store(
        (NO_PRODUCER_ID, "g", "t", 0), (NO_PRODUCER_ID, "g", "t", 1), (NO_PRODUCER_ID, "g", "u", 0)
    )
    offsets.remove("g", "t", 0)
    assert {topic: list(rows) for topic, rows in offsets.of_group("g").items()} == {"t": [1], "u": [0]}
    offsets.remove("g", "t", 1)
    assert list(offsets.of_group("g")) == ["u"]
    offsets.remove("g", "t", 1)
    offsets.remove("g", "u", 0)
    assert offsets.of_group("g") == {}
    assert list(offsets.group_ids()) == []


def test_of_two_commits_the_later_one_in_the_log_counts() -> None:
    offsets = store((1, "g", "t", 0), (NO_PRODUCER_ID, "g", "t", 0), (2, "g", "t", 0))
    for producer_id, expected in ((1, 101), (2, 102)):
        offsets.end_transaction(producer_id, True)
        found = offsets.get("g", "t", 0)
        assert found is not None
        assert found.committed_offset == expected
    assert not offsets.has_open_transactions("g")


def test_a_group_of_which_only_a_transaction_knows_counts_too() -> None:
    offsets = store((NO_PRODUCER_ID, "a", "t", 0), (1, "a", "t", 0), (1, "b", "t", 0))
    assert list(offsets.group_ids()) == ["a", "b"]
    offsets.end_transaction(1, False)
    assert list(offsets.group_ids()) == ["a"]
