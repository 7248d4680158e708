"""All cleaning together keeps to a rate."""

import pytest

from odradek.log.cleaning.throttle import Throttle


def test_bytes_are_paid_for_in_time() -> None:
    throttle = Throttle(1000)
    assert throttle.wait_s(500, now=10.0) == 0.5
    assert throttle.wait_s(500, now=10.0) == 1.0
    assert throttle.wait_s(100, now=20.0) == pytest.approx(0.1)


def test_without_a_limit_nobody_waits() -> None:
    assert Throttle(1.7976931348623157e308).wait_s(1 << 40, now=5.0) < 1e-9


def test_pieces_are_as_small_as_the_rate_asks_for() -> None:
    assert Throttle(1000).budget_bytes(1 << 20, 0.1) == 100
    assert Throttle(1e300).budget_bytes(1 << 20, 0.1) == 1 << 20
    assert Throttle(0.5).budget_bytes(1 << 20, 0.1) == 1
