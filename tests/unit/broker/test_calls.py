"""What small requests cost, in counts that do not depend on the machine: benchmarks/counts.json has them."""

import json
import platform

from tests.counts.main import COUNTS, measured

# Counted before long requests were sliced. None may cost more than 2 % more for it.
BEFORE_SLICES = {"produce": 53, "fetch": 89, "heartbeat": 64, "offset_commit": 115}
ALLOWED = 1.05


def test_small_requests_cost_what_they_did() -> None:
    held = json.loads(COUNTS.read_text())
    same_python = held["python"].split(".")[:2] == platform.python_version().split(".")[:2]
    found = measured()
    assert set(found) == set(held["loads"])
    more = {
        f"{load}: {kind}": (cost, held["loads"][load][kind])
        for load, costs in found.items()
        for kind, cost in costs.items()
        if cost > ALLOWED * held["loads"][load][kind] and (same_python or kind != "allocations")
    }
    assert more == {}, "make counts writes the figures down, where they have to rise"
    calls = {load: costs["calls"] for load, costs in found.items()}
    assert {load: calls[load] for load, before in BEFORE_SLICES.items() if calls[load] > 1.02 * before} == {}
