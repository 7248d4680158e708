"""What all simulations share."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def only_what_is_simulated_is_collected() -> Iterator[None]:
    """A node that stops has the collector look for what it left open: not among all that the tests hold."""
    gc.freeze()
    yield
    gc.unfreeze()
