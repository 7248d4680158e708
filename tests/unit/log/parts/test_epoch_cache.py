"""The start and end offsets of leader epochs."""

import pytest

from odradek.log.parts.epoch_cache import EpochCache


def test_an_epoch_ends_where_the_next_one_begins() -> None:
    cache = EpochCache([(2, 0), (4, 10), (7, 25)])
    assert cache.end_offset_for(7, 40) == (7, 40)
    assert cache.end_offset_for(4, 40) == (4, 25)
    assert cache.end_offset_for(5, 40) == (4, 25)
    assert cache.end_offset_for(1, 40) == (1, 0)
    assert cache.end_offset_for(8, 40) == (-1, -1)
    assert cache.end_offset_for(-1, 40) == (-1, -1)
    assert EpochCache().end_offset_for(0, 40) == (-1, -1)


def test_a_known_epoch_keeps_its_start() -> None:
    cache = EpochCache([(2, 5)])
    cache.assign(2, 9)
    assert cache.entries == [(2, 5)]
    assert cache.version == 0


def test_an_epoch_without_records_gives_way_to_the_next() -> None:
    cache = EpochCache([(0, 0)])
    cache.assign(1, 98)
    cache.assign(2, 98)
    assert cache.entries == [(0, 0), (2, 98)]
    assert cache.version > 0


def test_entries_that_a_new_one_contradicts_are_dropped() -> None:
    cache = EpochCache([(0, 0), (3, 10), (5, 20)])
    cache.assign(4, 15)
    assert cache.entries == [(0, 0), (3, 10), (4, 15)]


def test_truncation_from_the_end_forgets_epochs_that_begin_there_or_later() -> None:
    cache = EpochCache([(0, 0), (3, 10), (5, 20)])
    cache.truncate_from_end(10)
    assert (cache.entries, cache.latest) == ([(0, 0)], 0)


def test_truncation_from_the_start_keeps_the_epoch_that_goes_on() -> None:
    cache = EpochCache([(0, 0), (3, 10), (5, 20)])
    cache.truncate_from_start(15)
    assert cache.entries == [(3, 15), (5, 20)]
    cache.truncate_from_start(15)
    assert cache.entries == [(3, 15), (5, 20)]
    cache.truncate_from_start(99)
    assert cache.entries == [(5, 99)]


def test_an_epoch_cannot_begin_nowhere() -> None:
    with pytest.raises(ValueError, match="cannot begin"):
        EpochCache().assign(-1, 0)


def test_the_first_epoch_may_be_the_one_that_goes_on() -> None:
    cache = EpochCache([(3, 10), (5, 20)])
    assert cache.version == 0
    cache.truncate_from_start(15)
    assert (cache.entries, cache.earliest) == ([(3, 15), (5, 20)], (3, 15))
    assert cache.version == 1
    cache.truncate_from_start(15)
    cache.truncate_from_start(9)
    assert cache.version == 1, "nothing has changed"
