"""What a small request costs in Python calls. The figures do not depend on the machine."""

import asyncio

from tests.support.calls import count_calls

# Counted before long requests were sliced. None may cost more than 2 % more for it.
BEFORE = {"produce": 53, "fetch": 89, "heartbeat": 64, "offset_commit": 115}


def test_small_requests_pay_nothing_for_the_slicing_of_long_ones() -> None:
    counts = asyncio.run(count_calls())
    assert {name: count for name, count in counts.items() if count > 1.02 * BEFORE[name]} == {}
