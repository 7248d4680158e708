"""UnregisterBroker removes a stopped broker, also from every ISR, and refuses one that is alive."""

from typing import Any

from odradek.core.errors import ErrorCode
from odradek.metadata.records import FENCE, BrokerRegistrationChangeRecord
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.unit.controller.harness import Harness, with_one_broker


def unregister(h: Harness, broker_id: int) -> Any:
    types = request_types(ApiKey.UNREGISTER_BROKER)
    return h.call(ApiKey.UNREGISTER_BROKER, types.UnregisterBrokerRequest(broker_id=broker_id))


def test_a_broker_that_is_gone_is_forgotten_and_leads_nothing() -> None:
    h = with_one_broker()
    h.start_broker(2)
    h.create("t", assignments={0: [2, 1]}, partitions=-1, replication_factor=-1)
    h.now_ms += 5_000
    h.heartbeat(1)
    h.now_ms += 5_000
    assert h.expire() == 2
    answer = unregister(h, 2)
    assert (answer.error_code, answer.error_message) == (0, "")
    assert h.kinds()[-1] == "UnregisterBrokerRecord"
    assert list(h.image.brokers) == [1]
    partition = h.image.topics_by_name["t"].partitions[0]
    assert (partition.leader, partition.isr, partition.replicas) == (1, (1,), (2, 1))
    assert unregister(h, 2).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a_forgotten_broker_may_come_again() -> None:
    h = with_one_broker()
    h.register(2)
    h.now_ms += 60_000
    assert unregister(h, 2).error_code == 0
    h.start_broker(2)


def test_a_broker_that_held_many_partitions_is_unregistered_in_steps() -> None:
    h = with_one_broker()
    h.start_broker(2)
    h.create("t", assignments={i: [2, 1] for i in range(100)}, partitions=-1, replication_factor=-1)
    registration = h.image.brokers[2]
    change = BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=registration.epoch, fenced=FENCE)
    h.apply([change])
    h.now_ms += 60_000
    request = request_types(ApiKey.UNREGISTER_BROKER).UnregisterBrokerRequest(broker_id=2)
    work = h.controller.handle(ApiKey.UNREGISTER_BROKER, request, h.now_ms, h.next_offset)
    steps = []
    try:
        while True:
            steps.append(next(work))
    except StopIteration as done:
        result = done.value
    assert len(result.records) == 101
    assert len(steps) >= 100 and max(steps) < 1_000


def test_a_broker_that_is_alive_is_not_unregistered() -> None:
    h = with_one_broker()
    h.register(2)
    for broker_id in (1, 2):
        answer = unregister(h, broker_id)
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert answer.error_message == f"Broker {broker_id} is alive: stop it before you unregister it"
    assert h.records == []
    assert list(h.image.brokers) == [1, 2]
