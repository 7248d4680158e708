"""What every test of the log starts from."""

import pytest

from tests.unit.log.support import LogRuntime


@pytest.fixture
def runtime() -> LogRuntime:
    return LogRuntime()
