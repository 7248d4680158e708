"""AddPartitionsToTxn: adds partitions to a transaction, or verifies them, before the first write."""

from typing import TYPE_CHECKING

from odradek.coordinators.shard import CoordinatorResult, Now, Ticket
from odradek.coordinators.transactions.commands import AddPartitions, VerifyPartitions
from odradek.coordinators.transactions.metadata import (
    EPOCH_PER_TRANSACTION,
    TransactionMetadata,
)
from odradek.coordinators.transactions.states import PREPARED, TxnState
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import ProducerIdAndEpoch

if TYPE_CHECKING:
    from odradek.coordinators.transactions.shard import TransactionShard

DONE = ErrorCode.NONE
"""The answer to a successful AddPartitions."""


def add(shard: "TransactionShard", command: AddPartitions, _: Ticket, now: Now) -> CoordinatorResult:
    txn = _current(shard, command.transactional_id, command.producer)
    if command.connection is not None:
        if command.client_version < EPOCH_PER_TRANSACTION:
            shard.speakers.require_newest(command.transactional_id, command.connection)
        shard.speakers.heard(command.transactional_id, command.connection)
    if shard.is_pending(txn) or txn.state in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if txn.is_kept:
        raise _undecided()
    if txn.state is TxnState.ONGOING and set(command.partitions) <= set(txn.partitions):
        return CoordinatorResult(DONE)
    txn = txn.with_partitions(command.partitions, command.client_version, now.wall_ms)
    return shard.transition(txn, DONE)


def verify(shard: "TransactionShard", command: VerifyPartitions, _: Ticket, __: Now) -> CoordinatorResult:
    """Pending transitions are ignored, because the append is checked again."""
    txn = _current(shard, command.transactional_id, command.producer)
    if txn.state in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if txn.is_kept:
        raise _undecided()
    known = set(txn.partitions)
    return CoordinatorResult(
        [ErrorCode.NONE if tp in known else ErrorCode.TRANSACTION_ABORTABLE for tp in command.partitions]
    )


def _current(
    shard: "TransactionShard", transactional_id: str, producer: ProducerIdAndEpoch
) -> TransactionMetadata:
    """The transaction of the producer with the current identity. That may be a new producer id while the last
    transaction is still ending (KAFKA-18660)."""
    txn = shard.transactions.get(transactional_id)
    if txn is None or txn.client.producer_id != producer.producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if txn.client.producer_epoch != producer.producer_epoch:
        raise shard.fence(transactional_id, producer)
    return txn


def _undecided() -> KafkaError:
    """The successor must not write: its epoch would be above that of the marker that follows."""
    return KafkaError(ErrorCode.INVALID_TXN_STATE, "commit or abort the prepared transaction first")
