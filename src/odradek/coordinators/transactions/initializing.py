"""InitProducerId: a producer takes a transactional id, and whoever had it before is fenced."""

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
            # A zombie must not abort what its successor has begun.
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
    """Whether a producer that names who it was may be given the next epoch; which one is decided later."""
    if txn.producer_epoch == NO_PRODUCER_EPOCH or expected.producer_id == txn.producer_id:
        return True
    if txn.is_kept and expected.producer_id == txn.next_producer_id:
        return True
    # The answer that gave it a fresh id may have been lost on the way.
    return expected.producer_id == txn.prev_producer_id and is_exhausted(expected.producer_epoch)


def _abort_first(shard: "TransactionShard", txn: TransactionMetadata, now: Now) -> CoordinatorResult:
    """The client has to ask again, when the transaction that the former producer left open is aborted."""
    return ending.abort(shard, txn, now, KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS))


def _keep(
    shard: "TransactionShard", txn: TransactionMetadata, command: InitProducerId, now: Now
) -> CoordinatorResult:
    """Give the producer an epoch of its own to decide with; what is open stays as it is."""
    producer_id, epoch = txn.client
    if epoch + 1 >= MAX_EPOCH:
        successor = ProducerIdAndEpoch(shard.new_producer_id(), 0)
    else:
        successor = ProducerIdAndEpoch(producer_id, epoch + 1)
    kept = txn.kept_for(successor, command.timeout_ms, now.wall_ms)
    ongoing = ProducerIdAndEpoch(txn.producer_id, txn.producer_epoch)
    return shard.transition(kept, Initialized(*successor, ongoing))
