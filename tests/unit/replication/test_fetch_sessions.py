import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.replication.fetch_sessions import (
    EVICTION_MS,
    MAX_EPOCH,
    FetchSessions,
    PartitionFetch,
    PartitionKey,
)
from odradek.runtime.slices import at_once

A, B = (PartitionKey("t", i) for i in range(2))


def begin(
    sessions,
    session_id,
    epoch,
    wanted=(),
    forgotten=(),
    *,
    now_ms=0,
    new_id=7,
    privileged=False,
    uses_topic_ids=False,
):
    return at_once(
        sessions.begin(
            session_id,
            epoch,
            {key: PartitionFetch(0, 100) for key in wanted},
            list(forgotten),
            privileged=privileged,
            uses_topic_ids=uses_topic_ids,
            now_ms=now_ms,
            new_id=lambda: new_id,
        )
    )


def session_id_of(context):
    return 0 if context.session is None else context.session.id


def assert_unknown(sessions, session_id):
    with pytest.raises(KafkaError) as e:
        begin(sessions, session_id, 1)
    assert e.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_full_fetch_makes_a_session_that_incremental_fetches_continue():
    sessions = FetchSessions(10)
    full = begin(sessions, 0, 0, [A, B])
    assert (session_id_of(full), full.incremental, list(full.partitions)) == (7, False, [A, B])
    more = begin(sessions, 7, 1)
    assert (session_id_of(more), more.incremental, list(more.partitions)) == (7, True, [A, B])


def test_epoch_must_follow_the_last_one_and_wraps_to_one():
    sessions = FetchSessions(10)
    session = begin(sessions, 0, 0, [A]).session
    with pytest.raises(KafkaError) as e:
        begin(sessions, 7, 2)
    assert e.value.code is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    session.epoch = MAX_EPOCH
    begin(sessions, 7, MAX_EPOCH)
    assert begin(sessions, 7, 1).incremental


@pytest.mark.parametrize("ids_first", [False, True])
def test_a_session_cannot_change_between_names_and_topic_ids(ids_first):
    sessions = FetchSessions(10)
    begin(sessions, 0, 0, [A], uses_topic_ids=ids_first)
    with pytest.raises(KafkaError) as e:
        begin(sessions, 7, 2, uses_topic_ids=not ids_first)
    assert e.value.code is ErrorCode.INVALID_FETCH_SESSION_EPOCH, "the epoch is looked at first"
    with pytest.raises(KafkaError) as e:
        begin(sessions, 7, 1, uses_topic_ids=not ids_first)
    assert e.value.code is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert begin(sessions, 7, 1, uses_topic_ids=ids_first).incremental


def test_unknown_session_is_refused_and_a_final_fetch_ends_one():
    sessions = FetchSessions(10)
    assert_unknown(sessions, 99)
    begin(sessions, 0, 0, [A])
    assert begin(sessions, 7, -1, [A]).session is None
    assert_unknown(sessions, 7)


def test_forgotten_partitions_leave_and_an_empty_session_ends():
    sessions = FetchSessions(10)
    begin(sessions, 0, 0, [A, B])
    assert list(begin(sessions, 7, 1, forgotten=[A]).partitions) == [B]
    assert begin(sessions, 7, 2, forgotten=[B]).session is None
    assert_unknown(sessions, 7)


def test_a_full_cache_serves_without_a_session_until_one_is_idle():
    sessions = FetchSessions(1)
    begin(sessions, 0, 0, [A], new_id=1, now_ms=0)
    assert begin(sessions, 0, 0, [A], new_id=2, now_ms=EVICTION_MS).session is None
    assert session_id_of(begin(sessions, 0, 0, [A], new_id=2, now_ms=EVICTION_MS + 1)) == 2
    assert_unknown(sessions, 1)


def test_the_longest_unused_session_goes_first():
    sessions = FetchSessions(2)
    begin(sessions, 0, 0, [A], new_id=1, now_ms=0)
    begin(sessions, 0, 0, [A], new_id=2, now_ms=0)
    begin(sessions, 1, 1, now_ms=10)
    begin(sessions, 0, 0, [A], new_id=3, now_ms=EVICTION_MS + 11)
    assert_unknown(sessions, 2)
    assert begin(sessions, 1, 2).incremental


def test_no_slots_means_no_sessions():
    assert begin(FetchSessions(0), 0, 0, [A]).session is None


def test_a_follower_displaces_a_consumer_from_a_full_cache_however_young_or_large():
    sessions = FetchSessions(1)
    begin(sessions, 0, 0, [A, B], new_id=1)
    assert session_id_of(begin(sessions, 0, 0, [A], new_id=2, privileged=True)) == 2
    assert begin(sessions, 0, 0, [A, B], new_id=3).session is None, "and is not displaced by one"


@pytest.mark.parametrize("privileged", [False, True])
def test_a_larger_session_displaces_a_smaller_one_of_its_kind_that_is_not_young(privileged):
    sessions = FetchSessions(1)
    begin(sessions, 0, 0, [A], new_id=1, now_ms=0, privileged=privileged)
    begin(sessions, 1, 1, now_ms=EVICTION_MS, privileged=privileged)

    def larger(now_ms, wanted=(A, B)):
        return begin(sessions, 0, 0, wanted, new_id=2, now_ms=now_ms, privileged=privileged)

    assert larger(EVICTION_MS).session is None, "young"
    begin(sessions, 1, 2, now_ms=EVICTION_MS + 1, privileged=privileged)
    assert larger(EVICTION_MS + 1, [A]).session is None, "no larger"
    assert session_id_of(larger(EVICTION_MS + 1)) == 2
    assert_unknown(sessions, 1)


def test_the_smallest_gives_way_also_after_a_session_has_grown():
    sessions = FetchSessions(2)
    for session_id in (1, 2):
        begin(sessions, 0, 0, [A], new_id=session_id)
        begin(sessions, session_id, 1, now_ms=EVICTION_MS + 1)
    assert begin(sessions, 0, 0, [A], new_id=3, now_ms=EVICTION_MS + 1).session is None
    begin(sessions, 1, 2, [B], now_ms=EVICTION_MS + 1)
    assert session_id_of(begin(sessions, 0, 0, [A, B], new_id=3, now_ms=EVICTION_MS + 1)) == 3
    assert_unknown(sessions, 2)


def test_only_news_is_told():
    fetch = PartitionFetch(0, 100)
    assert fetch.has_news(0, False, 5, 0)
    fetch.told(False, 5, 0)
    assert not fetch.has_news(0, False, 5, 0)
    assert fetch.has_news(1, False, 5, 0)
    assert fetch.has_news(0, False, 6, 0)
    assert fetch.has_news(0, False, 5, 1)
    fetch.told(True, -1, -1)
    assert fetch.has_news(0, False, -1, -1), "the end of an error is news"


def test_a_new_wish_keeps_what_the_client_was_told():
    sessions = FetchSessions(10)
    context = begin(sessions, 0, 0, [A])
    context.partitions[A].told(False, 5, 0)
    wish = sessions.begin(
        7,
        1,
        {A: PartitionFetch(3, 50)},
        [],
        privileged=False,
        uses_topic_ids=False,
        now_ms=0,
        new_id=lambda: 8,
    )
    again = at_once(wish).partitions[A]
    assert (again.fetch_offset, again.max_bytes, again.sent_high_watermark) == (3, 50, 5)


def test_a_new_wish_replaces_all_that_the_client_asked_for():
    known, wish = PartitionFetch(0, 100), PartitionFetch(3, 50, 4, 5, 6)
    known.take(wish)
    assert (known.fetch_offset, known.max_bytes) == (3, 50)
    assert (known.current_leader_epoch, known.last_fetched_epoch, known.log_start_offset) == (4, 5, 6)


def test_a_partition_that_nobody_was_told_of_has_nothing_told():
    fetch = PartitionFetch(0, 100)
    assert (fetch.sent_error, fetch.sent_high_watermark, fetch.sent_log_start_offset) == (False, -1, -1)


def test_a_partition_that_had_its_turn_goes_behind_the_others():
    session = begin(FetchSessions(10), 0, 0, [A, B]).session
    session.move_to_end(A)
    assert list(session.partitions) == [B, A]


def test_only_fetches_of_a_session_are_incremental():
    sessions = FetchSessions(10)
    begin(sessions, 0, 0, [A])
    assert not begin(sessions, 7, 1, forgotten=[A]).incremental, "its last partition went"
    assert not begin(sessions, 7, -1, [A]).incremental
    assert not begin(sessions, 0, 0, [A]).incremental


def test_a_full_fetch_ends_the_session_it_names():
    sessions = FetchSessions(10)
    begin(sessions, 0, 0, [A], new_id=7)
    assert session_id_of(begin(sessions, 7, 0, [A], new_id=8)) == 8
    assert_unknown(sessions, 7)


def test_large_updates_are_made_with_pauses():
    many = [PartitionKey("t", i) for i in range(40)]
    sessions = FetchSessions(10)
    begin(sessions, 0, 0, [PartitionKey("u", 0)])
    wanted = {key: PartitionFetch(0, 100) for key in many}
    more = {"privileged": False, "uses_topic_ids": False, "now_ms": 0, "new_id": lambda: 8}
    assert len(list(sessions.begin(7, 1, wanted, [], **more))) == 2
    assert len(list(sessions.begin(7, 2, {}, many, **more))) == 2
    assert list(begin(sessions, 7, 3).partitions) == [PartitionKey("u", 0)]


def test_a_session_that_ends_during_its_update_is_not_found():
    many = {PartitionKey("t", i): PartitionFetch(0, 100) for i in range(40)}
    sessions = FetchSessions(10)
    begin(sessions, 0, 0, [A])
    more = {"privileged": False, "uses_topic_ids": False, "now_ms": 0, "new_id": lambda: 8}
    update = sessions.begin(7, 1, many, [], **more)
    next(update)
    begin(sessions, 7, -1)
    with pytest.raises(KafkaError) as e:
        at_once(update)
    assert e.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_the_smallest_gives_way_also_after_sessions_came_and_went():
    sessions = FetchSessions(1)
    begin(sessions, 0, 0, [A], new_id=1)
    begin(sessions, 1, 1, now_ms=EVICTION_MS + 1)
    assert begin(sessions, 0, 0, [A], new_id=2, now_ms=EVICTION_MS + 1).session is None
    begin(sessions, 1, -1)
    begin(sessions, 0, 0, [A], new_id=3, now_ms=EVICTION_MS + 1)
    begin(sessions, 3, 1, now_ms=2 * EVICTION_MS + 2)
    assert session_id_of(begin(sessions, 0, 0, [A, B], new_id=4, now_ms=2 * EVICTION_MS + 2)) == 4
    assert_unknown(sessions, 3)
