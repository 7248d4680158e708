"""What all tests of units share."""

import gc
import os

import pytest

_MANY = 400
"""Descriptors. Some programs of the standard library cannot take one above 1,024."""


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """A log that a test leaves open keeps its files until the collector finds it."""
    if os.path.isdir("/proc/self/fd") and len(os.listdir("/proc/self/fd")) > _MANY:
        gc.collect()
