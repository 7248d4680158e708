"""EndTxn: decides whether a transaction commits or aborts. The decision is final when its record is
committed.

Below transaction version 2 a producer keeps its epoch, so an EndTxn in a completed state may be a retry.
Since version 2 every end bumps the epoch, so a retry has the previous epoch.
"""

import logging
from typing import TYPE_CHECKING, Any

from odradek.coordinators.shard import CoordinatorResult, Now, Ticket
from odradek.coordinators.transactions.commands import EndTxn, WriteMarkers
from odradek.coordinators.transactions.metadata import (
    EPOCH_PER_TRANSACTION,
    MAX_EPOCH,
    TransactionMetadata,
    is_exhausted,
)
from odradek.coordinators.transactions.states import AT_REST, PREPARED, TxnState
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerIdAndEpoch

if TYPE_CHECKING:
    from odradek.coordinators.transactions.shard import TransactionShard

_log = logging.getLogger(__name__)

UNCHANGED = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
"""The answer for a client that keeps its epoch."""
_OUTCOME = {
    TxnState.PREPARE_COMMIT: True,
    TxnState.COMPLETE_COMMIT: True,
    TxnState.PREPARE_ABORT: False,
    TxnState.COMPLETE_ABORT: False,
}


def end(shard: "TransactionShard", command: EndTxn, _: Ticket, now: Now) -> CoordinatorResult:
    txn = shard.transactions.get(command.transactional_id)
    if txn is None:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    is_next = False
    if command.client_version < EPOCH_PER_TRANSACTION:
        _check_same_epoch(shard, txn, command)
        is_next = _is_of_the_next(shard, command)
    elif _is_answered(shard, txn, command):
        return CoordinatorResult(txn.client)
    shard.speakers.heard(command.transactional_id, command.connection)
    if shard.is_pending(txn):
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if txn.state in PREPARED:
        if _OUTCOME[txn.state] is not command.commit and not is_next:
            raise _invalid(txn, command.commit)
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if txn.state in AT_REST:
        if command.client_version < EPOCH_PER_TRANSACTION:
            # Aborting a transaction that never began changes nothing. Apache refuses it, and the producer
            # fails.
            if _OUTCOME.get(txn.state, False) is not command.commit and not is_next:
                raise _invalid(txn, command.commit)
            return CoordinatorResult(UNCHANGED)
        if command.commit:
            raise _invalid(txn, command.commit)
    return _prepare(shard, txn, command, now)


def _check_same_epoch(shard: "TransactionShard", txn: TransactionMetadata, command: EndTxn) -> None:
    """Check the producer by the rules of one epoch for many transactions."""
    producer_id, epoch = command.producer
    if producer_id != txn.client.producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if epoch != txn.client.producer_epoch:
        # Also after a timeout: TRANSACTION_ABORTABLE would not help, because it lacks the epoch of the abort.
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    shard.speakers.require_newest(command.transactional_id, command.connection)


def _is_of_the_next(shard: "TransactionShard", command: EndTxn) -> bool:
    """Whether an abort belongs to a new transaction without partitions, not to the one that was committed
    last.

    Answers on one connection are in order: this client got the answer to its commit before it sends this
    abort. On another connection, the answer to the commit may have been lost.
    """
    return (
        not command.commit
        and command.is_acknowledged
        and shard.speakers.is_newest(command.transactional_id, command.connection)
    )


def _is_answered(shard: "TransactionShard", txn: TransactionMetadata, command: EndTxn) -> bool:
    """Check the producer by the rules of an epoch per transaction. True for a retry of a completed end."""
    (producer_id, epoch), client = command.producer, txn.client
    rotated = (
        producer_id == txn.prev_producer_id
        and epoch == MAX_EPOCH - 1
        and client.producer_epoch == 0
        and client.producer_id != producer_id
    )
    if producer_id != client.producer_id and not rotated:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    # Only an end of version 2 bumps the epoch. After an older one, the previous epoch is that of a
    # predecessor. It must not get the successor's commit as its own.
    bumped = txn.client_version >= EPOCH_PER_TRANSACTION
    retried = bumped and (rotated or client.producer_epoch == epoch + 1)
    current = producer_id == client.producer_id and epoch == client.producer_epoch
    complete = txn.state in (TxnState.COMPLETE_COMMIT, TxnState.COMPLETE_ABORT)
    if txn.state in PREPARED:
        if current:
            # The producer has its answer and begins its next transaction: it must wait, but is not fenced.
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        allowed = retried
    elif complete:
        allowed = retried or current
    else:
        allowed = current
    if not allowed:
        raise shard.fence(command.transactional_id, command.producer)
    if complete and retried:
        if _OUTCOME[txn.state] is not command.commit:
            fence = shard.fence(command.transactional_id, command.producer)
            if fence.code is ErrorCode.TRANSACTION_ABORTABLE:
                raise fence
            raise _invalid(txn, command.commit)
        return True
    return False


def _invalid(txn: TransactionMetadata, commit: bool) -> KafkaError:
    asked = "COMMIT" if commit else "ABORT"
    _log.warning("Transaction %r in state %s cannot %s", txn.transactional_id, txn.state.name, asked)
    return KafkaError(ErrorCode.INVALID_TXN_STATE)


def _prepare(
    shard: "TransactionShard", txn: TransactionMetadata, command: EndTxn, now: Now
) -> CoordinatorResult:
    version = command.client_version
    fresh_id = NO_PRODUCER_ID
    if version >= EPOCH_PER_TRANSACTION and is_exhausted(txn.client.producer_epoch):
        fresh_id = shard.new_producer_id()
    decided = txn.prepared(
        commit=command.commit, client_version=version, fresh_id=fresh_id, now_ms=now.wall_ms
    )
    answer = decided.client if version >= EPOCH_PER_TRANSACTION else UNCHANGED
    return shard.transition(decided, answer)


def abort(shard: "TransactionShard", txn: TransactionMetadata, now: Now, answer: Any) -> CoordinatorResult:
    """Abort an open transaction without a request of its producer, and fence the producer."""
    version = shard.server_version()
    fresh_id = NO_PRODUCER_ID
    if version >= EPOCH_PER_TRANSACTION and is_exhausted(txn.client.producer_epoch):
        fresh_id = shard.new_producer_id()
    decided = txn.fenced(version, now.wall_ms).prepared(
        commit=False, client_version=version, fresh_id=fresh_id, now_ms=now.wall_ms
    )
    return shard.transition(decided, answer)


def markers_of(txn: TransactionMetadata, coordinator_epoch: int) -> WriteMarkers:
    """The markers for the partitions of a decided transaction."""
    return WriteMarkers(
        txn.transactional_id,
        ProducerIdAndEpoch(txn.producer_id, txn.producer_epoch),
        txn.state is TxnState.PREPARE_COMMIT,
        coordinator_epoch,
        txn.client_version,
        txn.partitions,
    )
