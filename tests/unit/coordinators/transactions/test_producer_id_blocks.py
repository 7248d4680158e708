"""Producer ids on a broker: taken from blocks, the next one asked for in time and once."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from odradek.broker.producer_ids import ProducerIds

from odradek.core.errors import ErrorCode, KafkaError
from odradek.sim.world.world import World
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey


class Controller:
    """Answers when it is let to."""

    def __init__(self, block: int = 1000) -> None:
        self.block = block
        self.next = 0
        self.asked: list[tuple[int, int]] = []
        self.error: ErrorCode | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def call(self, api_key: ApiKey, request: Any) -> Any:
        assert api_key is ApiKey.ALLOCATE_PRODUCER_IDS
        self.asked.append((request.broker_id, request.broker_epoch))
        await self.gate.wait()
        if self.error is ErrorCode.NOT_CONTROLLER:
            raise KafkaError(self.error)
        types = responses.allocate_producer_ids
        if self.error is not None:
            return types.AllocateProducerIdsResponse(error_code=self.error)
        self.next += self.block
        return types.AllocateProducerIdsResponse(
            producer_id_start=self.next - self.block, producer_id_len=self.block
        )


def run(scenario: Callable[[Controller, ProducerIds], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        controller = Controller()
        ids = ProducerIds(7, controller)
        ids.broker_epoch = 55
        await scenario(controller, ids)
        await ids.close()

    World(3).run(main())


def refusal(ids: ProducerIds) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        ids.take()
    return refused.value.code


def test_the_next_block_is_asked_for_when_nine_tenths_are_taken() -> None:
    async def scenario(controller: Controller, ids: ProducerIds) -> None:
        await ids.ready()
        assert controller.asked == [(7, 55)]
        assert [ids.take() for _ in range(899)] == list(range(899))
        await asyncio.sleep(1)
        assert len(controller.asked) == 1
        ids.take()
        await asyncio.sleep(1)
        assert len(controller.asked) == 2
        assert [ids.take() for _ in range(200)] == list(range(900, 1100))

    run(scenario)


def test_one_request_is_in_flight_and_clients_ask_again_when_ids_run_dry() -> None:
    async def scenario(controller: Controller, ids: ProducerIds) -> None:
        await ids.ready()
        controller.gate.clear()
        assert [ids.take() for _ in range(1000)] == list(range(1000))
        for _ in range(10):
            assert refusal(ids) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            await asyncio.sleep(0.1)
        assert len(controller.asked) == 2
        controller.gate.set()
        await asyncio.sleep(0.1)
        assert ids.take() == 1000

    run(scenario)


@pytest.mark.parametrize("error", [ErrorCode.NOT_CONTROLLER, ErrorCode.STALE_BROKER_EPOCH])
def test_a_refused_request_is_made_again_when_the_next_id_is_taken(error: ErrorCode) -> None:
    async def scenario(controller: Controller, ids: ProducerIds) -> None:
        controller.error = error
        await ids.ready()
        assert refusal(ids) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await asyncio.sleep(0.1)
        controller.error = None
        assert refusal(ids) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await asyncio.sleep(0.1)
        assert ids.take() == 0

    run(scenario)


def test_a_client_does_not_wait_long_for_a_controller_that_does_not_answer() -> None:
    async def scenario(controller: Controller, ids: ProducerIds) -> None:
        controller.gate.clear()
        await asyncio.wait_for(ids.ready(), 1.1)
        assert refusal(ids) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    run(scenario)
