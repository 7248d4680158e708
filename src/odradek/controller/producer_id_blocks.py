"""AllocateProducerIds: allocates blocks of producer ids. Each block is allocated once. Pure."""

from typing import TYPE_CHECKING

from odradek.controller.brokers import registered
from odradek.controller.result import ControllerResult
from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.records import ProducerIdsRecord
from odradek.wire import responses

if TYPE_CHECKING:
    from odradek.controller.controller import Controller
    from odradek.wire.requests.allocate_producer_ids import AllocateProducerIdsRequest

BLOCK_SIZE = 1000
_MAX_PRODUCER_ID = (1 << 63) - 1


def allocate_producer_ids(
    c: "Controller", request: "AllocateProducerIdsRequest", now_ms: int, next_offset: int
) -> ControllerResult:
    registered(c, request.broker_id, request.broker_epoch)
    start = c.image.next_producer_id
    if start > _MAX_PRODUCER_ID - BLOCK_SIZE:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Exhausted all producerIds as the next block's end producerId has exceeded the int64 type limit",
        )
    record = ProducerIdsRecord(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        next_producer_id=start + BLOCK_SIZE,
    )
    types = responses.allocate_producer_ids
    return ControllerResult(
        [record], types.AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=BLOCK_SIZE)
    )
