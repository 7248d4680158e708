"""Coordinators for the tests beside this file; each is closed, and has left no error unhandled."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.unit.coordinators.transactions.harness import Harness


@pytest.fixture
def new() -> Iterator[Callable[..., Harness]]:
    made: list[Harness] = []

    def build(**fields: Any) -> Harness:
        made.append(Harness(**fields))
        return made[-1]

    yield build
    for harness in made:
        harness.close()


@pytest.fixture
def h(new: Callable[..., Harness]) -> Harness:
    return new()
