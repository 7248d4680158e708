"""Ends transactions over their timeout, and removes unused transactional ids."""

import logging
from typing import TYPE_CHECKING

from odradek.coordinators.shard import CoordinatorResult, Now, Record, Ticket
from odradek.coordinators.transactions import ending
from odradek.coordinators.transactions.commands import ExpireIds
from odradek.coordinators.transactions.metadata import TransactionMetadata
from odradek.coordinators.transactions.states import AT_REST, TxnState
from odradek.core.errors import KafkaError
from odradek.runtime.slices import FEW, Paced

if TYPE_CHECKING:
    from odradek.coordinators.transactions.shard import TransactionShard

_log = logging.getLogger(__name__)


def is_over_time(shard: "TransactionShard", txn: TransactionMetadata, now: Now) -> bool:
    """Whether a transaction is over its timeout. A start in the future means that the clock was set back.
    Then the timeout counts from when the shard first saw this, until the clock has caught up."""
    if txn.state is not TxnState.ONGOING or not txn.has_timeout:
        return False
    if txn.start_ms <= now.wall_ms:
        shard.seen_ahead.pop(txn.transactional_id, None)
        return txn.start_ms + txn.timeout_ms < now.wall_ms
    start_ms, seen_ms = shard.seen_ahead.get(txn.transactional_id, (None, 0))
    if start_ms != txn.start_ms:
        seen_ms = now.steady_ms
        shard.seen_ahead[txn.transactional_id] = txn.start_ms, seen_ms
    return seen_ms + txn.timeout_ms < now.steady_ms


def abort_over_time(shard: "TransactionShard", transactional_id: str, now: Now) -> CoordinatorResult | None:
    """Abort a transaction if it is over its timeout. If that fails, the next tick tries again."""
    txn = shard.transactions.get(transactional_id)
    if txn is None or not is_over_time(shard, txn, now) or shard.is_pending(txn):
        return None
    _log.info(
        "Aborting transaction %r of producer %d: open for %d ms, allowed %d ms",
        transactional_id,
        txn.producer_id,
        now.wall_ms - txn.start_ms,
        txn.timeout_ms,
    )
    try:
        result = ending.abort(shard, txn, now, None)
    except KafkaError as e:
        _log.warning("Cannot abort transaction %r: %s", transactional_id, e)
        return None
    producer = txn.client
    shard.seen_ahead.pop(transactional_id, None)

    def noted(_: Now) -> CoordinatorResult:
        shard.note_timeout(transactional_id, producer)
        return CoordinatorResult()

    result.then = noted
    return result


def expire(shard: "TransactionShard", _: ExpireIds, __: Ticket, now: Now) -> Paced[CoordinatorResult]:
    """Remove ids without a transaction that were not used for transactional.id.expiration.ms."""
    horizon = now.wall_ms - shard.config.id_expiration_ms
    gone: list[Record] = []
    for txn in shard.transactions.values():
        if txn.last_update_ms <= horizon and txn.state in AT_REST and not shard.is_pending(txn):
            gone.append((txn.transactional_id, None))
        yield FEW
    return CoordinatorResult(len(gone), gone, atomic=False)
