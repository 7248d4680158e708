"""How idle the event loop is, from the processor time of its thread: nothing is measured between scrapes."""

import time
from collections import deque


class Idle:
    """How much of the time the loop's thread had nothing to do, seen from scrape to scrape.

    Made, and asked, on that thread. A thread that waits for the disk counts as idle: what that costs others
    is in odradek_loop_stall_seconds.
    """

    WINDOW_S = 60.0

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque([(time.monotonic(), time.thread_time())])

    def share(self) -> float:
        """Between 0 and 1, since the last scrape that is a minute old; at first, since the start."""
        now_s, busy_s = time.monotonic(), time.thread_time()
        while len(self._seen) > 1 and now_s - self._seen[1][0] >= self.WINDOW_S:
            self._seen.popleft()
        began_s, was_busy_s = self._seen[0]
        if now_s - self._seen[-1][0] >= 1:  # not one for each of many scrapes
            self._seen.append((now_s, busy_s))
        return max(0.0, min(1.0, 1 - (busy_s - was_busy_s) / max(now_s - began_s, 1e-9)))
