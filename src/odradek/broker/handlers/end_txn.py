"""EndTxn v0-v5: commit or abort. Since v5 the answer has the producer id and epoch of the next transaction.

Deviation: below v5 an abort of a transaction without partitions succeeds, also after a commit, if the same
connection got the answer to its commit before. Apache Kafka answers INVALID_TXN_STATE, and the producer
fails. librdkafka sends such an abort while the first write of a transaction is still in flight.
"""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.coordinators.transactions.coordinator import TransactionCoordinator
from odradek.coordinators.transactions.metadata import EPOCH_PER_TRANSACTION
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import ProducerIdAndEpoch
from odradek.runtime.reply import Reply
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.end_txn import EndTxnRequest

_FIRST_WITH_FENCED = 2
_FIRST_WITH_ABORTABLE = 4
_FIRST_WITH_IDENTITY = 5


class Needs(Protocol):
    transactions: TransactionCoordinator


@serves(ApiKey.END_TXN, min_version=0, max_version=5)
def end_txn(ctx: RequestContext[Needs], request: "EndTxnRequest") -> Reply[Any]:
    types = responses.end_txn
    client_version = EPOCH_PER_TRANSACTION if ctx.api_version >= _FIRST_WITH_IDENTITY else 0
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)

    connection, whose = ctx.connection, (request.transactional_id, producer)
    is_acknowledged = connection.acknowledged_commit == whose
    if request.committed:
        connection.acknowledged_commit = None

    def ended(identity: ProducerIdAndEpoch) -> Any:
        if request.committed:
            connection.acknowledged_commit = whose
        return types.EndTxnResponse(producer_id=identity.producer_id, producer_epoch=identity.producer_epoch)

    def refused(error: KafkaError) -> Any:
        return types.EndTxnResponse(error_code=told(error.code, ctx.api_version, _FIRST_WITH_ABORTABLE))

    reply = ctx.services.transactions.end(
        request.transactional_id,
        producer,
        commit=request.committed,
        client_version=client_version,
        connection=connection.number,
        is_acknowledged=is_acknowledged,
    )
    return reply.then(ended).otherwise(refused)


def told(code: ErrorCode, version: int, first_with_abortable: int) -> ErrorCode:
    """The error code for a version: clients before v2 do not know PRODUCER_FENCED, and older ones than
    `first_with_abortable` do not know TRANSACTION_ABORTABLE."""
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < first_with_abortable:
        code = ErrorCode.PRODUCER_FENCED
    if code is ErrorCode.PRODUCER_FENCED and version < _FIRST_WITH_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
