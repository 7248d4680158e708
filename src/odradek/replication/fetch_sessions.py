"""Incremental fetch sessions (KIP-227): a client need not repeat the partitions that it fetches. Pure.

A session has the partitions of a client's full fetch, and the last answer for each. An incremental fetch
names only changed partitions, and its answer has only partitions with changes.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from odradek.core.errors import ErrorCode, KafkaError
from odradek.runtime.slices import FEW, Paced

INVALID_SESSION_ID = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
MAX_EPOCH = (1 << 31) - 1
EVICTION_MS = 120_000
_AT_A_TIME = 16


class PartitionKey(NamedTuple):
    """A partition as the client names it: by topic id since Fetch v13, by name before."""

    topic: str | UUID
    partition: int


class PartitionFetch:
    """The client's request for one partition, and the last answer."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "sent_error",
        "sent_high_watermark",
        "sent_log_start_offset",
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


class FetchSession:
    """One client's session: its partitions in the order in which they are read."""

    __slots__ = ("created_ms", "epoch", "id", "last_used_ms", "partitions", "privileged", "uses_topic_ids")

    def __init__(
        self,
        session_id: int,
        partitions: dict[PartitionKey, PartitionFetch],
        now_ms: int,
        privileged: bool,
        uses_topic_ids: bool,
    ) -> None:
        assert session_id != INVALID_SESSION_ID and partitions
        self.id = session_id
        self.epoch = 1
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.privileged = privileged
        self.uses_topic_ids = uses_topic_ids
        self.partitions = partitions

    def update(
        self, wanted: Mapping[PartitionKey, PartitionFetch], forgotten: Iterable[PartitionKey]
    ) -> Paced[None]:
        for count, key in enumerate(forgotten, 1):
            self.partitions.pop(key, None)
            if not count % _AT_A_TIME:
                yield _AT_A_TIME * FEW
        for count, (key, fetch) in enumerate(wanted.items(), 1):
            known = self.partitions.get(key)
            if known is None:
                self.partitions[key] = fetch
            else:
                known.take(fetch)
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
        self.partitions[key] = self.partitions.pop(key)


class FetchContext(NamedTuple):
    """How to answer one fetch."""

    session: FetchSession | None
    partitions: dict[PartitionKey, PartitionFetch]
    incremental: bool


class FetchSessions:
    """The sessions of one node, at most `slots` of them (max.incremental.fetch.session.cache.slots)."""

    __slots__ = ("_least", "_sessions", "_slots")

    def __init__(self, slots: int) -> None:
        self._slots = slots
        # The least recently used first.
        self._sessions: dict[int, FetchSession] = {}
        # The session that a follower (True) or a consumer (False) would replace. Valid until a session is
        # removed or changes its worth. A client that finds the cache full tries again with every fetch, so
        # this is cached.
        self._least: dict[bool, FetchSession | None] = {}

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
                session = self._create(new_id, wanted, privileged, uses_topic_ids, now_ms)
            return FetchContext(session, wanted, False)
        known = self._sessions.get(session_id)
        if known is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if known.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if known.uses_topic_ids != uses_topic_ids:  # the partitions could not be matched
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        size, was_old = len(known.partitions), known.is_old()
        yield from known.update(wanted, forgotten)
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
    ) -> FetchSession | None:
        if len(self._sessions) >= self._slots and not self._evict(privileged, len(partitions), now_ms):
            return None
        session_id = new_id()
        while session_id in self._sessions or session_id == INVALID_SESSION_ID:
            session_id = new_id()
        assert len(self._sessions) < self._slots
        session = FetchSession(session_id, partitions, now_ms, privileged, uses_topic_ids)
        self._sessions[session_id] = session
        return session

    def _remove(self, session_id: int) -> None:
        if self._sessions.pop(session_id, None) is not None:
            self._least.clear()

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
