"""What a replica of the quorum counts of its work, as Apache Kafka's raft-metrics do. Numbers only; pure.

Averages, maxima and rates are over the last half to whole minute: a window of 30 s and the one before it.
Without anything in them an average and a maximum are NaN, as in Apache Kafka.
"""

import math
from collections import deque
from typing import Final

from odradek.raft.roles import Candidate, Prospective, Role

WINDOW_MS: Final = 30_000
_MOST_WAITING: Final = 10_000


class Recent:
    """Values of the last two windows: how many, their sum, the largest."""

    __slots__ = ("_current", "_previous", "_since_ms", "_start_ms")

    def __init__(self) -> None:
        self._start_ms = self._since_ms = -2 * WINDOW_MS
        self._current: tuple[int, float, float] = (0, 0.0, -math.inf)
        self._previous = self._current

    def add(self, value: float, now_ms: int) -> None:
        self._roll(now_ms)
        count, total, largest = self._current
        self._current = (count + 1, total + value, max(largest, value))

    def average(self, now_ms: int) -> float:
        self._roll(now_ms)
        count = self._current[0] + self._previous[0]
        return (self._current[1] + self._previous[1]) / count if count else math.nan

    def maximum(self, now_ms: int) -> float:
        self._roll(now_ms)
        largest = max(self._current[2], self._previous[2])
        return math.nan if largest == -math.inf else largest

    def per_second(self, now_ms: int) -> float:
        """The sum by the time that it covers; a replica that has just begun is not said to be in a hurry."""
        self._roll(now_ms)
        seconds = max(now_ms - self._since_ms, WINDOW_MS) / 1000
        return (self._current[1] + self._previous[1]) / seconds

    def _roll(self, now_ms: int) -> None:
        age_ms = now_ms - self._start_ms
        if age_ms < WINDOW_MS:
            return
        nothing = (0, 0.0, -math.inf)
        self._previous = self._current if age_ms < 2 * WINDOW_MS else nothing
        self._current = nothing
        self._since_ms = self._start_ms if age_ms < 2 * WINDOW_MS else now_ms
        self._start_ms = now_ms


class RaftMetrics:
    """The driver reports; http/ reads. All times are the machine's."""

    __slots__ = (
        "_election_ms",
        "_uncommitted",
        "appended",
        "busy_ms",
        "commits",
        "elections",
        "fetched",
        "leader",
        "new_leaders",
    )

    def __init__(self) -> None:
        self.appended, self.fetched, self.commits = Recent(), Recent(), Recent()
        self.elections, self.busy_ms = Recent(), Recent()
        self.new_leaders = 0
        self.leader: tuple[int, int] | None = None
        self._election_ms: int | None = None
        # Where batches end that this leader appended, and when it did.
        self._uncommitted: deque[tuple[int, int]] = deque(maxlen=_MOST_WAITING)

    def append(self, records: int, end_offset: int, now_ms: int) -> None:
        """As the leader."""
        self.appended.add(records, now_ms)
        self._uncommitted.append((end_offset, now_ms))

    def fetch(self, records: int, now_ms: int) -> None:
        """From the leader."""
        self.fetched.add(records, now_ms)

    def commit(self, high_watermark: int, now_ms: int) -> None:
        waiting = self._uncommitted
        while waiting and waiting[0][0] <= high_watermark:
            self.commits.add(now_ms - waiting.popleft()[1], now_ms)

    def become(self, role: Role, now_ms: int) -> None:
        """An election lasts from the first question for pre-votes until there is a leader."""
        self._uncommitted.clear()
        if role.leader_id >= 0 and not isinstance(role, Prospective):
            if self.leader != (role.epoch, role.leader_id):
                self.leader = (role.epoch, role.leader_id)
                self.new_leaders += 1
            if self._election_ms is not None:
                self.elections.add(now_ms - self._election_ms, now_ms)
                self._election_ms = None
        elif isinstance(role, Prospective | Candidate) and self._election_ms is None:
            self._election_ms = now_ms

    def idle_ratio(self, now_ms: int) -> float:
        """The share of time in which this replica had nothing to decide, write or send."""
        return max(0.0, 1.0 - self.busy_ms.per_second(now_ms) / 1000)
