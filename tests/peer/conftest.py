"""What tests beside Apache Kafka share."""

import pytest

from tests.support.peer_tools import Tools, shared


@pytest.fixture(scope="session")
def tools() -> Tools:
    """Apache Kafka's tools, in one JVM for all tests of this worker."""
    return shared()
