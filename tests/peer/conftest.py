"""What tests beside Apache Kafka share."""

import os

import pytest

from tests.support.peer_tools import Tools, shared

# Minutes of kills on both sides: `make soak-replication` runs it.
collect_ignore = [] if "ODRADEK_SOAK_MIXED_ROUNDS" in os.environ else ["test_mixed_replication.py"]


@pytest.fixture(scope="session")
def tools() -> Tools:
    """Apache Kafka's tools, in one JVM for all tests of this worker."""
    return shared()
