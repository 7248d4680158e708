"""What tests beside Apache Kafka share."""

from collections.abc import Iterator

import pytest

from tests.support.peer_tools import Tools


@pytest.fixture(scope="session")
def tools() -> Iterator[Tools]:
    """Apache Kafka's tools, in one JVM for all tests of this worker."""
    started = Tools()
    yield started
    started.close()
