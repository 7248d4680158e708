"""Rolling: what is on the disk before a new segment starts, and what is left if that fails."""

import errno

import pytest

from odradek.core.errors import StorageError
from odradek.core.types import TopicPartition
from tests.unit.log.parts.support import Parts
from tests.unit.log.support import TP


def test_a_roll_leaves_a_snapshot_and_a_mark_where_the_segment_ended(parts: Parts) -> None:
    heard: list[TopicPartition] = []
    parts.roller.on_rolled = heard.append
    parts.write(2)
    segment = parts.roller.roll_at(2)
    assert parts.segments.active is segment and segment.base_offset == 2
    assert {"00000000000000000002.snapshot", "00000000000000000002.unflushed"} <= set(parts.files())
    assert heard == [TP]


def test_a_durable_segment_needs_no_mark(parts: Parts) -> None:
    parts.write(2)
    parts.flush()
    parts.roller.roll_at(2)
    assert parts.marks.end_offsets == []


def test_an_empty_segment_is_the_new_one(parts: Parts) -> None:
    heard: list[TopicPartition] = []
    parts.roller.on_rolled = heard.append
    before = parts.files()
    assert parts.roller.roll_at(0) is parts.segments.active
    assert parts.files() == before and heard == []


def test_without_a_snapshot_no_segment_begins(parts: Parts) -> None:
    parts.write(2)
    parts.disk.fail["pwrite"] = parts.disk.fail["ftruncate"] = errno.EIO
    with pytest.raises(StorageError, match="Error while rolling orders-0"):
        parts.roller.roll_at(2)
    assert len(parts.segments) == 1
    assert "00000000000000000002.log" not in parts.files()


def test_a_snapshot_is_taken_once_for_an_offset(parts: Parts) -> None:
    parts.write(2)
    parts.roller.take_snapshot(2)
    changes = parts.dir.changes
    parts.roller.take_snapshot(2)
    parts.roller.take_snapshot(1)
    assert parts.snapshots.offsets == [2] and parts.dir.changes == changes
