"""The world that the cases of one worker share: to make it takes a second."""

from collections.abc import Iterator

import pytest

from tests.hostile.world import StagedWorld, staged_world


@pytest.fixture(scope="session")
def world() -> Iterator[StagedWorld]:
    with staged_world() as made:
        yield made
