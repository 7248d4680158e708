"""TransactionShard: the transactional ids of one partition of `__transaction_state`. Commands in, results
out.

Each command has its own file. This file has their common state, and `replay`, the only place that changes it.
A transition is pending until its record is committed. Until then its markers are not written, and its
transactional id accepts no other transition.
"""

from collections.abc import Callable
from typing import Any, Final

from odradek.coordinators.shard import CoordinatorResult, Now, Ticket
from odradek.coordinators.transactions import admin, commands, ending, expiring, initializing, partitions
from odradek.coordinators.transactions.config import TransactionConfig
from odradek.coordinators.transactions.metadata import FEW_PARTITIONS, TransactionMetadata
from odradek.coordinators.transactions.speakers import Speakers
from odradek.coordinators.transactions.states import PREPARED, TxnState
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import ProducerIdAndEpoch
from odradek.runtime.slices import FEW, Paced

LOOKS_AT_ONCE: Final = 32
"""How many open transactions one tick checks."""

Handler = Callable[["TransactionShard", Any, Ticket, Now], CoordinatorResult | Paced[CoordinatorResult]]

_HANDLERS: dict[type, Handler] = {
    commands.InitProducerId: initializing.init,
    commands.AddPartitions: partitions.add,
    commands.VerifyPartitions: partitions.verify,
    commands.EndTxn: ending.end,
    commands.DescribeTransaction: admin.describe,
    commands.ListTransactions: admin.list_transactions,
    commands.ExpireIds: expiring.expire,
}


class TransactionShard:
    """Implements coordinators.shard.Shard."""

    __slots__ = (
        "_decided",
        "_next_look_ms",
        "_open",
        "_over_time",
        "_pending",
        "_timed_out",
        "_unfinished",
        "config",
        "coordinator_epoch",
        "is_active",
        "new_producer_id",
        "seen_ahead",
        "server_version",
        "speakers",
        "transactions",
    )

    def __init__(
        self,
        config: TransactionConfig,
        coordinator_epoch: int,
        new_producer_id: Callable[[], int],
        server_version: Callable[[], int],
    ) -> None:
        """`new_producer_id` raises KafkaError if none is available. The coordinator epoch is the partition's
        leader epoch."""
        self.config = config
        self.coordinator_epoch = coordinator_epoch
        self.new_producer_id = new_producer_id
        self.server_version = server_version
        self.transactions: dict[str, TransactionMetadata] = {}
        self.is_active = False
        self._pending: dict[str, TxnState] = {}
        self.speakers = Speakers()
        self._timed_out: dict[str, ProducerIdAndEpoch] = {}
        self._next_look_ms: int | None = None
        self._open: dict[str, None] = {}  # ids with an ongoing transaction
        self._decided: dict[str, None] = {}  # ids whose markers are not all written
        self._unfinished: list[str] = []
        """Ids that a former leader had decided, until their markers are sent again."""
        self.seen_ahead: dict[str, tuple[int, int]] = {}
        """Ids whose transactions start in the future: the start, and the steady time when this was first
        seen."""
        self._over_time: list[str] | None = None
        """Ids that the current check has not reached yet."""

    def handle(self, command: Any, ticket: Ticket, now: Now) -> CoordinatorResult | Paced[CoordinatorResult]:
        assert self.is_active
        if isinstance(command, commands.MarkersWritten):
            return self._complete(command, now)
        return _HANDLERS[type(command)](self, command, ticket, now)

    # --- transitions ----------------------------------------------------------------------------------

    def is_pending(self, txn: TransactionMetadata) -> bool:
        """Whether the last transition is in the log but not committed yet."""
        return txn.transactional_id in self._pending

    def transition(self, txn: TransactionMetadata, answer: Any) -> CoordinatorResult:
        """Replace the state of a transactional id with `txn`, and answer when that is committed."""
        name = txn.transactional_id
        result = CoordinatorResult(answer, [(name, txn)])
        result.is_long = len(txn.partitions) > FEW_PARTITIONS
        self._pending[name] = txn.state

        def failed(_: KafkaError, __: Now) -> CoordinatorResult:
            del self._pending[name]
            return CoordinatorResult()

        def committed(_: Now) -> CoordinatorResult:
            del self._pending[name]
            out = CoordinatorResult()
            if txn.state in PREPARED:
                out.effects.append(ending.markers_of(txn, self.coordinator_epoch))
            return out

        result.failed = failed
        result.committed = committed
        return result

    def note_timeout(self, transactional_id: str, producer: ProducerIdAndEpoch) -> None:
        self._timed_out[transactional_id] = producer

    def fence(self, transactional_id: str, producer: ProducerIdAndEpoch) -> KafkaError:
        """The error for a producer with an old epoch. After a timeout it is TRANSACTION_ABORTABLE."""
        if self._timed_out.get(transactional_id) == producer:
            return KafkaError(
                ErrorCode.TRANSACTION_ABORTABLE, "The transaction took longer than its timeout."
            )
        return KafkaError(ErrorCode.PRODUCER_FENCED)

    def _complete(self, command: commands.MarkersWritten, now: Now) -> CoordinatorResult:
        txn = self.transactions.get(command.transactional_id)
        if txn is None or txn.state not in PREPARED or self.is_pending(txn):
            return CoordinatorResult(False)
        if (txn.producer_id, txn.producer_epoch) != command.producer:
            return CoordinatorResult(False)
        return self.transition(txn.completed(now.wall_ms), True)

    # --- replay ---------------------------------------------------------------------------------------

    def replay(self, key: Any, value: Any | None, offset: int, producer_id: int) -> None:
        state = None if value is None else value.state
        if state is TxnState.ONGOING:
            self._open[key] = None
        else:
            self._open.pop(key, None)
            self.seen_ahead.pop(key, None)
        if state is TxnState.PREPARE_COMMIT or state is TxnState.PREPARE_ABORT:
            self._decided[key] = None
        else:
            self._decided.pop(key, None)
        if value is None:
            self.transactions.pop(key, None)
            self.speakers.forget(key)
            self._timed_out.pop(key, None)
            return
        self.transactions[key] = value

    def replay_marker(self, producer_id: int, committed: bool) -> None:
        raise AssertionError("nobody writes to __transaction_state in a transaction")

    # --- time -----------------------------------------------------------------------------------------

    def activate(self, now: Now) -> CoordinatorResult:
        """Finish decided transactions, one per tick. Open transactions are left to their timeout."""
        self.is_active = True
        self._unfinished = list(self._decided)
        self._next_look_ms = now.steady_ms + (0 if self._unfinished else self.config.abort_interval_ms)
        return CoordinatorResult()

    def next_deadline_ms(self) -> int | None:
        return self._next_look_ms

    def tick(self, now: Now) -> CoordinatorResult | Paced[CoordinatorResult] | None:
        if self._next_look_ms is None or now.steady_ms < self._next_look_ms:
            return None
        if self._unfinished:
            decided = self._unfinished.pop()
            if not self._unfinished:
                self._next_look_ms = now.steady_ms + self.config.abort_interval_ms
            return self._finish(decided)
        if self._over_time is None:
            self._over_time = list(self._open)
        if not self._over_time:
            self._over_time = None
            self._next_look_ms = now.steady_ms + self.config.abort_interval_ms
            return None
        return self._look(self._over_time, now)

    def _look(self, transactional_ids: list[str], now: Now) -> Paced[CoordinatorResult]:
        """Abort the first of a few transactions that is over its timeout. The next tick continues after
        it."""
        for _ in range(min(LOOKS_AT_ONCE, len(transactional_ids))):
            result = expiring.abort_over_time(self, transactional_ids.pop(), now)
            if result is not None:
                return result
            yield 2 * FEW
        return CoordinatorResult()

    def _finish(self, transactional_id: str) -> CoordinatorResult:
        """Send the markers of a transaction that a former leader decided, after all that it wrote is
        committed."""
        out = CoordinatorResult()

        def committed(_: Now) -> CoordinatorResult:
            again = CoordinatorResult()
            txn = self.transactions.get(transactional_id)
            if txn is not None and txn.state in PREPARED:
                again.effects.append(ending.markers_of(txn, self.coordinator_epoch))
            return again

        out.committed = committed
        return out
