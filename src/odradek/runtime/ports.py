"""Finds free ports for nodes that must keep their address over a restart."""

import contextlib
import random
import socket

_FIRST, _LAST = 12_000, 32_000
"""Below the ports of outgoing connections, which other programs take at any time."""


def free_port() -> int:
    """A random port that no program of this machine listens on."""
    while True:
        port = random.SystemRandom().randrange(_FIRST, _LAST)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
