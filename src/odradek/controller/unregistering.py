"""UnregisterBroker: removes the registration of a stopped broker. Pure."""

from typing import TYPE_CHECKING

from odradek.controller.brokers import leader_and_isr_changes, with_isr
from odradek.controller.result import ControllerResult, check_count
from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.records import UnregisterBrokerRecord
from odradek.runtime.slices import Paced
from odradek.wire import responses

if TYPE_CHECKING:
    from odradek.controller.controller import Controller
    from odradek.wire.requests.unregister_broker import UnregisterBrokerRequest


def unregister_broker(
    c: "Controller", request: "UnregisterBrokerRequest", now_ms: int, next_offset: int
) -> Paced[ControllerResult]:
    broker = c.image.brokers.get(request.broker_id)
    if broker is None:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {request.broker_id} is not currently registered"
        )
    if not broker.fenced or c.sessions.is_valid(broker.id, broker.epoch, now_ms):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Broker {broker.id} is alive: stop it before you unregister it"
        )
    records = yield from leader_and_isr_changes(c, with_isr(c, broker.id), remove=broker.id)
    records.append(UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch))
    check_count(len(records))
    c.sessions.drop(broker.id)
    response = responses.unregister_broker.UnregisterBrokerResponse(error_message="")
    return ControllerResult(records, response)
