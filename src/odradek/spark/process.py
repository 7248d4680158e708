"""What a Python process of Spark keeps from one call to the next: connections, and what it has read.

Spark runs tasks, and commits, in worker processes that it uses again. They are forked, so everything here is
of one process.
"""

import os
from collections.abc import Callable, Hashable
from typing import Any

from odradek.client.blocking import BlockingClient
from odradek.spark.options import Connecting

_kept: dict[tuple[int, Hashable], Any] = {}


def kept(key: Hashable, make: Callable[[], Any]) -> Any:
    """What this process has under a key, made when it has nothing."""
    of_process = (os.getpid(), key)
    if of_process not in _kept:
        _kept[of_process] = make()
    return _kept[of_process]


def forget(key: Hashable) -> None:
    _kept.pop((os.getpid(), key), None)


def client_of(connecting: Connecting) -> BlockingClient:
    found: BlockingClient = kept(
        connecting,
        lambda: BlockingClient(
            connecting.bootstrap,
            client_id=connecting.client_id,
            request_timeout_ms=connecting.request_timeout_ms,
            api_timeout_ms=connecting.api_timeout_ms,
        ),
    )
    return found
