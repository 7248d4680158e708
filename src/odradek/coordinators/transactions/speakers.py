"""Speakers: the newest connection of each transactional producer. Pure.

Below transaction version 2 all transactions of a producer have the same epoch. A producer may give up on a
request and repeat it on a new connection. If the first request arrives late, it would count for the next
transaction (KAFKA-17754). So requests on older connections are refused and the connection is closed. That is
safe: a producer that still uses it connects again.
"""

from typing import Final

from odradek.core.errors import ProtocolError

MAX_SPEAKERS: Final = 100_000
"""Above this number the oldest entries are dropped: they are the least likely to have requests in flight."""


class Speakers:
    __slots__ = ("_newest",)

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._newest)

    def heard(self, transactional_id: str, connection: int) -> None:
        """Note the connection of a request from the current producer, not from a zombie."""
        if connection >= self._newest.get(transactional_id, connection):
            self._newest[transactional_id] = connection
            if len(self._newest) > MAX_SPEAKERS:
                del self._newest[next(iter(self._newest))]

    def is_newest(self, transactional_id: str, connection: int) -> bool:
        """Whether the producer's last request came by this connection."""
        return self._newest.get(transactional_id) == connection

    def require_newest(self, transactional_id: str, connection: int) -> None:
        """Raises ProtocolError if the producer has a newer connection."""
        if connection < self._newest.get(transactional_id, connection):
            raise ProtocolError(f"transactional id {transactional_id!r} has a newer connection")

    def forget(self, transactional_id: str) -> None:
        self._newest.pop(transactional_id, None)
