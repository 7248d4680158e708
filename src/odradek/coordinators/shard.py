"""The interface between a coordinator shard and its host: commands in, results out, records replayed.

A shard never changes replicated state in `handle` or `tick`. It returns records. The host appends them,
replays them at once, and then runs `CoordinatorResult.then`, which sees the new state. All other state of a
shard (waiting commands, session deadlines) is soft: a load starts without it.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from odradek.core.errors import KafkaError
from odradek.runtime.slices import Paced

Ticket = int
"""The number of a request that waits for its answer, from the host."""

Record = tuple[Any, Any | None]
"""A key and a value in the form of the shard. A value of None is a tombstone."""

Encoded = tuple[bytes, bytes | None]
"""A record in bytes, as it is in the log."""


class Now(NamedTuple):
    """The time on both clocks. Wall time goes into records. Steady time is for timers and never jumps."""

    wall_ms: int
    steady_ms: int


class CoordinatorResult:
    """What the host does for a shard.

    `records` are appended as one batch, or in several if `atomic` is false. `producer` makes them part of a
    transaction. `response` answers the command (None: it waits), `replies` answer commands that wait. `then`
    runs after the records are replayed, `committed` when the log can no longer lose them. `failed` runs if
    the append is refused; without it the command gets the error, and nothing else happens. `effects` go to
    the host's `perform`. `is_long` means that the records, even if they are few, take long to encode.
    """

    __slots__ = (
        "atomic",
        "committed",
        "effects",
        "failed",
        "is_long",
        "producer",
        "records",
        "replies",
        "response",
        "then",
    )

    def __init__(self, response: Any = None, records: Sequence[Record] = (), *, atomic: bool = True) -> None:
        self.response = response
        self.records: list[Record] = list(records)
        self.replies: list[tuple[Ticket, Any]] = []
        self.atomic = atomic
        self.effects: list[Any] = []
        self.is_long = False
        self.producer: tuple[int, int] | None = None
        self.then: Callable[[Now], CoordinatorResult | Paced[CoordinatorResult]] | None = None
        self.committed: Callable[[Now], CoordinatorResult] | None = None
        self.failed: Callable[[KafkaError, Now], CoordinatorResult | Paced[CoordinatorResult]] | None = None


class RecordFormat(NamedTuple):
    """Encodes and decodes the records of a topic. `decode` returns None for a type of a newer release.

    The other two functions do the same in slices, for records that may be long.
    """

    encode: Callable[[Record], Encoded]
    decode: Callable[[bytes | None, bytes | None], Record | None]
    encode_long: Callable[[Record], Paced[Encoded]] | None = None
    decode_long: Callable[[bytes | None, bytes], Paced[Record | None]] | None = None


class Shard(Protocol):
    """The state behind one partition of an internal topic."""

    def handle(self, command: Any, ticket: Ticket, now: Now) -> CoordinatorResult | Paced[CoordinatorResult]:
        """Decide a command, in steps if it takes long. Raises KafkaError to refuse it.

        The host calls nothing else of the shard between two steps.
        """
        ...

    def replay(self, key: Any, value: Any | None, offset: int, producer_id: int) -> Paced[None] | None:
        """Apply one record, just appended or read from the log. `producer_id` is -1 outside a transaction.

        In steps if it may take long. It takes effect after the last step.
        """
        ...

    def replay_marker(self, producer_id: int, committed: bool) -> None:
        """Apply the end of a producer's transaction."""
        ...

    def activate(self, now: Now) -> CoordinatorResult | Paced[CoordinatorResult]:
        """The log is replayed: start the soft state."""
        ...

    def tick(self, now: Now) -> CoordinatorResult | Paced[CoordinatorResult] | None:
        """Handle one timer that is due, in steps if it takes long. Returns None if none is due."""
        ...

    def next_deadline_ms(self) -> int | None:
        """When `tick` should be called next, in steady time."""
        ...
