"""The newest connection by which each transactional producer spoke. Pure.

Where the epoch does not tell one transaction of a producer from the next, a request that its producer has
given up, to send it again by another connection, would count for the next transaction (KAFKA-17754). What is
held back by an older connection is nobody's wish any more. Closing that one is safe: who still used it would
come back by a new one.
"""

from typing import Final

from odradek.core.errors import ProtocolError

MAX_SPEAKERS: Final = 100_000
"""Those that spoke first give way: they are the least likely to have something under way."""


class Speakers:
    __slots__ = ("_newest",)

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._newest)

    def heard(self, transactional_id: str, connection: int) -> None:
        """The producer itself, not a zombie of it, spoke by a connection."""
        if connection >= self._newest.get(transactional_id, connection):
            self._newest[transactional_id] = connection
            if len(self._newest) > MAX_SPEAKERS:
                del self._newest[next(iter(self._newest))]

    def is_newest(self, transactional_id: str, connection: int) -> bool:
        """Whether the producer is known to have spoken by this connection last."""
        return self._newest.get(transactional_id) == connection

    def require_newest(self, transactional_id: str, connection: int) -> None:
        """Raises ProtocolError where the producer has connected anew since."""
        if connection < self._newest.get(transactional_id, connection):
            raise ProtocolError(f"transactional id {transactional_id!r} has a newer connection")

    def forget(self, transactional_id: str) -> None:
        self._newest.pop(transactional_id, None)
