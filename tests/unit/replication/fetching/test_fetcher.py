"""What a fetcher asks for, and what it does with each answer."""

from pathlib import Path

import pytest

from odradek.core.errors import ErrorCode
from odradek.core.types import TopicPartition
from odradek.log.log import Log
from odradek.log.lookup import EARLIEST, LATEST
from odradek.replication.fetching.fetcher import FIRST_BACKOFF_MS
from tests.unit.log.support import offsets
from tests.unit.replication.fetching.support import (
    BACKOFF_MS,
    EPOCH,
    SESSION,
    Stage,
    batches,
    data,
    follower_of,
    key_of,
    named,
)

TP = TopicPartition("orders", 0)


# --- sessions ---------------------------------------------------------------------------------------------


def test_the_first_fetch_names_all_and_the_next_only_what_changed(tmp_path: Path) -> None:
    stage = Stage(*(follower_of(tmp_path, index) for index in range(3)))
    first = stage.ask_fetch()
    assert first.session == (0, 0) and list(named(first)) == [0, 1, 2] and not first.forgotten
    stage.answer(*(data(index) for index in (0, 2)), data(1, batches(0), high_watermark=1))
    second = stage.ask_fetch()
    assert second.session == (SESSION, 1) and not second.forgotten
    assert named(second) == {1: (EPOCH, 1, EPOCH)}
    stage.answer()
    third = stage.ask_fetch()
    assert third.session == (SESSION, 2) and not third.topics and not third.forgotten


def test_a_leader_without_room_for_a_session_is_sent_full_fetches(tmp_path: Path) -> None:
    stage = Stage(follower_of(tmp_path))
    for _ in range(3):
        request = stage.ask_fetch()
        assert request.session == (0, 0) and list(named(request)) == [0]
        stage.answer(data(), session=0)


@pytest.mark.parametrize(
    ("code", "session_id"),
    [(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0), (ErrorCode.INVALID_FETCH_SESSION_EPOCH, SESSION)],
)
def test_a_session_that_the_leader_refuses_begins_again_at_once(
    tmp_path: Path, code: ErrorCode, session_id: int
) -> None:
    stage = Stage(follower_of(tmp_path))
    stage.ask_fetch()
    stage.answer(data())
    stage.ask_fetch()
    stage.answer(error=code, session=0)
    request = stage.ask_fetch()
    assert request.session == (session_id, 0) and list(named(request)) == [0]


def test_a_removed_partition_is_forgotten_and_a_new_one_is_named(tmp_path: Path) -> None:
    stage = Stage(follower_of(tmp_path, 0), follower_of(tmp_path, 1))
    stage.ask_fetch()
    stage.fetcher.remove(key_of(0))
    stage.add(follower_of(tmp_path, 2))
    stage.answer(data(0, batches(0)), data(1))
    request = stage.ask_fetch()
    assert list(request.forgotten) == [key_of(0)] and list(named(request)) == [2]


def test_one_that_is_removed_and_added_again_is_named_and_not_forgotten(tmp_path: Path) -> None:
    follower = follower_of(tmp_path)
    stage = Stage(follower)
    stage.ask_fetch()
    stage.answer(data())
    stage.fetcher.remove(key_of(0))
    follower.leader_epoch = EPOCH + 1
    stage.add(follower)
    request = stage.ask_fetch()
    assert not request.forgotten and named(request) == {0: (EPOCH + 1, 0, -1)}


def test_without_partitions_nothing_is_asked(tmp_path: Path) -> None:
    stage = Stage()
    assert stage.ask() is None and stage.fetcher.wake_at_ms is None


# --- records ----------------------------------------------------------------------------------------------


def test_records_are_appended_and_the_high_watermark_follows_up_to_the_log_end(tmp_path: Path) -> None:
    follower = follower_of(tmp_path)
    stage = Stage(follower)
    assert stage.asked() == {0: (EPOCH, 0, -1)}
    stage.answer(data(0, batches(0, 3), high_watermark=2))
    assert follower.log.log_end_offset == 3 and follower.log.high_watermark == 2
    assert stage.asked() == {0: (EPOCH, 3, EPOCH)}
    stage.answer(data(0, batches(3), high_watermark=9, log_start=1))
    assert follower.log.high_watermark == 4 and follower.log.log_start_offset == 1


def test_an_answer_to_an_earlier_leader_epoch_is_dropped(tmp_path: Path) -> None:
    follower = follower_of(tmp_path)
    stage = Stage(follower)
    stage.ask_fetch()
    follower.leader_epoch = EPOCH + 1
    stage.add(follower)
    stage.answer(data(0, batches(0)))
    assert follower.log.log_end_offset == 0
    stage.ask_fetch()
    stage.answer(data(0, batches(0)))
    assert follower.log.log_end_offset == 1


def test_an_answer_for_a_removed_partition_is_dropped(tmp_path: Path) -> None:
    follower = follower_of(tmp_path)
    stage = Stage(follower)
    stage.ask_fetch()
    stage.fetcher.remove(key_of(0))
    stage.answer(data(0, batches(0)))
    assert follower.log.log_end_offset == 0 and stage.ask() is None


def test_a_batch_of_a_later_epoch_than_the_leaders_is_not_appended(tmp_path: Path) -> None:
    follower = follower_of(tmp_path)
    stage = Stage(follower)
    stage.ask_fetch()
    stage.answer(data(0, batches(0, epoch=EPOCH + 1)))
    assert follower.log.log_end_offset == 0 and stage.ask() is None


def test_damaged_records_are_asked_for_again_later(tmp_path: Path) -> None:
    follower = follower_of(tmp_path)
    stage = Stage(follower)
    stage.ask_fetch()
    damaged = bytearray(batches(0))
    damaged[-1] ^= 1
    stage.answer(data(0, bytes(damaged)))
    assert follower.log.log_end_offset == 0 and stage.ask() is None
    stage.now_ms += BACKOFF_MS
    assert stage.asked() == {0: (EPOCH, 0, -1)}


def test_no_fetch_is_sent_before_the_flush_that_flush_messages_asks_for(tmp_path: Path) -> None:
    """A fetch at an offset says that all below it may be acknowledged."""
    follower, other = follower_of(tmp_path, 0, flush_messages=1), follower_of(tmp_path, 1)
    stage = Stage(follower, other)
    stage.ask_fetch()
    stage.answer(data(0), data(1, batches(0)))
    assert stage.fetcher.is_settled, "the other one flushes later"
    stage.ask_fetch()
    stage.answer(data(0, batches(0)))
    assert not stage.fetcher.is_settled
    follower.log.flush()
    assert stage.fetcher.is_settled
    assert stage.asked() == {0: (EPOCH, 1, EPOCH)}


# --- errors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        9_999,
    ],
)
def test_a_partition_with_an_error_waits_and_the_others_do_not(tmp_path: Path, code: int) -> None:
    stage = Stage(follower_of(tmp_path, 0), follower_of(tmp_path, 1))
    stage.ask_fetch()
    stage.answer(data(0, error=code), data(1))
    request = stage.ask_fetch()
    assert list(request.forgotten) == [key_of(0)] and not request.topics
    stage.answer()
    stage.now_ms += FIRST_BACKOFF_MS
    assert stage.asked() == {0: (EPOCH, 0, -1)}


def test_waits_grow_to_the_configured_backoff_and_end_with_an_answer(tmp_path: Path) -> None:
    stage = Stage(follower_of(tmp_path))
    waits = []
    for _ in range(8):
        stage.ask_fetch()
        stage.answer(data(error=ErrorCode.NOT_LEADER_OR_FOLLOWER))
        assert stage.ask() is None
        due_ms = stage.fetcher.wake_at_ms
        assert due_ms is not None
        waits.append(due_ms - stage.now_ms)
        stage.now_ms = due_ms
    assert waits == [20, 40, 80, 160, 320, 640, BACKOFF_MS, BACKOFF_MS]
    stage.ask_fetch()
    stage.answer(data())
    stage.ask_fetch()
    stage.answer(data(error=ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert stage.fetcher.wake_at_ms == stage.now_ms + FIRST_BACKOFF_MS


def test_a_fenced_leader_epoch_waits_for_the_metadata(tmp_path: Path) -> None:
    follower = follower_of(tmp_path)
    stage = Stage(follower)
    stage.ask_fetch()
    stage.answer(data(error=ErrorCode.FENCED_LEADER_EPOCH))
    stage.now_ms += 1_000_000
    assert stage.ask() is None and stage.fetcher.wake_at_ms is None
    follower.leader_epoch = EPOCH + 1
    stage.add(follower)
    assert stage.asked() == {0: (EPOCH + 1, 0, -1)}


def test_a_leader_that_does_not_answer_is_asked_again_in_a_new_session(tmp_path: Path) -> None:
    stage = Stage(follower_of(tmp_path))
    stage.ask_fetch()
    stage.answer(data())
    stage.ask_fetch()
    stage.fetcher.unanswered(stage.now_ms, "it is silent")
    assert stage.ask() is None
    assert stage.fetcher.wake_at_ms == stage.now_ms + FIRST_BACKOFF_MS
    stage.now_ms += FIRST_BACKOFF_MS
    request = stage.ask_fetch()
    assert request.session == (SESSION, 0) and list(named(request)) == [0]


def test_a_whole_request_that_is_refused_is_sent_again_later(tmp_path: Path) -> None:
    stage = Stage(follower_of(tmp_path))
    stage.ask_fetch()
    stage.answer(error=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    assert stage.ask() is None
    stage.now_ms += FIRST_BACKOFF_MS
    assert list(stage.asked()) == [0]


# --- truncation -------------------------------------------------------------------------------------------


def with_records(path: Path, *epochs: int) -> Stage:
    """A follower with one record of each epoch, all of them committed as far as it knows."""
    follower = follower_of(path)
    for offset, epoch in enumerate(epochs):
        follower.log.append_as_follower(batches(offset, epoch=epoch))
    stage = Stage(follower)
    stage.ask_fetch()
    return stage


def log_of(stage: Stage) -> Log:
    return stage.fetcher.partitions[key_of(0)].follower.log


def test_a_diverging_epoch_truncates_and_the_next_fetch_names_the_new_end(tmp_path: Path) -> None:
    stage = with_records(tmp_path, 1, 1, 3, 3)
    stage.answer(data(diverging=(1, 1)))
    assert log_of(stage).log_end_offset == 1
    assert stage.asked() == {0: (EPOCH, 1, 1)}


def test_below_the_leaders_epoch_the_own_log_decides_and_the_leader_is_asked_again(tmp_path: Path) -> None:
    """The leader has epoch 2, we do not: our epoch 1 may have ended later than there."""
    stage = with_records(tmp_path, 1, 1, 3, 3)
    stage.answer(data(diverging=(2, 4)))
    assert log_of(stage).log_end_offset == 2
    assert stage.asked() == {0: (EPOCH, 2, 1)}


def test_a_log_that_ends_below_the_leaders_epoch_loses_only_the_epoch_that_it_began(tmp_path: Path) -> None:
    """It was a leader at epoch 4, and wrote nothing."""
    stage = with_records(tmp_path, 1, 1)
    log_of(stage).assign_epoch_start_offset(4, 2)
    stage.answer(data(diverging=(1, 2)))
    assert log_of(stage).log_end_offset == 2
    assert stage.asked() == {0: (EPOCH, 2, 1)}


def test_out_of_range_above_the_leaders_end_truncates_to_it(tmp_path: Path) -> None:
    stage = with_records(tmp_path, 1, 1, 1)
    stage.answer(data(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    request = stage.ask_offsets()
    assert request.timestamp == LATEST and list(request.partitions) == [TP]
    stage.fetcher.found_offsets(request, {TP: 1}, stage.now_ms)
    assert log_of(stage).log_end_offset == 1 and stage.asked() == {0: (EPOCH, 1, 1)}


def test_out_of_range_below_the_leaders_start_begins_there_with_an_empty_log(tmp_path: Path) -> None:
    stage = with_records(tmp_path, 1, 1, 1)
    stage.answer(data(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    stage.fetcher.found_offsets(stage.ask_offsets(), {TP: 90}, stage.now_ms)
    request = stage.ask_offsets()
    assert request.timestamp == EARLIEST
    stage.fetcher.found_offsets(request, {TP: 50}, stage.now_ms)
    assert (log_of(stage).log_start_offset, log_of(stage).log_end_offset) == (50, 50)
    assert stage.asked() == {0: (EPOCH, 50, -1)}


def test_out_of_range_inside_the_leaders_log_keeps_the_records(tmp_path: Path) -> None:
    stage = with_records(tmp_path, 1, 1, 1)
    stage.answer(data(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    stage.fetcher.found_offsets(stage.ask_offsets(), {TP: 90}, stage.now_ms)
    stage.fetcher.found_offsets(stage.ask_offsets(), {TP: 2}, stage.now_ms)
    assert offsets(log_of(stage)) == [] and log_of(stage).log_end_offset == 3
    assert stage.asked() == {0: (EPOCH, 3, 1)}


def test_a_leader_that_refuses_the_offset_it_named_is_not_asked_in_circles(tmp_path: Path) -> None:
    stage = with_records(tmp_path, 1)
    for is_again in (False, True):
        stage.answer(data(error=ErrorCode.OFFSET_OUT_OF_RANGE))
        stage.fetcher.found_offsets(stage.ask_offsets(), {TP: 1}, stage.now_ms)
        stage.fetcher.found_offsets(stage.ask_offsets(), {TP: 0}, stage.now_ms)
        assert (stage.ask() is None) == is_again


@pytest.mark.parametrize(
    ("code", "retries"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, True),
        (ErrorCode.OFFSET_NOT_AVAILABLE, True),
        (ErrorCode.OFFSET_OUT_OF_RANGE, True),
        (ErrorCode.FENCED_LEADER_EPOCH, False),
    ],
)
def test_an_error_of_list_offsets_waits_like_one_of_fetch(
    tmp_path: Path, code: ErrorCode, retries: bool
) -> None:
    stage = with_records(tmp_path, 1)
    stage.answer(data(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    stage.fetcher.found_offsets(stage.ask_offsets(), {TP: code}, stage.now_ms)
    assert stage.ask() is None
    stage.now_ms += BACKOFF_MS
    assert (stage.ask() is not None) == retries


# --- many partitions --------------------------------------------------------------------------------------


def test_the_work_of_many_partitions_comes_in_small_steps(tmp_path: Path) -> None:
    """Others have their turn in between, and what leaves meanwhile is not asked for."""
    stage = Stage(*(follower_of(tmp_path, index) for index in range(100)))
    asking = stage.fetcher.next_request(stage.now_ms)
    assert next(asking) < 200
    stage.fetcher.remove(key_of(0))
    stage.fetcher.remove(key_of(99))
    costs = []
    while True:
        try:
            costs.append(next(asking))
        except StopIteration as done:
            request = done.value
            break
    assert max(costs) < 200 and len(costs) >= 4
    assert 0 in named(request) and 99 not in named(request)
    stage.answer(*(data(index) for index in range(99)))
    assert list(stage.ask_fetch().forgotten) == [key_of(0)]
