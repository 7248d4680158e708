"""What all tests of units share."""

import gc
import logging
import os
from collections.abc import Iterator

import pytest

_MANY = 400
"""Descriptors. Some programs of the standard library cannot take one above 1,024."""
_MORE = 200


class _Descriptors:
    """How many may be open before the collector looks for those that nobody holds."""

    allowed = _MANY


@pytest.fixture(autouse=True)
def _level_kept() -> Iterator[None]:
    """The log level of the process belongs to all tests."""
    before = logging.getLogger().level
    yield
    assert logging.getLogger().level == before


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """A log that a test leaves open keeps its files until the collector finds it.

    Those that it does not find are in use: to look for them after every test took a third of the whole time.
    """
    if _open() > _Descriptors.allowed:
        gc.collect()
        _Descriptors.allowed = max(_MANY, _open() + _MORE)


def _open() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
