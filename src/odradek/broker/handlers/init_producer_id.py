"""InitProducerId v0-v5 for idempotent producers: an id that nobody had before, at epoch 0.

Transactions are not coordinated yet: a transactional id gets UNSUPPORTED_VERSION, as FindCoordinator says of
it too. Clients take that for final and say so, where COORDINATOR_NOT_AVAILABLE would make them ask for ever.
"""

from typing import Any

from odradek.broker.dispatch import RequestContext, serves
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types


@serves(ApiKey.INIT_PRODUCER_ID, min_version=0, max_version=5)
async def init_producer_id(ctx: RequestContext, request: Any) -> Any:
    types = response_types(ApiKey.INIT_PRODUCER_ID)
    code = _check(request)
    if code is ErrorCode.NONE:
        try:
            producer_id = await ctx.node.producer_ids.take()
            return types.InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
        except KafkaError as e:
            # The controller cannot answer now: Apache's way to say "ask again".
            code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if e.retriable else e.code
    return types.InitProducerIdResponse(
        error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
    )


def _check(request: Any) -> ErrorCode:
    if request.transactional_id == "":
        return ErrorCode.INVALID_REQUEST
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE if request.transactional_id is None else ErrorCode.UNSUPPORTED_VERSION
