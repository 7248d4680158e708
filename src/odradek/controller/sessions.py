"""BrokerSessions: when each broker last sent a heartbeat. Soft state of the active controller. Pure.

It is empty on a new controller. A registered broker gets a full session timeout for its first heartbeat.
"""

from collections.abc import Iterable
from typing import NamedTuple


class BrokerSession(NamedTuple):
    broker_epoch: int
    last_contact_ms: int
    metadata_offset: int
    shutdown_offset: int | None = None
    is_heard: bool = True
    """Whether it has sent a heartbeat: one that only registered may have died since."""


class BrokerSessions:
    __slots__ = ("_sessions", "timeout_ms")

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._sessions: dict[int, BrokerSession] = {}

    def get(self, broker_id: int) -> BrokerSession | None:
        return self._sessions.get(broker_id)

    def touch(self, broker_id: int, broker_epoch: int, metadata_offset: int, now_ms: int) -> None:
        known = self._sessions.get(broker_id)
        same = known is not None and known.broker_epoch == broker_epoch
        shutdown_offset = known.shutdown_offset if known is not None and same else None
        self._sessions[broker_id] = BrokerSession(broker_epoch, now_ms, metadata_offset, shutdown_offset)

    def begin(self, broker_id: int, broker_epoch: int, now_ms: int) -> None:
        """A new incarnation registered; it has sent no heartbeat yet."""
        self._sessions[broker_id] = BrokerSession(broker_epoch, now_ms, -1, is_heard=False)

    def is_heard(self, broker_id: int, broker_epoch: int, now_ms: int) -> bool:
        """Whether an incarnation lives: its session does, and it has sent a heartbeat."""
        session = self._sessions.get(broker_id)
        return session is not None and session.is_heard and self.is_valid(broker_id, broker_epoch, now_ms)

    def set_shutdown_offset(self, broker_id: int, offset: int) -> None:
        """A broker may stop when every active broker has reached this offset, at which its leaders have
        moved.

        The first offset counts: later records move none of its leaders.
        """
        session = self._sessions[broker_id]
        if session.shutdown_offset is None:
            self._sessions[broker_id] = session._replace(shutdown_offset=offset)

    def drop(self, broker_id: int) -> None:
        self._sessions.pop(broker_id, None)

    def is_valid(self, broker_id: int, broker_epoch: int, now_ms: int) -> bool:
        session = self._sessions.get(broker_id)
        return (
            session is not None
            and session.broker_epoch == broker_epoch
            and now_ms - session.last_contact_ms < self.timeout_ms
        )

    def lowest_offset(self, broker_ids: Iterable[int]) -> int | None:
        """The lowest metadata offset of these brokers, -1 for a broker without a heartbeat; None without
        brokers."""
        return min((self._metadata_offset(n) for n in broker_ids), default=None)

    def _metadata_offset(self, broker_id: int) -> int:
        session = self._sessions.get(broker_id)
        return -1 if session is None else session.metadata_offset
