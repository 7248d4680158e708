"""What every test of a part starts from."""

from pathlib import Path

import pytest

from tests.unit.log.parts.support import Parts
from tests.unit.log.support import LogRuntime


@pytest.fixture
def runtime() -> LogRuntime:
    return LogRuntime()


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    return Parts(tmp_path)
