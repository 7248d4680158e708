"""When a node is ready, and what it says is wrong with it."""

from types import SimpleNamespace
from typing import Any

from odradek.broker.health import Health


def test_the_first_failure_that_is_found_is_the_trouble() -> None:
    recovery = SimpleNamespace(logs=0)
    first, second = SimpleNamespace(failure=None), SimpleNamespace(failure=None)
    logs: Any = SimpleNamespace(recovery=recovery, directories=[first, second])
    raft: Any = SimpleNamespace(failure=None)
    loader: Any = SimpleNamespace(failure=None)
    health = Health(logs)
    assert (health.is_ready, health.trouble()) == (False, "starting")
    health.started(raft, loader)
    assert health.is_ready
    assert health.trouble() is None
    loader.failure = OSError("the metadata log cannot be replayed")
    assert health.trouble() == "the metadata log cannot be replayed"
    raft.failure = OSError("the metadata log is gone")
    assert health.trouble() == "the metadata log is gone"
    second.failure = OSError("a disk is gone")
    assert health.trouble() == "a disk is gone"
