"""An event loop that polls for a moment before it sleeps, while events come in quick succession.

A client that waits for each answer sends its next request after some tens of microseconds. Sleeping and
waking up costs more than that in latency and in CPU, on a virtual machine several times as much. So the
selector polls before it sleeps, but only while nearly all of its waits are short. An idle node sleeps at
once.
"""

import asyncio
import select
import selectors
import time
from typing import Final

EAGER_S: Final = 100e-6
"""How long to poll before sleeping."""
SHORT_S: Final = 300e-6
"""A wait shorter than this counts as short: polling would have saved the sleep."""
_WORTH: Final = 4
_MOST: Final = 8
"""Credit: +1 for a short wait (at most _MOST), -_WORTH for a long one; poll while it is at least _WORTH."""


class EagerSelector(selectors.EpollSelector):
    """`select` as in its base class. Without an event it may return EAGER_S later."""

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
    """The loop of a node: with an EagerSelector if the system has epoll."""
    if hasattr(select, "epoll"):
        return asyncio.SelectorEventLoop(EagerSelector())
    return asyncio.new_event_loop()
