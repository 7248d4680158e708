"""UnregisterBroker as the controller decides it: what a broker that is gone for good leaves behind. Pure."""

from typing import TYPE_CHECKING, Any

from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.brokers import leader_and_isr_changes
from odradek.metadata.records import MetadataRecord, UnregisterBrokerRecord
from odradek.metadata.result import Result
from odradek.runtime.slices import FEW, STEP, Paced
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types

if TYPE_CHECKING:
    from odradek.metadata.controller import Controller


_AT_A_TIME = 8


def unregister_broker(c: "Controller", request: Any, now_ms: int, next_offset: int) -> Paced[Result]:
    broker = c.image.brokers.get(request.broker_id)
    if broker is None:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {request.broker_id} is not currently registered"
        )
    if not broker.fenced or c.sessions.is_valid(broker.id, broker.epoch, now_ms):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Broker {broker.id} is alive: stop it before you unregister it"
        )
    held = []
    for entry in c.partitions():
        yield FEW
        if broker.id in entry[2].isr:
            held.append(entry)
    records: list[MetadataRecord] = []
    for start in range(0, len(held), _AT_A_TIME):
        records += leader_and_isr_changes(c, held[start : start + _AT_A_TIME], remove=broker.id)
        yield 2 * STEP * _AT_A_TIME
    records.append(UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch))
    c.sessions.drop(broker.id)
    response = response_types(ApiKey.UNREGISTER_BROKER).UnregisterBrokerResponse(error_message="")
    return Result(records, response)
