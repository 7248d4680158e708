"""An event loop that does not go to sleep where the next event is about to come.

Between a request and the next one of a client that waits for its answer lie some tens of microseconds. To
sleep and be woken costs more than that, on a virtual machine several times as much, in latency and in CPU. So
the selector asks on for a moment before it sleeps, but only while nearly all of its waits are short: a node
that is idle, or asked now and then, sleeps at once.
"""

import asyncio
import select
import selectors
import time
from typing import Final

EAGER_S: Final = 100e-6
"""How long to ask on before sleeping."""
SHORT_S: Final = 300e-6
"""A wait with sleep that was no longer than this would have been cut short by asking on."""
_WORTH: Final = 4
_MOST: Final = 8
"""A short wait is worth one, up to so many; a long one costs what asking on must be worth."""


class EagerSelector(selectors.EpollSelector):
    """`select` as in its base; where nothing comes it may return EAGER_S later."""

    def __init__(self) -> None:
        super().__init__()
        self._credit = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return super().select(timeout)
        began = time.perf_counter()
        ready: list[tuple[selectors.SelectorKey, int]] = []
        if self._credit >= _WORTH:
            end = began + (EAGER_S if timeout is None else min(EAGER_S, timeout))
            while not ready and time.perf_counter() < end:
                ready = super().select(0)
        if not ready:
            ready = super().select(timeout)
        is_short = time.perf_counter() - began < SHORT_S
        self._credit = min(self._credit + 1, _MOST) if is_short else max(self._credit - _WORTH, 0)
        return ready


def new_event_loop() -> asyncio.AbstractEventLoop:
    """The loop of a node: eager where the system has epoll."""
    if hasattr(select, "epoll"):
        return asyncio.SelectorEventLoop(EagerSelector())
    return asyncio.new_event_loop()
