"""InitProducerId: a producer takes over a transactional id, and the previous producer is fenced."""

from typing import TYPE_CHECKING

from odradek.coordinators.shard import CoordinatorResult, Now, Ticket
from odradek.coordinators.transactions import ending
from odradek.coordinators.transactions.commands import Initialized, InitProducerId
from odradek.coordinators.transactions.metadata import (
    MAX_EPOCH,
    TransactionMetadata,
    is_exhausted,
)
from odradek.coordinators.transactions.states import PREPARED, TxnState
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_PRODUCER_EPOCH, ProducerIdAndEpoch

if TYPE_CHECKING:
    from odradek.coordinators.transactions.shard import TransactionShard


def init(shard: "TransactionShard", command: InitProducerId, _: Ticket, now: Now) -> CoordinatorResult:
    txn = shard.transactions.get(command.transactional_id)
    if txn is None:
        txn = TransactionMetadata(
            command.transactional_id, shard.new_producer_id(), NO_PRODUCER_EPOCH, command.timeout_ms
        )
    elif shard.is_pending(txn):
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if command.expected is not None and not _may_continue(txn, command.expected):
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if txn.state in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if txn.state is TxnState.ONGOING:
        if command.expected is not None and command.expected != txn.client:
            # A zombie must not abort the transaction of its successor.
            raise shard.fence(command.transactional_id, command.expected)
        if command.keep_prepared:
            return _keep(shard, txn, command, now)
        return _abort_first(shard, txn, now)
    expected_epoch = None if command.expected is None else command.expected.producer_epoch
    if is_exhausted(txn.producer_epoch) and expected_epoch in (None, txn.producer_epoch):
        txn = txn.with_new_id(
            shard.new_producer_id(),
            command.timeout_ms,
            now.wall_ms,
            remember_epoch=expected_epoch is not None,
        )
    elif is_exhausted(txn.producer_epoch) and expected_epoch != txn.last_producer_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    else:
        txn = txn.with_next_epoch(expected_epoch, command.timeout_ms, now.wall_ms)
    shard.speakers.heard(command.transactional_id, command.connection)
    return shard.transition(txn, Initialized(txn.producer_id, txn.producer_epoch))


def _may_continue(txn: TransactionMetadata, expected: ProducerIdAndEpoch) -> bool:
    """Whether a producer with this identity may get the next epoch. The caller decides which epoch that
    is."""
    if txn.producer_epoch == NO_PRODUCER_EPOCH or expected.producer_id == txn.producer_id:
        return True
    if txn.is_kept and expected.producer_id == txn.next_producer_id:
        return True
    # The answer with its new producer id may have been lost.
    return expected.producer_id == txn.prev_producer_id and is_exhausted(expected.producer_epoch)


def _abort_first(shard: "TransactionShard", txn: TransactionMetadata, now: Now) -> CoordinatorResult:
    """Abort the open transaction of the previous producer. The client must retry afterwards."""
    return ending.abort(shard, txn, now, KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS))


def _keep(
    shard: "TransactionShard", txn: TransactionMetadata, command: InitProducerId, now: Now
) -> CoordinatorResult:
    """Give the producer a new epoch with which it can decide. The open transaction stays open."""
    producer_id, epoch = txn.client
    if epoch + 1 >= MAX_EPOCH:
        successor = ProducerIdAndEpoch(shard.new_producer_id(), 0)
    else:
        successor = ProducerIdAndEpoch(producer_id, epoch + 1)
    kept = txn.kept_for(successor, command.timeout_ms, now.wall_ms)
    ongoing = ProducerIdAndEpoch(txn.producer_id, txn.producer_epoch)
    return shard.transition(kept, Initialized(*successor, ongoing))
