"""Each client in turn."""

import pytest

from tests.compat.clients import CLIENTS, Client


@pytest.fixture(params=CLIENTS, ids=lambda c: c.name)
def client(request: pytest.FixtureRequest) -> Client:
    found: Client = request.param
    return found
