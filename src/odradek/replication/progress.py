"""FollowerProgress: what a leader knows of one follower in one leader epoch. Pure.

Times are those of a clock that never goes back.
"""

from typing import Final

UNKNOWN_OFFSET: Final = -1
NO_BROKER_EPOCH: Final = -1
"""Sent by followers that know no broker epoch: before Fetch v15."""
NEVER_MS: Final = -(1 << 62)


class FollowerProgress:
    """A follower, from its fetches. `caught_up_ms` is the last time at which it had all of the leader's log.

    A leader that was just elected has heard of no follower. It gives the members of the ISR time to fetch:
    they count as caught up now, all others never.
    """

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "caught_up_ms",
        "fetch_ms",
        "leader_end_offset",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: int, caught_up_ms: int = NEVER_MS) -> None:
        self.broker_id = broker_id
        self.broker_epoch = NO_BROKER_EPOCH
        self.caught_up_ms = caught_up_ms
        self._forget()

    def _forget(self) -> None:
        self.log_start_offset = self.log_end_offset = UNKNOWN_OFFSET
        self.leader_end_offset = UNKNOWN_OFFSET  # of the leader's log, at the last fetch
        self.fetch_ms = NEVER_MS

    @property
    def is_heard(self) -> bool:
        """Whether it has fetched in this leader epoch."""
        return self.log_end_offset != UNKNOWN_OFFSET

    def is_outdated(self, broker_epoch: int) -> bool:
        """Whether a fetch was sent before the follower's last restart."""
        return NO_BROKER_EPOCH != broker_epoch < self.broker_epoch

    def record(
        self, fetch_offset: int, log_start_offset: int, broker_epoch: int, leader_end_offset: int, now_ms: int
    ) -> None:
        """The follower fetches from `fetch_offset`: it has all records below.

        A fetch at the log end catches up now. A fetch that reaches what was the log end at the last fetch
        caught up then: a follower of a busy leader is always a few records behind.
        """
        assert 0 <= fetch_offset <= leader_end_offset
        assert not self.is_outdated(broker_epoch)
        assert now_ms >= self.fetch_ms, "the clock never goes back"
        if NO_BROKER_EPOCH != self.broker_epoch < broker_epoch:  # restarted: it may have lost records
            self._forget()
            self.caught_up_ms = NEVER_MS
        if fetch_offset >= leader_end_offset:
            self.caught_up_ms = now_ms
        elif fetch_offset >= self.leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, self.fetch_ms)
        self.log_start_offset = log_start_offset
        self.log_end_offset = fetch_offset
        self.leader_end_offset = leader_end_offset
        self.fetch_ms = now_ms
        self.broker_epoch = broker_epoch

    def is_caught_up(self, leader_end_offset: int, now_ms: int, max_lag_ms: int) -> bool:
        """Whether it has all of the leader's log, or had it within the allowed time."""
        return self.log_end_offset == leader_end_offset or now_ms - self.caught_up_ms <= max_lag_ms
