"""The world that the cases of one worker share: to make it takes a second."""

from collections.abc import Iterator

import pytest

from tests.hostile.world import StagedWorld, staged_world


@pytest.fixture(scope="session")
def world() -> Iterator[StagedWorld]:
    with staged_world() as made:
        yield made


@pytest.fixture(autouse=True)
def loggers_as_before(request: pytest.FixtureRequest) -> Iterator[None]:
    """Loggers are the process's, and the world lives on: what a case did to their levels is undone."""
    yield
    if "world" in request.fixturenames:
        world: StagedWorld = request.getfixturevalue("world")
        world.stage.node.log_levels.restore()
