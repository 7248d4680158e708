"""DescribeTransactions v0."""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.coordinators.transactions.coordinator import TransactionCoordinator
from odradek.core.errors import KafkaError
from odradek.runtime.slices import FEW, STEP, Slices
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.describe_transactions import DescribeTransactionsRequest


class Needs(Protocol):
    slices: Slices
    transactions: TransactionCoordinator


@serves(ApiKey.DESCRIBE_TRANSACTIONS, min_version=0, max_version=0)
async def describe_transactions(ctx: RequestContext[Needs], request: "DescribeTransactionsRequest") -> Any:
    types = responses.describe_transactions
    rows = []
    pace = ctx.services.slices.pacer()
    for transactional_id in dict.fromkeys(request.transactional_ids):
        row = types.TransactionState(transactional_id=transactional_id)
        rows.append(row)
        await pace(2 * STEP)
        try:
            txn = await ctx.services.transactions.describe(transactional_id)
        except KafkaError as e:
            row.error_code = e.code
            continue
        row.transaction_state = txn.state.title
        row.transaction_timeout = txn.timeout_ms
        row.transaction_start_time = txn.start_ms
        row.producer_id, row.producer_epoch = txn.producer_id, txn.producer_epoch
        topics: dict[str, list[int]] = {}
        for tp in list(txn.partitions):
            topics.setdefault(tp.topic, []).append(tp.partition)
            await pace(FEW)
        row.topics = []
        for name, indexes in topics.items():
            row.topics.append(types.TopicData(topic=name, partitions=indexes))
            await pace(STEP)
    return types.DescribeTransactionsResponse(transaction_states=rows)
