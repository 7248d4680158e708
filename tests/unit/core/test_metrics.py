"""The counters of core/metrics.py: buckets, quantiles and windows."""

import pytest

from odradek.core.metrics import STALL_BOUNDS_US, WINDOW_MS, Metrics, RequestMetrics, StallMetrics


@pytest.mark.parametrize("elapsed_us", [1, 3, 4, 7, 8, 100, 999, 12_345, 1_000_000, 70_000_000])
def test_a_quantile_is_at_most_an_eighth_off(elapsed_us):
    stats = RequestMetrics()
    stats.observe(9, elapsed_us)
    assert stats.quantile_us(0.5) == pytest.approx(elapsed_us, rel=0.125)


def test_quantiles_rank_what_was_observed():
    stats = RequestMetrics()
    for elapsed_us in range(1, 1001):
        stats.observe(0, elapsed_us)
    assert stats.quantile_us(0.5) == pytest.approx(500, rel=0.13)
    assert stats.quantile_us(0.99) == pytest.approx(990, rel=0.13)
    assert (stats.count, stats.total_us, stats.versions) == (1000, 500_500, {0: 1000})


def test_an_api_never_asked_has_no_quantile():
    assert RequestMetrics().quantile_us(0.5) is None


def test_quantiles_forget_after_two_windows_but_counts_do_not():
    stats = RequestMetrics()
    stats.roll(WINDOW_MS)
    stats.observe(0, 5)
    stats.roll(2 * WINDOW_MS)
    assert stats.quantile_us(0.5) == pytest.approx(5, rel=0.13)
    stats.roll(3 * WINDOW_MS)
    assert stats.quantile_us(0.5) is None
    assert stats.count == 1


def test_what_came_before_the_first_look_is_seen_by_it():
    stats = RequestMetrics()
    stats.observe(0, 5)
    stats.roll(1_700_000_000_000)
    assert stats.quantile_us(0.5) == pytest.approx(5, rel=0.13)


def test_a_window_that_nobody_scraped_for_long_is_dropped():
    stats = RequestMetrics()
    stats.roll(WINDOW_MS)
    stats.observe(0, 5)
    stats.roll(10 * WINDOW_MS)
    assert stats.quantile_us(0.5) is None


def test_a_stall_counts_in_the_first_bound_that_holds_it():
    stalls = StallMetrics()
    stalls.observe(STALL_BOUNDS_US[0])
    stalls.observe(STALL_BOUNDS_US[0] + 1)
    stalls.observe(STALL_BOUNDS_US[-1] + 1)
    assert stalls.counts == [1, 1, *[0] * (len(STALL_BOUNDS_US) - 2), 1]
    assert stalls.count == 3


def test_the_same_name_gives_the_same_counters():
    metrics = Metrics()
    assert metrics.topic("t") is metrics.topic("t")
    assert metrics.request(0) is metrics.request(0)
