"""No request, however it is made, gives one callback of the loop more than a slice of work."""

import pytest

from odradek.wire.api_keys import ApiKey
from tests.hostile.cases import Case, all_cases, twenty_slices
from tests.hostile.shapes import Shape
from tests.hostile.world import StagedWorld

OF_LOGGERS = {"resource_type": 8, "resource_name": "1"}
LOGGERS = [
    Case(ApiKey.DESCRIBE_CONFIGS, 4, Shape("many", ("resources", "configuration_keys")), OF_LOGGERS),
    Case(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, Shape("many", ("resources", "configs")), OF_LOGGERS),
]


@pytest.mark.parametrize("case", list(all_cases()), ids=str)
def test_a_request_is_worked_off_in_slices(world: StagedWorld, case: Case) -> None:
    measured = twenty_slices(world, case)
    assert measured.answer_bytes or case.shape.is_malformed, f"the node hung up on {measured}"
    measured.check()


@pytest.mark.parametrize("case", LOGGERS, ids=str)
def test_many_names_of_loggers_are_looked_for_in_slices(world: StagedWorld, case: Case) -> None:
    measured = twenty_slices(world, case)
    assert measured.answer_bytes
    measured.check()
