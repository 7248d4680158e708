"""No request, however it is made, gives one callback of the loop more than a slice of work."""

import pytest

from tests.hostile.cases import Case, all_cases, twenty_slices
from tests.hostile.world import StagedWorld


@pytest.mark.parametrize("case", list(all_cases()), ids=str)
def test_a_request_is_worked_off_in_slices(world: StagedWorld, case: Case) -> None:
    measured = twenty_slices(world, case)
    assert measured.answer_bytes or case.shape.is_malformed, f"the node hung up on {measured}"
    measured.check()
