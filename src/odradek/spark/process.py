"""What a Python process of Spark keeps from one call to the next: connections, and what it has read.

Spark runs tasks, and commits, in worker processes that it uses again. They are forked, so everything here is
of one process.
"""

import gc
import os
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

from odradek.client.blocking import BlockingClient
from odradek.spark.options import Connecting

_kept: dict[tuple[int, Hashable], Any] = {}
_calls: dict[int, int] = {}


def kept(key: Hashable, make: Callable[[], Any]) -> Any:
    """What this process has under a key, made when it has nothing."""
    of_process = (os.getpid(), key)
    if of_process not in _kept:
        _kept[of_process] = make()
    return _kept[of_process]


def freeze_what_is_loaded() -> None:
    """At the beginning of every call. Spark's workers collect garbage after each, and looking at all that is
    loaded took 20 ms of it, four times a micro-batch: it is set aside, once the first call has loaded it."""
    process = os.getpid()
    _calls[process] = _calls.get(process, 0) + 1
    if _calls[process] == 2:
        gc.collect()
        gc.freeze()


def forget(key: Hashable) -> None:
    _kept.pop((os.getpid(), key), None)


class UnreachableError(ConnectionError):
    """The cluster did not answer for as long as it was to be waited for."""


@contextmanager
def reaching(connecting: Connecting) -> Iterator[None]:
    """Tell who was waited for, and by which settings."""
    try:
        yield
    except UnreachableError:
        raise
    except OSError as e:
        raise UnreachableError(
            f"the cluster at {connecting.bootstrap} did not answer within the configured timeouts "
            f"(kafka.default.api.timeout.ms={connecting.api_timeout_ms}, "
            f"kafka.delivery.timeout.ms={connecting.delivery_timeout_ms}): {e}. Nothing is lost: start the "
            "query again when the cluster is back"
        ) from e


def client_of(connecting: Connecting) -> BlockingClient:
    found: BlockingClient = kept(
        connecting,
        lambda: BlockingClient(
            connecting.bootstrap,
            client_id=connecting.client_id,
            request_timeout_ms=connecting.request_timeout_ms,
            api_timeout_ms=connecting.api_timeout_ms,
            retry_backoff_ms=connecting.retry_backoff_ms,
            retry_backoff_max_ms=connecting.retry_backoff_max_ms,
        ),
    )
    return found
