"""The four offsets of a log: their order holds, or an assertion fails."""

import pytest

from odradek.log.parts.bounds import Bounds, Isolation
from odradek.log.producers.markers import Marker
from odradek.log.producers.state import ProducerState
from odradek.records.control import EndTransactionMarker
from tests.unit.log.support import NOW_MS, marker, transactional


def begin(producers: ProducerState, offset: int, producer_id: int = 7) -> None:
    """A transaction begins with the record at an offset."""
    (sent,) = transactional(0, producer_id=producer_id).batches
    producers.replay(sent._replace(base_offset=offset), None)


def commit(producers: ProducerState, offset: int, producer_id: int = 7) -> None:
    """Its marker stands at an offset."""
    (sent,) = marker(committed=True, producer_id=producer_id).batches
    end = Marker(EndTransactionMarker(True, 0), NOW_MS)
    completed = producers.replay(sent._replace(base_offset=offset), end)
    assert completed is not None
    producers.complete(completed)


def offsets(bounds: Bounds) -> tuple[int, int, int, int]:
    return bounds.log_start_offset, bounds.last_stable_offset, bounds.high_watermark, bounds.log_end_offset


@pytest.mark.parametrize(("checkpointed", "high_watermark"), [(0, 3), (3, 3), (5, 5), (9, 9), (12, 9)])
def test_a_checkpointed_high_watermark_is_brought_within_the_log(
    checkpointed: int, high_watermark: int
) -> None:
    assert Bounds(ProducerState(), 3, 9, checkpointed).high_watermark == high_watermark


def test_a_log_cannot_begin_behind_its_end() -> None:
    with pytest.raises(AssertionError, match="log start 5, last stable 4, high watermark 4, log end 4"):
        Bounds(ProducerState(), 5, 4, 0)


def test_the_high_watermark_moves_forward_up_to_the_log_end() -> None:
    bounds = Bounds(ProducerState(), 0, 9, 4)
    assert not bounds.advance_high_watermark(3) and bounds.high_watermark == 4
    assert not bounds.advance_high_watermark(4)
    assert bounds.advance_high_watermark(9)
    with pytest.raises(AssertionError, match="high watermark 10 beyond 9"):
        bounds.advance_high_watermark(10)
    assert offsets(bounds) == (0, 9, 9, 9)


def test_the_log_start_moves_forward_up_to_the_high_watermark() -> None:
    bounds = Bounds(ProducerState(), 2, 9, 4)
    bounds.advance_log_start(4)
    assert offsets(bounds) == (4, 4, 4, 9)
    with pytest.raises(AssertionError, match="log start 5, last stable 4"):
        bounds.advance_log_start(5)


def test_the_log_start_never_goes_back() -> None:
    bounds = Bounds(ProducerState(), 2, 9, 4)
    with pytest.raises(AssertionError, match="log start goes from 2 to 2"):
        bounds.advance_log_start(2)


def test_an_open_transaction_holds_the_last_stable_offset_back() -> None:
    producers = ProducerState()
    bounds = Bounds(producers, 0, 9, 4)
    begin(producers, 6)
    bounds.transactions_changed()
    assert offsets(bounds) == (0, 4, 4, 9)
    bounds.advance_high_watermark(9)
    assert offsets(bounds) == (0, 6, 9, 9)


def test_a_transaction_is_stable_once_its_marker_is_replicated() -> None:
    producers = ProducerState()
    bounds = Bounds(producers, 0, 9, 4)
    begin(producers, 2)
    commit(producers, 8)
    bounds.transactions_changed()
    bounds.advance_high_watermark(8)
    assert bounds.last_stable_offset == 2, "the marker is at 8: not replicated yet"
    bounds.advance_high_watermark(9)
    assert bounds.last_stable_offset == 9


def test_the_last_stable_offset_never_falls_below_the_log_start() -> None:
    producers = ProducerState()
    begin(producers, 2)
    bounds = Bounds(producers, 0, 9, 8)
    bounds.advance_log_start(5)
    assert offsets(bounds) == (5, 5, 8, 9)


@pytest.mark.parametrize(
    ("offset", "expected"),
    [(8, (3, 5, 5, 8)), (5, (3, 5, 5, 5)), (4, (3, 4, 4, 4)), (1, (1, 1, 1, 1))],
)
def test_a_truncation_takes_every_bound_with_it(offset: int, expected: tuple[int, int, int, int]) -> None:
    bounds = Bounds(ProducerState(), 3, 9, 5)
    bounds.truncate_to(offset)
    bounds.producers_reloaded()
    assert offsets(bounds) == expected
    assert bounds.truncations == 1


def test_a_truncation_cannot_make_a_log_longer() -> None:
    with pytest.raises(AssertionError):
        Bounds(ProducerState(), 0, 9, 5).truncate_to(10)


@pytest.mark.parametrize("offset", [0, 4, 100])
def test_a_log_that_restarts_is_empty_at_its_offset(offset: int) -> None:
    bounds = Bounds(ProducerState(), 3, 9, 5)
    bounds.restart_at(offset)
    bounds.producers_reloaded()
    assert offsets(bounds) == (offset,) * 4
    assert bounds.truncations == 1


def test_what_is_reloaded_after_a_truncation_counts() -> None:
    producers = ProducerState()
    bounds = Bounds(producers, 0, 9, 9)
    bounds.truncate_to(6)
    begin(producers, 4)
    bounds.producers_reloaded()
    assert offsets(bounds) == (0, 4, 6, 6)


def test_each_isolation_has_its_bound() -> None:
    producers = ProducerState()
    begin(producers, 2)
    bounds = Bounds(producers, 0, 9, 5)
    assert {isolation: bounds.of(isolation) for isolation in Isolation} == {
        Isolation.LOG_END: 9,
        Isolation.HIGH_WATERMARK: 5,
        Isolation.TXN_COMMITTED: 2,
    }


def test_a_transaction_that_ended_below_the_high_watermark_is_stable_after_a_reload() -> None:
    producers = ProducerState()
    bounds = Bounds(producers, 0, 9, 9)
    bounds.truncate_to(6)
    begin(producers, 2)
    commit(producers, 3)
    bounds.producers_reloaded()
    assert offsets(bounds) == (0, 6, 6, 6)
