"""ListTransactions and DescribeTransactions."""

from typing import TYPE_CHECKING

from odradek.coordinators.shard import CoordinatorResult, Now, Ticket
from odradek.coordinators.transactions.commands import DescribeTransaction, ListTransactions
from odradek.coordinators.transactions.metadata import TransactionMetadata
from odradek.core.errors import ErrorCode, KafkaError
from odradek.runtime.slices import STEP, Paced

if TYPE_CHECKING:
    from odradek.coordinators.transactions.shard import TransactionShard


def describe(
    shard: "TransactionShard", command: DescribeTransaction, _: Ticket, __: Now
) -> CoordinatorResult:
    txn = shard.transactions.get(command.transactional_id)
    if txn is None:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    return CoordinatorResult(txn)


def list_transactions(
    shard: "TransactionShard", command: ListTransactions, _: Ticket, now: Now
) -> Paced[CoordinatorResult]:
    found = []
    for txn in shard.transactions.values():
        yield STEP
        if not _matches(txn, command, now):
            continue
        if command.pattern is None or (yield from command.pattern.matches(txn.transactional_id)):
            found.append(txn)
    return CoordinatorResult(found)


def _matches(txn: TransactionMetadata, wanted: ListTransactions, now: Now) -> bool:
    if wanted.producer_ids and txn.producer_id not in wanted.producer_ids:
        return False
    if wanted.states and txn.state not in wanted.states:
        return False
    # As in Apache Kafka: the duration of an ended transaction counts from its start, of one never begun from
    # 1970.
    return wanted.min_duration_ms < 0 or now.wall_ms - txn.start_ms > wanted.min_duration_ms
