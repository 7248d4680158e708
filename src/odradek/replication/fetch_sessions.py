"""Incremental fetch sessions (KIP-227): a client need not repeat the partitions that it fetches. Pure.

A session has the partitions of a client's full fetch, and the last answer for each. An incremental fetch
names only changed partitions, and its answer has only partitions with changes. It reads only those that are
dirty: named by the client, or changed since they were read. So idle partitions cost nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import NamedTuple
from uuid import UUID

from odradek.core.errors import ErrorCode, KafkaError
from odradek.log.log import Isolation
from odradek.replication.waiters import FetchWaiters, FetchWatch
from odradek.runtime.slices import FEW, Paced

INVALID_SESSION_ID = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
MAX_EPOCH = (1 << 31) - 1
EVICTION_MS = 120_000
PROGRESS_MS = 1_000
"""How often the progress of a follower is recorded for its idle partitions, too."""
_AT_A_TIME = 16


class PartitionKey(NamedTuple):
    """A partition as the client names it: by topic id since Fetch v13, by name before."""

    topic: str | UUID
    partition: int


GONE = -1
"""The turn of a partition that a session has forgotten."""


class PartitionFetch:
    """The client's request for one partition, and the last answer."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "key",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "sent_error",
        "sent_high_watermark",
        "sent_log_start_offset",
        "turn",
        "watched",
    )

    def __init__(
        self,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
    ) -> None:
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.sent_high_watermark = -1
        self.sent_log_start_offset = -1
        self.sent_error = False
        self.key: PartitionKey  # in a session
        self.turn = 0  # the order in which the partitions of a session are read
        self.watched: FetchWaiters | None = None  # of the partition that was read last

    def take(self, wanted: "PartitionFetch") -> None:
        """Update the request. The last answer stays."""
        self.fetch_offset = wanted.fetch_offset
        self.max_bytes = wanted.max_bytes
        self.current_leader_epoch = wanted.current_leader_epoch
        self.last_fetched_epoch = wanted.last_fetched_epoch
        self.log_start_offset = wanted.log_start_offset

    def has_news(self, size: int, error: bool, high_watermark: int, log_start_offset: int) -> bool:
        """Whether an incremental answer must include this partition. An error is repeated until it ends."""
        return (
            size > 0
            or error
            or self.sent_error
            or high_watermark != self.sent_high_watermark
            or log_start_offset != self.sent_log_start_offset
        )

    def told(self, error: bool, high_watermark: int, log_start_offset: int) -> None:
        self.sent_error = error
        self.sent_high_watermark = high_watermark
        self.sent_log_start_offset = log_start_offset


_TURN = attrgetter("turn")


class FetchSession:
    """One client's session: its partitions, and in `watch` which of them are dirty."""

    __slots__ = (
        "_last_turn",
        "created_ms",
        "epoch",
        "id",
        "last_used_ms",
        "partitions",
        "privileged",
        "recorded_ms",
        "uses_topic_ids",
        "watch",
    )

    def __init__(
        self,
        session_id: int,
        partitions: dict[PartitionKey, PartitionFetch],
        now_ms: int,
        privileged: bool,
        uses_topic_ids: bool,
        isolation: Isolation = Isolation.HIGH_WATERMARK,
    ) -> None:
        assert session_id != INVALID_SESSION_ID and partitions
        self.id = session_id
        self.epoch = 1
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.privileged = privileged
        self.uses_topic_ids = uses_topic_ids
        self.partitions = partitions
        self.recorded_ms = now_ms  # when the progress of a follower was recorded for all partitions
        self.watch = FetchWatch(isolation)
        self._last_turn = 0
        for key, fetch in partitions.items():
            self._add(key, fetch)
        self.mark_all()

    def _add(self, key: PartitionKey, fetch: PartitionFetch) -> None:
        fetch.key = key
        self._last_turn += 1
        fetch.turn = self._last_turn

    def mark_all(self) -> None:
        """Read all partitions with the next fetch."""
        self.watch.dirty.update(dict.fromkeys(self.partitions.values()))

    def update(
        self,
        wanted: Mapping[PartitionKey, PartitionFetch],
        forgotten: Iterable[PartitionKey],
        isolation: Isolation = Isolation.HIGH_WATERMARK,
    ) -> Paced[None]:
        if isolation is not self.watch.isolation:
            yield from self.unwatch()
            self.watch.isolation = isolation
            self.mark_all()
        dirty = self.watch.dirty
        for count, key in enumerate(forgotten, 1):
            gone = self.partitions.pop(key, None)
            if gone is not None:
                gone.turn = GONE
                dirty.pop(gone, None)
                if gone.watched is not None:
                    gone.watched.remove(self.watch)
            if not count % _AT_A_TIME:
                yield _AT_A_TIME * FEW
        for count, (key, fetch) in enumerate(wanted.items(), 1):
            known = self.partitions.get(key)
            if known is None:
                self.partitions[key] = known = fetch
                self._add(key, fetch)
            else:
                known.take(fetch)
            dirty[known] = None
            if not count % _AT_A_TIME:
                yield _AT_A_TIME * FEW

    def dirty(self) -> Paced[dict[PartitionKey, PartitionFetch]]:
        """The partitions to read, in their order."""
        found: dict[PartitionKey, PartitionFetch] = {}
        for count, fetch in enumerate(sorted(self.watch.dirty, key=_TURN), 1):
            if fetch.turn != GONE:
                found[fetch.key] = fetch
            if not count % _AT_A_TIME:
                yield _AT_A_TIME * FEW
        return found

    def to_record(self, now_ms: int) -> Paced[dict[PartitionKey, PartitionFetch]]:
        """The partitions of a follower whose progress this fetch records: those that it names or that have
        changed, and from time to time all. An idle one says nothing new, but the leader waits for a sign that
        its follower is alive."""
        if now_ms - self.recorded_ms < PROGRESS_MS:
            return (yield from self.dirty())
        self.recorded_ms = now_ms
        return self.partitions

    def unwatch(self) -> Paced[None]:
        """Nobody uses the session any more, or it reads in another way from now on."""
        for count, fetch in enumerate(list(self.partitions.values()), 1):
            if fetch.watched is not None:
                fetch.watched.remove(self.watch)
                fetch.watched = None
            if not count % _AT_A_TIME:
                yield _AT_A_TIME * FEW

    def worth(self) -> tuple[bool, int, int]:
        """Followers are worth more than consumers, then sessions with more partitions."""
        return self.privileged, len(self.partitions), self.id

    def is_old(self) -> bool:
        """Whether it was used long enough, so that a larger session may replace it."""
        return self.last_used_ms - self.created_ms > EVICTION_MS

    def move_to_end(self, key: PartitionKey) -> None:
        """Read a partition after the others the next time."""
        self.partitions[key] = fetch = self.partitions.pop(key)
        self._last_turn += 1
        fetch.turn = self._last_turn


class FetchContext(NamedTuple):
    """How to answer one fetch."""

    session: FetchSession | None
    partitions: dict[PartitionKey, PartitionFetch]
    incremental: bool


class FetchSessions:
    """The sessions of one node, at most `slots` of them (max.incremental.fetch.session.cache.slots)."""

    __slots__ = ("_least", "_sessions", "_slots", "removed")

    def __init__(self, slots: int) -> None:
        self._slots = slots
        # The least recently used first.
        self._sessions: dict[int, FetchSession] = {}
        # The session that a follower (True) or a consumer (False) would replace. Valid until a session is
        # removed or changes its worth. A client that finds the cache full tries again with every fetch, so
        # this is cached.
        self._least: dict[bool, FetchSession | None] = {}
        # Sessions that partitions still know. The caller takes them out, and ends their watches.
        self.removed: list[FetchSession] = []

    def begin(
        self,
        session_id: int,
        epoch: int,
        wanted: dict[PartitionKey, PartitionFetch],
        forgotten: list[PartitionKey],
        *,
        privileged: bool,
        uses_topic_ids: bool,
        now_ms: int,
        new_id: Callable[[], int],
        isolation: Isolation = Isolation.HIGH_WATERMARK,
    ) -> Paced[FetchContext]:
        """What to read for this fetch. It takes over `wanted`. `new_id` returns a random id for a new
        session."""
        if epoch == FINAL_EPOCH:
            self._remove(session_id)
            return FetchContext(None, wanted, False)
        if epoch == INITIAL_EPOCH:
            self._remove(session_id)
            session = None
            if wanted:
                session = self._create(new_id, wanted, privileged, uses_topic_ids, now_ms, isolation)
            return FetchContext(session, wanted, False)
        known = self._sessions.get(session_id)
        if known is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if known.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if known.uses_topic_ids != uses_topic_ids:  # the partitions could not be matched
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        size, was_old = len(known.partitions), known.is_old()
        yield from known.update(wanted, forgotten, isolation)
        if self._sessions.get(session_id) is not known or known.epoch != epoch:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)  # it was removed during the update
        if not known.partitions:
            self._remove(session_id)
            return FetchContext(None, {}, False)
        known.last_used_ms = now_ms
        self._sessions[session_id] = self._sessions.pop(session_id)
        if len(known.partitions) != size or known.is_old() != was_old:
            self._least.clear()
        known.epoch = 1 if known.epoch == MAX_EPOCH else known.epoch + 1
        assert INITIAL_EPOCH < known.epoch <= MAX_EPOCH
        return FetchContext(known, known.partitions, True)

    def _create(
        self,
        new_id: Callable[[], int],
        partitions: dict[PartitionKey, PartitionFetch],
        privileged: bool,
        uses_topic_ids: bool,
        now_ms: int,
        isolation: Isolation,
    ) -> FetchSession | None:
        if len(self._sessions) >= self._slots and not self._evict(privileged, len(partitions), now_ms):
            return None
        session_id = new_id()
        while session_id in self._sessions or session_id == INVALID_SESSION_ID:
            session_id = new_id()
        assert len(self._sessions) < self._slots
        session = FetchSession(session_id, partitions, now_ms, privileged, uses_topic_ids, isolation)
        self._sessions[session_id] = session
        return session

    def _remove(self, session_id: int) -> None:
        gone = self._sessions.pop(session_id, None)
        if gone is not None:
            self._least.clear()
            self.removed.append(gone)

    def _evict(self, privileged: bool, size: int, now_ms: int) -> bool:
        """Free one slot: of an idle session, or of one that is worth less than the new one. Only followers
        replace young sessions, and only those of consumers."""
        unused = next(iter(self._sessions.values()), None)
        if unused is not None and now_ms - unused.last_used_ms > EVICTION_MS:
            self._remove(unused.id)
            return True
        least = self._least_worthy(privileged)
        if least is None or least.worth() >= (privileged, size, INVALID_SESSION_ID):
            return False
        self._remove(least.id)
        return True

    def _least_worthy(self, privileged: bool) -> FetchSession | None:
        """The session that a session of this kind would replace first."""
        if privileged not in self._least:
            self._least[privileged] = min(
                (s for s in self._sessions.values() if s.is_old() or (privileged and not s.privileged)),
                key=FetchSession.worth,
                default=None,
            )
        return self._least[privileged]
