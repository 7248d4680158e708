"""Followers: what a leader knows of all replicas of its partition but itself, in one leader epoch."""

from collections.abc import Iterable

from odradek.replication.context import LeaderContext
from odradek.replication.progress import NEVER_MS, NO_BROKER_EPOCH, FollowerProgress


class Followers:
    """`in_sync` are those of the maximal ISR, `outside` are others that fetch. All others are silent."""

    __slots__ = ("_by_id", "_context", "in_sync", "outside")

    def __init__(self, context: LeaderContext) -> None:
        self._context = context
        self._by_id: dict[int, FollowerProgress] = {}
        self.in_sync: tuple[FollowerProgress, ...] = ()
        self.outside: tuple[FollowerProgress, ...] = ()

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, broker_id: int) -> FollowerProgress | None:
        return self._by_id.get(broker_id)

    def assign(self, broker_ids: Iterable[int], isr: tuple[int, ...]) -> None:
        """The assignment has changed. Members of the ISR that were not known get time to fetch."""
        known, now_ms = self._by_id, NEVER_MS
        self._by_id = {}
        for broker_id in broker_ids:
            follower = known.get(broker_id)
            if follower is None:
                if now_ms == NEVER_MS and broker_id in isr:
                    now_ms = self._context.now_ms()
                follower = FollowerProgress(broker_id, now_ms if broker_id in isr else NEVER_MS)
            self._by_id[broker_id] = follower

    def divide(self, maximal: Iterable[int]) -> None:
        """The maximal ISR has changed, or time has passed."""
        self.in_sync = tuple(self._by_id[id_] for id_ in maximal if id_ in self._by_id)
        self.outside = tuple(
            f for f in self._by_id.values() if f not in self.in_sync and self._is_fetching(f)
        )

    def _is_fetching(self, follower: FollowerProgress) -> bool:
        return self._context.now_ms() - follower.fetch_ms <= self._context.max_lag_ms

    def lagging(self, leader_end_offset: int) -> tuple[int, ...]:
        """Those in sync that neither have all of the leader's log nor had it within the allowed time."""
        context = self._context
        now_ms, max_lag_ms = context.now_ms(), context.max_lag_ms
        return tuple(
            f.broker_id for f in self.in_sync if not f.is_caught_up(leader_end_offset, now_ms, max_lag_ms)
        )

    def may_join(self, follower: FollowerProgress, leader_end_offset: int) -> bool:
        """Whether one outside keeps up and is eligible: it may be in the ISR any moment."""
        context = self._context
        is_caught_up = follower.is_caught_up(leader_end_offset, context.now_ms(), context.max_lag_ms)
        return is_caught_up and context.is_eligible(follower)

    def low_watermark(self, leader_start_offset: int) -> int:
        """The smallest log start of the replicas that are alive; -1 if one of them has not fetched yet."""
        offset = leader_start_offset
        for follower in self._by_id.values():
            if follower.log_start_offset < offset and self._context.is_alive(follower.broker_id):
                offset = follower.log_start_offset
        return offset

    def broker_epoch(self, broker_id: int) -> int:
        """That of the last fetch."""
        follower = self._by_id.get(broker_id)
        return NO_BROKER_EPOCH if follower is None else follower.broker_epoch
