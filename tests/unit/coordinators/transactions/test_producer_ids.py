"""Producer ids on a broker: blocks, asked for ahead of need, one question at a time."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from odradek.coordinators.transactions import producer_ids
from odradek.coordinators.transactions.producer_ids import ProducerIds
from odradek.core.errors import ErrorCode, KafkaError
from odradek.wire.api_keys import ApiKey

BLOCK = 1000


class Controller:
    """Hands out blocks when a test lets it."""

    def __init__(self) -> None:
        self.asked = 0
        self.given = 0
        self.error = 0
        self.open = asyncio.Event()

    async def call(self, api_key: ApiKey, request: Any) -> Any:
        assert (api_key, request.broker_id, request.broker_epoch) == (ApiKey.ALLOCATE_PRODUCER_IDS, 3, 9)
        self.asked += 1
        await self.open.wait()
        if self.error:
            return SimpleNamespace(error_code=self.error)
        self.given += 1
        start = (self.given - 1) * BLOCK
        return SimpleNamespace(error_code=0, producer_id_start=start, producer_id_len=BLOCK)


def run(scenario: Callable[[Controller, ProducerIds], Awaitable[None]]) -> None:
    async def main() -> None:
        controller = Controller()
        ids = ProducerIds(3, controller)
        ids.broker_epoch = 9
        await scenario(controller, ids)
        await ids.close()

    asyncio.run(main())


async def a_few_turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_without_ids_a_producer_is_asked_to_come_back() -> None:
    async def scenario(controller: Controller, ids: ProducerIds) -> None:
        for _ in range(3):
            with pytest.raises(KafkaError) as refused:
                ids.take()
            assert refused.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            await a_few_turns()
        assert controller.asked == 1
        controller.open.set()
        await a_few_turns()
        assert [ids.take() for _ in range(3)] == [0, 1, 2]

    run(scenario)


def test_the_next_block_is_asked_for_when_nine_tenths_are_used() -> None:
    async def scenario(controller: Controller, ids: ProducerIds) -> None:
        controller.open.set()
        await ids.ready()
        taken = [ids.take() for _ in range(899)]
        await a_few_turns()
        assert controller.asked == 1
        taken.append(ids.take())
        await a_few_turns()
        assert controller.asked == 2
        taken += [ids.take() for _ in range(200)]
        assert taken == list(range(1100))
        await a_few_turns()
        assert controller.asked == 2

    run(scenario)


def test_one_question_is_under_way_at_a_time_and_a_refused_one_is_asked_again() -> None:
    async def scenario(controller: Controller, ids: ProducerIds) -> None:
        controller.open.set()
        controller.error = ErrorCode.NOT_CONTROLLER
        await ids.ready()
        with pytest.raises(KafkaError):
            ids.take()
        controller.error = 0
        waits = [asyncio.create_task(ids.ready()) for _ in range(3)]
        await asyncio.gather(*waits)
        assert (controller.asked, controller.given) == (2, 1)
        assert ids.take() == 0

    run(scenario)


def test_a_client_does_not_wait_long_for_a_controller_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(producer_ids, "_READY_SECONDS", 0.01)

    async def scenario(controller: Controller, ids: ProducerIds) -> None:
        await asyncio.wait_for(ids.ready(), 5)
        with pytest.raises(KafkaError) as refused:
            ids.take()
        assert refused.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert controller.asked == 1

    run(scenario)
