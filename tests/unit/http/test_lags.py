"""The age of an offset, from the ends that scrapes saw."""

from odradek.http.lags import Timeline


def timeline(*points):
    line = Timeline()
    for now_ms, end_offset in points:
        line.record(now_ms, end_offset)
    return line


def test_an_age_is_interpolated_between_two_scrapes():
    assert timeline((1000, 0), (2000, 100)).age_ms(5000, 50) == 3500


def test_an_offset_older_than_all_scrapes_is_extrapolated():
    assert timeline((1000, 100), (2000, 200)).age_ms(2000, 0) == 2000


def test_one_scrape_or_a_log_at_rest_says_nothing():
    assert timeline((1000, 100)).age_ms(2000, 50) is None
    assert timeline((1000, 100), (2000, 100)).age_ms(2000, 50) is None


def test_a_log_at_rest_keeps_when_it_came_to_rest():
    line = timeline((1000, 0), (2000, 100), *((t, 100) for t in range(3000, 9000, 10)))
    assert line.age_ms(9000, 50) == 7500
    line.record(10_000, 200)
    assert line.age_ms(10_000, 99) == 8010


def test_a_log_that_was_cut_back_starts_anew():
    assert timeline((1000, 0), (2000, 100), (3000, 10)).age_ms(3000, 5) is None


def test_an_age_is_never_negative():
    assert timeline((1000, 0), (2000, 100)).age_ms(1500, 99) == 0
