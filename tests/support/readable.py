"""Waits for output of a process. `select.select` takes no descriptor above 1,023; a worker may have more."""

import select
from typing import IO, Any


def is_readable(stream: IO[Any], timeout_s: float) -> bool:
    """Whether something can be read, or the stream has ended, within the time."""
    poll = select.poll()
    poll.register(stream, select.POLLIN)
    return bool(poll.poll(max(0.0, timeout_s) * 1000))
