"""Trace: the history of a simulation as a hash, and optionally as text. Two runs of a seed have the same
hash."""

import hashlib
from collections import deque
from collections.abc import Callable, Iterable


class Trace:
    """`event` gets every system call, fault and client operation in order."""

    __slots__ = ("_digest", "_now", "_recent", "_sink", "count")

    def __init__(
        self, now: Callable[[], float], *, keep: int = 0, sink: Callable[[str], None] | None = None
    ) -> None:
        self._now = now
        self._digest = hashlib.blake2b(digest_size=16)
        self._recent: deque[tuple[object, ...]] = deque(maxlen=keep)
        self._sink = sink
        self.count = 0

    def event(self, actor: str, what: str, *details: object) -> None:
        """Note an event. Its details must have the same text in every run: no addresses, no sets."""
        self.count += 1
        line = (round(self._now(), 6), actor, what, *details)
        self._digest.update(repr(line).encode())
        if self._recent.maxlen:
            self._recent.append(line)
        if self._sink is not None:
            self._sink(_text(line))

    def digest(self) -> str:
        return self._digest.hexdigest()

    def recent(self) -> list[str]:
        return [_text(line) for line in self._recent]


def _text(line: Iterable[object]) -> str:
    now, actor, what, *details = line
    return f"{now:12.6f} {actor!s:<14} {what!s:<12} {' '.join(str(d) for d in details)}"
