"""flush.messages: up to where records may be acknowledged, and when a flush is needed."""

import pytest

from odradek.log.parts.settling import NEVER, Settling
from tests.unit.log.parts.support import Parts
from tests.unit.log.support import config


@pytest.fixture
def settling(parts: Parts) -> Settling:
    parts.config.update(config(flush_messages=3))
    return Settling(parts.config, parts.segments, parts.bounds, parts.durability)


def test_below_flush_messages_all_is_settled(parts: Parts, settling: Settling) -> None:
    parts.write(2)
    assert not settling.await_flush(0)
    assert settling.settled_offset == 2
    assert settling.flush_target == 0, "the active segment waits for no one"


def test_at_flush_messages_records_wait_for_a_flush(parts: Parts, settling: Settling) -> None:
    parts.write(2)
    parts.write(1)
    assert settling.await_flush(2)
    assert settling.settled_offset == 2
    assert settling.flush_target == 3
    parts.flush()
    assert settling.settled_offset == 3


def test_one_flush_is_asked_for_at_a_time_until_as_many_records_come_again(
    parts: Parts, settling: Settling
) -> None:
    parts.write(3)
    assert settling.await_flush(0)
    parts.write(2)
    assert not settling.await_flush(3)
    assert settling.flush_target == 5, "the flush that is due takes them along"
    parts.write(1)
    assert settling.await_flush(5)
    assert settling.settled_offset == 0, "what waited first still waits"


def test_a_listener_hears_of_a_settled_offset_that_moved(parts: Parts, settling: Settling) -> None:
    heard: list[int] = []
    settling.on_settled = lambda: heard.append(settling.settled_offset)
    parts.write(3)
    settling.await_flush(0)
    before = settling.settled_offset
    settling.moved_from(before)
    assert heard == []
    parts.flush()
    settling.moved_from(before)
    assert heard == [3]


def test_a_truncation_ends_the_wait_of_what_is_gone(parts: Parts, settling: Settling) -> None:
    parts.write(2)
    parts.flush()
    parts.write(3)
    assert settling.await_flush(2)
    parts.bounds.truncate_to(2)
    settling.truncated(2)
    assert settling.settled_offset == 2
    parts.bounds.restart_at(0)
    parts.durability.restarted(0)
    settling.restarted(0)
    assert settling.settled_offset == 0


@pytest.mark.parametrize(("flush_messages", "expected"), [(1, True), (NEVER - 1, True), (NEVER, False)])
def test_only_the_default_never_flushes_by_count(
    parts: Parts, settling: Settling, flush_messages: int, expected: bool
) -> None:
    parts.config.update(config(flush_messages=flush_messages))
    assert settling.flushes_by_count is expected


def test_what_waits_for_a_flush_ends_where_the_log_does(parts: Parts) -> None:
    parts.config.update(config(flush_messages=1))
    parts.write(5)
    parts.write(4)
    assert parts.settling.await_flush(5)
    assert parts.settling.settled_offset == 5
    parts.bounds.truncate_to(3)
    parts.settling.truncated(3)
    assert parts.settling.settled_offset == 3
