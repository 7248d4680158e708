"""Ports for nodes that are to come back under the same address."""

import contextlib
import random
import socket

_FIRST, _LAST = 12_000, 32_000
"""Below those that outgoing connections are given: one of these is soon somebody else's."""


def free_port() -> int:
    """A port of this machine that nobody listens on, another one each time."""
    while True:
        port = random.SystemRandom().randrange(_FIRST, _LAST)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
