"""InitProducerId v0-v6: a producer id and epoch, bound to the transactional id if there is one.

Deviations: v6 (KIP-939: two-phase commit, and prepared transactions that stay open) is served and advertised.
Apache 4.3.1 serves it only with `unstable.api.versions.enable` and does not keep transactions open yet. If no
producer id is available, the request waits for the controller instead of failing.
"""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.coordinators.transactions.commands import Initialized
from odradek.coordinators.transactions.coordinator import TransactionCoordinator
from odradek.coordinators.transactions.producer_ids import ProducerIds
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerIdAndEpoch
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.init_producer_id import InitProducerIdRequest

_FIRST_WITH_FENCED = 4
_FIRST_WITH_ABORTABLE = 5


class Needs(Protocol):
    producer_ids: ProducerIds
    transactions: TransactionCoordinator


@serves(ApiKey.INIT_PRODUCER_ID, min_version=0, max_version=6)
async def init_producer_id(ctx: RequestContext[Needs], request: "InitProducerIdRequest") -> Any:
    types = responses.init_producer_id
    try:
        given = await _init(ctx, request)
    except KafkaError as e:
        return types.InitProducerIdResponse(
            error_code=_told(e.code, ctx.api_version),
            producer_id=NO_PRODUCER_ID,
            producer_epoch=NO_PRODUCER_EPOCH,
        )
    return types.InitProducerIdResponse(
        producer_id=given.producer_id,
        producer_epoch=given.producer_epoch,
        ongoing_txn_producer_id=given.ongoing.producer_id,
        ongoing_txn_producer_epoch=given.ongoing.producer_epoch,
    )


async def _init(ctx: RequestContext[Needs], request: "InitProducerIdRequest") -> Initialized:
    services = ctx.services
    if request.transactional_id == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    await services.producer_ids.ready()
    if request.transactional_id is None:
        return Initialized(services.producer_ids.take(), 0)
    expected = None
    if request.producer_id != NO_PRODUCER_ID:
        expected = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    return await services.transactions.init_producer_id(
        request.transactional_id,
        request.transaction_timeout,
        expected,
        ctx.connection.number,
        enable_2pc=request.enable2_pc,
        keep_prepared=request.keep_prepared_txn,
    )


def _told(code: ErrorCode, version: int) -> ErrorCode:
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < _FIRST_WITH_ABORTABLE:
        code = ErrorCode.PRODUCER_FENCED
    if code is ErrorCode.PRODUCER_FENCED and version < _FIRST_WITH_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
