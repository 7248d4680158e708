"""What ends by itself: transactions over their time, and transactional ids that nobody uses."""

import logging
from typing import TYPE_CHECKING

from odradek.coordinators.shard import Now, Record, Result, Ticket
from odradek.coordinators.transactions import ending
from odradek.coordinators.transactions.commands import ExpireIds
from odradek.coordinators.transactions.metadata import TransactionMetadata
from odradek.coordinators.transactions.states import AT_REST, TxnState
from odradek.core.errors import KafkaError
from odradek.runtime.slices import FEW, Paced

if TYPE_CHECKING:
    from odradek.coordinators.transactions.shard import TransactionShard

log = logging.getLogger("odradek.coordinators.transactions")


def is_over_time(txn: TransactionMetadata, now: Now) -> bool:
    return txn.state is TxnState.ONGOING and txn.has_timeout and txn.start_ms + txn.timeout_ms < now.wall_ms


def abort_over_time(shard: "TransactionShard", transactional_id: str, now: Now) -> Result | None:
    """Abort a transaction, if it is over its time; where that cannot be now, the next look will."""
    txn = shard.transactions.get(transactional_id)
    if txn is None or not is_over_time(txn, now) or shard.is_pending(txn):
        return None
    log.info(
        "Aborting transaction %r of producer %d: open for %d ms, allowed %d ms",
        transactional_id,
        txn.producer_id,
        now.wall_ms - txn.start_ms,
        txn.timeout_ms,
    )
    try:
        result = ending.abort(shard, txn, now, None)
    except KafkaError as e:
        log.warning("Cannot abort transaction %r: %s", transactional_id, e)
        return None
    producer = txn.client

    def noted(_: Now) -> Result:
        shard.note_timeout(transactional_id, producer)
        return Result()

    result.then = noted
    return result


def expire(shard: "TransactionShard", _: ExpireIds, __: Ticket, now: Now) -> Paced[Result]:
    """Remove ids at rest that have not been used for transactional.id.expiration.ms."""
    horizon = now.wall_ms - shard.config.id_expiration_ms
    gone: list[Record] = []
    for txn in shard.transactions.values():
        if txn.last_update_ms <= horizon and txn.state in AT_REST and not shard.is_pending(txn):
            gone.append((txn.transactional_id, None))
        yield FEW
    return Result(len(gone), gone, atomic=False)
