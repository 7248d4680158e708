"""TransactionMetadata: the state of one transactional id. Immutable: every transition returns a new one.
Pure.

Epoch 32767 is reserved for the last marker of a producer id. Before a client would get it, the client gets a
new producer id at epoch 0.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from odradek.coordinators.transactions import transitions
from odradek.coordinators.transactions.states import AT_REST, TxnState
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMEOUT_MS,
    NO_TIMESTAMP,
    ProducerIdAndEpoch,
    TopicPartition,
)

MAX_EPOCH: Final = 0x7FFF
EPOCH_PER_TRANSACTION: Final = 2
"""Since this transaction version every end of a transaction bumps the epoch (KIP-890)."""
FEW_PARTITIONS: Final = 16
"""With more partitions, the record of a transaction takes long to encode."""


def is_exhausted(epoch: int) -> bool:
    """Whether a client must not get the next epoch."""
    return epoch >= MAX_EPOCH - 1


class TransactionMetadata(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TxnState = TxnState.EMPTY
    partitions: tuple[TopicPartition, ...] = ()
    start_ms: int = NO_TIMESTAMP
    last_update_ms: int = NO_TIMESTAMP
    prev_producer_id: int = NO_PRODUCER_ID
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    next_producer_id: int = NO_PRODUCER_ID
    next_producer_epoch: int = NO_PRODUCER_EPOCH
    client_version: int = 0

    # --- questions ------------------------------------------------------------------------------------

    @property
    def client(self) -> ProducerIdAndEpoch:
        """The identity that may use this id next: its producer has it already, or gets it with the next
        answer."""
        if self.next_producer_id == NO_PRODUCER_ID:
            return ProducerIdAndEpoch(self.producer_id, self.producer_epoch)
        return ProducerIdAndEpoch(self.next_producer_id, max(0, self.next_producer_epoch))

    @property
    def is_kept(self) -> bool:
        """Whether a restarted producer has taken over an open transaction (KIP-939). It may not write to
        it."""
        return self.state is TxnState.ONGOING and self.next_producer_id != NO_PRODUCER_ID

    @property
    def has_timeout(self) -> bool:
        return self.timeout_ms != NO_TIMEOUT_MS

    # --- transitions ----------------------------------------------------------------------------------

    def _to(self, state: TxnState, now_ms: int, **changes: Any) -> "TransactionMetadata":
        after = self._replace(
            state=state,
            prev_producer_id=self.producer_id,
            last_update_ms=max(now_ms, self.last_update_ms),
            **changes,
        )
        transitions.check(self, after)
        return after

    def with_next_epoch(
        self, expected_epoch: int | None, timeout_ms: int, now_ms: int
    ) -> "TransactionMetadata":
        """A producer starts, or continues after an error with the epoch that it had (`expected_epoch`).

        Raises PRODUCER_FENCED if that is neither the current epoch nor, in a retry, the last one.
        """
        epoch, last_epoch = self.producer_epoch + 1, NO_PRODUCER_EPOCH
        if expected_epoch is not None:
            if self.producer_epoch in (NO_PRODUCER_EPOCH, expected_epoch):
                last_epoch = self.producer_epoch
            elif expected_epoch == self.last_producer_epoch:
                epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
            else:
                raise KafkaError(ErrorCode.PRODUCER_FENCED)
        assert epoch < MAX_EPOCH, "an exhausted producer id is replaced"
        return self._to(
            TxnState.EMPTY,
            now_ms,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
            partitions=(),
            start_ms=NO_TIMESTAMP,
        )

    def with_new_id(
        self, producer_id: int, timeout_ms: int, now_ms: int, *, remember_epoch: bool
    ) -> "TransactionMetadata":
        """The producer gets a new id, because the epochs of the old one are used up."""
        return self._to(
            TxnState.EMPTY,
            now_ms,
            producer_id=producer_id,
            producer_epoch=0,
            last_producer_epoch=self.producer_epoch if remember_epoch else NO_PRODUCER_EPOCH,
            timeout_ms=timeout_ms,
            partitions=(),
            start_ms=NO_TIMESTAMP,
        )

    def kept_for(self, client: ProducerIdAndEpoch, timeout_ms: int, now_ms: int) -> "TransactionMetadata":
        """The transaction stays open. A new incarnation of its producer decides it (KIP-939)."""
        return self._to(
            TxnState.ONGOING,
            now_ms,
            timeout_ms=timeout_ms,
            next_producer_id=client.producer_id,
            next_producer_epoch=client.producer_epoch,
        )

    def with_partitions(
        self, added: Iterable[TopicPartition], client_version: int, now_ms: int
    ) -> "TransactionMetadata":
        return self._to(
            TxnState.ONGOING,
            now_ms,
            partitions=tuple(sorted(dict.fromkeys((*self.partitions, *added)))),
            start_ms=now_ms if self.state in AT_REST else self.start_ms,
            client_version=client_version,
        )

    def fenced(self, server_version: int, now_ms: int) -> "TransactionMetadata":
        """The producer is fenced, because the coordinator is about to abort its transaction.

        With an epoch per transaction the abort itself bumps the epoch, so this does not.
        """
        if server_version >= EPOCH_PER_TRANSACTION:
            return self._to(TxnState.PREPARE_EPOCH_FENCE, now_ms)
        next_epoch = self.next_producer_epoch
        if self.next_producer_id != NO_PRODUCER_ID:
            next_epoch = min(next_epoch + 1, MAX_EPOCH)  # the producer that took it over has its own epoch
        return self._to(
            TxnState.PREPARE_EPOCH_FENCE,
            now_ms,
            producer_epoch=min(self.producer_epoch + 1, MAX_EPOCH),
            last_producer_epoch=NO_PRODUCER_EPOCH,
            next_producer_epoch=next_epoch,
        )

    def prepared(
        self, *, commit: bool, client_version: int, fresh_id: int, now_ms: int
    ) -> "TransactionMetadata":
        """The transaction is decided. `fresh_id` is the next producer id, if the epochs of this one are used
        up."""
        state = TxnState.PREPARE_COMMIT if commit else TxnState.PREPARE_ABORT
        start_ms = now_ms if self.state in AT_REST else self.start_ms
        if client_version < EPOCH_PER_TRANSACTION:
            return self._to(state, now_ms, start_ms=start_ms, client_version=0)
        next_id, next_epoch = NO_PRODUCER_ID, NO_PRODUCER_EPOCH
        if fresh_id != NO_PRODUCER_ID:
            next_id = fresh_id
        elif self.next_producer_id != NO_PRODUCER_ID:
            next_id, next_epoch = self.next_producer_id, self.next_producer_epoch + 1
        return self._to(
            state,
            now_ms,
            start_ms=start_ms,
            producer_epoch=min(self.producer_epoch + 1, MAX_EPOCH),
            last_producer_epoch=self.client.producer_epoch,
            next_producer_id=next_id,
            next_producer_epoch=next_epoch,
            client_version=client_version,
        )

    def completed(self, now_ms: int) -> "TransactionMetadata":
        """Every marker is written."""
        commit = self.state is TxnState.PREPARE_COMMIT
        producer_id, producer_epoch = self.client
        return self._to(
            TxnState.COMPLETE_COMMIT if commit else TxnState.COMPLETE_ABORT,
            now_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            next_producer_id=NO_PRODUCER_ID,
            next_producer_epoch=NO_PRODUCER_EPOCH,
            partitions=(),
        )
