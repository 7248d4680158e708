"""Spark's workers get what they are to do and what they are to do it with in two small writes, over TCP, with
Nagle's algorithm: the second is held back until the first is acknowledged, which a kernel does after 40 ms
unless it is asked. That is a quarter of a small micro-batch, and more than all of its reading and writing.

(Spark's own way around it is spark.python.unix.domain.socket.enabled, which is off unless set.)
"""

import os
import socket
import sys
from pathlib import Path
from typing import Any

_OPEN_FILES = Path("/proc/self/fd")


class SentToTasks:
    """Of what Spark pickles: it acknowledges its own arrival."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        acknowledge()


def acknowledge() -> None:
    """Whatever this process has got over TCP, now. Where that cannot be asked for, nothing."""
    if sys.platform != "linux":
        return
    for entry in os.listdir(_OPEN_FILES):
        try:
            if not os.readlink(_OPEN_FILES / entry).startswith("socket:"):
                continue
            looked_at = socket.socket(fileno=int(entry))
        except OSError:
            continue  # closed meanwhile
        try:
            if looked_at.family in (socket.AF_INET, socket.AF_INET6) and looked_at.type == socket.SOCK_STREAM:
                looked_at.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        except OSError:
            pass
        finally:
            looked_at.detach()
