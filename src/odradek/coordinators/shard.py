"""What a coordinator shard is to its host: commands in, results out, records replayed. No loop, no log here.

A shard never changes replicated state in `handle` or `tick`. It returns the records that would; the host
appends them, replays them at once, and only then runs `CoordinatorResult.then` to go on with the new state.
What a shard knows beside its records (who waits, whose session ends when) is soft: a load starts without it.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from odradek.core.errors import KafkaError
from odradek.runtime.slices import Paced

Ticket = int
"""Names a request that waits for its answer; given out by the host."""

Record = tuple[Any, Any | None]
"""A key and its value as a shard knows them; no value is a tombstone."""

Encoded = tuple[bytes, bytes | None]
"""A record as the log holds it."""


class Now(NamedTuple):
    """Both clocks: wall time goes into records, steady time drives timers and never jumps."""

    wall_ms: int
    steady_ms: int


class CoordinatorResult:
    """What a shard wants done.

    `records` are appended together, unless `atomic` is off and they may be split. `producer` makes them part
    of a transaction. `response` answers the command itself (None: it waits), `replies` answer commands that
    wait. `then` goes on once the records are replayed, `committed` once the log can no longer lose them.
    `failed` says what follows an append that was refused; without it the command that asked is answered with
    the error and nothing else happens. `effects` are handed to whoever runs the host. `is_long` says that its
    records, however few, take long to encode.
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
    """How a topic's records become bytes and back; `decode` gives None for a kind of a newer release.

    The other two do the same in slices, where a record may be long.
    """

    encode: Callable[[Record], Encoded]
    decode: Callable[[bytes | None, bytes | None], Record | None]
    encode_long: Callable[[Record], Paced[Encoded]] | None = None
    decode_long: Callable[[bytes | None, bytes], Paced[Record | None]] | None = None


class Shard(Protocol):
    """The state behind one partition of an internal topic."""

    def handle(self, command: Any, ticket: Ticket, now: Now) -> CoordinatorResult | Paced[CoordinatorResult]:
        """Decide a command, in steps if it takes long. Raises KafkaError to refuse it.

        Nothing else is asked of the shard between two steps.
        """
        ...

    def replay(self, key: Any, value: Any | None, offset: int, producer_id: int) -> Paced[None] | None:
        """Apply one record, just appended or read back; `producer_id` is -1 outside a transaction.

        In steps if it may take long: it is applied when they are over.
        """
        ...

    def replay_marker(self, producer_id: int, committed: bool) -> None:
        """Apply the end of a producer's transaction."""
        ...

    def activate(self, now: Now) -> CoordinatorResult | Paced[CoordinatorResult]:
        """The log is replayed: start the soft state."""
        ...

    def tick(self, now: Now) -> CoordinatorResult | Paced[CoordinatorResult] | None:
        """Handle one timer that is due, in steps if it takes long; None when none is."""
        ...

    def next_deadline_ms(self) -> int | None:
        """When `tick` should be called next, in steady time."""
        ...
