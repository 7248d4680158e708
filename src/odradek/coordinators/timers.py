"""Timers: deadlines by key, for a state machine without a clock. The owner of the clock calls `pop`.

Times are steady milliseconds. Every heartbeat postpones a deadline, so this only writes a dictionary. The
heap entry of the key is corrected when it reaches the top.
"""

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Timers(Generic[K]):
    __slots__ = ("_heap", "_keys", "_sequence")

    def __init__(self) -> None:
        self._keys: dict[K, tuple[int, int]] = {}  # deadline, and the number of the one valid heap entry
        self._heap: list[tuple[int, int, K]] = []
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: K) -> bool:
        return key in self._keys

    def schedule(self, key: K, deadline_ms: int) -> None:
        """Set the deadline of `key`, replacing the one it has."""
        known = self._keys.get(key)
        if known is not None and deadline_ms >= known[0]:
            self._keys[key] = (deadline_ms, known[1])
        else:
            self._push(key, deadline_ms)

    def cancel(self, key: K) -> None:
        self._keys.pop(key, None)

    def next_deadline_ms(self) -> int | None:
        """When to call `pop` next: at the first deadline or earlier."""
        heap, keys = self._heap, self._keys
        while heap:
            at, number, key = heap[0]
            known = keys.get(key)
            if known is not None and known[1] == number:
                return at
            heapq.heappop(heap)
        return None

    def pop(self, now_ms: int) -> K | None:
        """Remove and return the key with the earliest deadline that has passed, or None."""
        heap, keys = self._heap, self._keys
        while heap and heap[0][0] <= now_ms:
            at, number, key = heapq.heappop(heap)
            known = keys.get(key)
            if known is None or known[1] != number:
                continue
            if known[0] > at:
                self._push(key, known[0])
                continue
            del keys[key]
            return key
        return None

    def _push(self, key: K, deadline_ms: int) -> None:
        self._sequence += 1
        self._keys[key] = (deadline_ms, self._sequence)
        heapq.heappush(self._heap, (deadline_ms, self._sequence, key))
