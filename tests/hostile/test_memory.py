"""A request takes at most a stated multiple of its bytes in memory, while it is worked off and after."""

import tracemalloc

import pytest

from tests.hostile.cases import Case, newest_cases
from tests.hostile.limits import MEMORY_MULTIPLE, MEMORY_SLACK
from tests.hostile.world import StagedWorld

REQUEST_BYTES = 12 << 10
KINDS = ("repeated", "null", "empty")


@pytest.mark.parametrize("case", [c for c in newest_cases() if c.shape.kind in KINDS], ids=str)
def test_a_request_takes_a_bounded_multiple_of_its_bytes(world: StagedWorld, case: Case) -> None:
    """What a request makes stay, a topic with all its partitions, is not counted: it makes none here."""
    stage, case = world.stage, case._replace(given={"validate_only": True})
    with stage.client() as client:
        stage.ask(client, case.frame(world, client, 1))  # whatever is made once
        stage.wait_until_idle()
    with stage.client() as client:
        frame = case.frame_of(world, client, REQUEST_BYTES)
        tracemalloc.start()
        try:
            stage.ask(client, frame)
            stage.wait_until_idle()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    multiple = max(peak - MEMORY_SLACK, 0) / len(frame)
    print(f"{case}: {len(frame):,} bytes took {peak:,}, {multiple:.0f} for each")
    assert multiple <= MEMORY_MULTIPLE, f"{multiple:.0f} bytes for each byte of {case}, {peak:,} in all"
