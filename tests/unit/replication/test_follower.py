"""A follower's log: what it takes over from its leader, and where it is truncated."""

from pathlib import Path

import pytest

from odradek.core.errors import ErrorCode
from tests.unit.log.support import records
from tests.unit.replication.fetching.support import EPOCH, batches, follower_of
from tests.unit.replication.support import refused


def test_a_log_without_epochs_begins_at_its_high_watermark(tmp_path: Path) -> None:
    follower = follower_of(tmp_path)
    follower.log.append_as_follower(batches(0, 1, epoch=-1) + batches(1, 1, epoch=-1))
    follower.log.advance_high_watermark(1)
    follower.begin()
    assert follower.log.log_end_offset == 1


def test_a_log_with_epochs_keeps_all_its_records(tmp_path: Path) -> None:
    follower = follower_of(tmp_path)
    follower.log.append_as_follower(batches(0, 3))
    follower.begin()
    assert follower.log.log_end_offset == 3 and follower.log.high_watermark == 0


def test_a_partial_batch_is_left_for_the_next_fetch(tmp_path: Path) -> None:
    follower, first, second = follower_of(tmp_path), batches(0), batches(1)
    follower.append(first + second[:-1], 2, 0)
    assert follower.log.log_end_offset == 1
    for size in (1, 11, 12, len(second) - 1):
        follower.append(second[:size], 2, 0)
    assert follower.log.log_end_offset == 1 and follower.log.high_watermark == 1
    follower.append(second, 2, 0)
    assert follower.log.high_watermark == 2


def test_an_empty_log_begins_with_the_batch_that_contains_the_leaders_log_start(tmp_path: Path) -> None:
    follower = follower_of(tmp_path)
    follower.start_at_leader_start(12)
    follower.append(batches(10, 5) + batches(15), 16, 12)
    log = follower.log
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (12, 16, 16)
    assert [record.offset for record in records(log, 12)] == [12, 13, 14, 15]


def test_records_that_overlap_a_log_with_records_are_refused(tmp_path: Path) -> None:
    follower = follower_of(tmp_path)
    follower.append(batches(0, 5), 5, 0)
    with refused(ErrorCode.OFFSET_OUT_OF_RANGE):
        follower.append(batches(3, 5), 8, 0)
    assert follower.log.log_end_offset == 5


def test_the_high_watermark_does_not_go_back_with_a_new_leaders(tmp_path: Path) -> None:
    follower = follower_of(tmp_path)
    follower.append(batches(0, 5), 5, 0)
    follower.append(None, 3, 0)
    assert follower.log.high_watermark == 5


@pytest.mark.parametrize(
    ("leaders", "expected"),
    [
        ((1, 1), 1),  # both know epoch 1: the smaller end
        ((1, 9), 2),
        ((2, 9), 2),  # ours is 1 below it
        ((0, 0), 0),  # all of ours are later
        ((4, 3), 3),  # ours are all before
        ((4, 9), 4),
    ],
)
def test_where_a_diverging_log_is_truncated(tmp_path: Path, leaders: tuple[int, int], expected: int) -> None:
    follower = follower_of(tmp_path)
    for offset, epoch in enumerate((1, 1, 3, 3)):
        follower.log.append_as_follower(batches(offset, epoch=epoch))
    follower.truncate_diverging(*leaders)
    assert follower.log.log_end_offset == expected


def test_a_truncation_below_the_high_watermark_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    follower = follower_of(tmp_path)
    follower.append(batches(0) + batches(1), 2, 0)
    follower.truncate_to_leader_end(1)
    assert "below its high watermark 2" in caplog.text
    assert follower.log.high_watermark == 1
    assert follower.leader_epoch == EPOCH
