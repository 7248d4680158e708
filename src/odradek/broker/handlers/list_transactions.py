"""ListTransactions v0-v2: the transactions of this coordinator, by state, producer, age and pattern."""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.coordinators.transactions.commands import ListTransactions
from odradek.coordinators.transactions.coordinator import TransactionCoordinator
from odradek.coordinators.transactions.states import BY_TITLE, TxnState
from odradek.core.errors import ErrorCode, KafkaError
from odradek.libraries.re2 import Pattern, PatternError
from odradek.runtime.slices import STEP, Slices
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.list_transactions import ListTransactionsRequest


class Needs(Protocol):
    slices: Slices
    transactions: TransactionCoordinator


@serves(ApiKey.LIST_TRANSACTIONS, min_version=0, max_version=2)
async def list_transactions(ctx: RequestContext[Needs], request: "ListTransactionsRequest") -> Any:
    types = responses.list_transactions
    known = {name: state for name, state in BY_TITLE.items() if name in set(request.state_filters)}
    unknown = [name for name in request.state_filters if name not in known]
    response = types.ListTransactionsResponse(unknown_state_filters=unknown)
    if unknown and not known:
        return response  # only unknown states were requested
    try:
        pattern = None
        if request.transactional_id_pattern:
            pattern = await ctx.services.slices.run(Pattern.of(request.transactional_id_pattern))
        found = await ctx.services.transactions.list(
            ListTransactions(
                frozenset(known.values()),
                frozenset(request.producer_id_filters),
                request.duration_filter,
                pattern,
            )
        )
    except PatternError:
        response.error_code = ErrorCode.INVALID_REGULAR_EXPRESSION
        return response
    except KafkaError as e:
        response.error_code = e.code
        return response
    pace = ctx.services.slices.pacer()
    response.transaction_states = []
    for txn in found:
        if txn.state is not TxnState.DEAD:
            response.transaction_states.append(
                types.TransactionState(
                    transactional_id=txn.transactional_id,
                    producer_id=txn.producer_id,
                    transaction_state=txn.state.title,
                )
            )
        await pace(STEP)
    return response
