"""Connections to other nodes: kept while they hold, replaced when they break or the address changes."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any

import pytest

from odradek.client.broker_connections import BrokerConnections, Endpoint
from odradek.core.errors import ErrorCode, KafkaError
from odradek.runtime.real import RealRuntime
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types, response_types
from tests.unit.client.fake_broker import FakeBroker, HangUp, Silence, always, fake_broker

HEARTBEAT = request_types(ApiKey.HEARTBEAT).HeartbeatRequest(group_id="g", member_id="m")
ANSWER = response_types(ApiKey.HEARTBEAT).HeartbeatResponse(error_code=27)
NODE = 2


class World:
    """Two brokers, and where the node is said to be."""

    def __init__(self, first: FakeBroker, second: FakeBroker) -> None:
        self.first, self.second = first, second
        for broker in (first, second):
            broker.handlers[ApiKey.HEARTBEAT] = always(ANSWER)
        self.endpoints: dict[int, Endpoint] = {NODE: ("127.0.0.1", first.port)}
        self.connections = BrokerConnections(RealRuntime(), "test", 30_000, self.endpoints.get)

    async def ask(self, min_version: int = 0) -> Any:
        return await self.connections.ask(NODE, ApiKey.HEARTBEAT, HEARTBEAT, min_version)

    async def refusal(self, min_version: int = 0) -> ErrorCode:
        with pytest.raises(KafkaError) as refused:
            await self.ask(min_version)
        return refused.value.code


def run(scenario: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            brokers = [await stack.enter_async_context(fake_broker(i)) for i in (1, 2)]
            world = World(*brokers)
            stack.callback(world.connections.close)
            await scenario(world)

    asyncio.run(main())


def test_all_who_ask_share_a_connection() -> None:
    async def scenario(world: World) -> None:
        answers = await asyncio.gather(*(world.ask() for _ in range(3)))
        assert [answer.error_code for answer in answers] == [27, 27, 27]
        assert (await world.ask()).error_code == 27
        assert len(world.first.requests(ApiKey.API_VERSIONS)) == 1

    run(scenario)


def test_who_gives_up_does_not_end_the_connection_that_others_wait_for() -> None:
    async def scenario(world: World) -> None:
        impatient, patient = (asyncio.ensure_future(world.ask()) for _ in range(2))
        await asyncio.sleep(0)
        impatient.cancel()
        assert (await patient).error_code == 27

    run(scenario)


def test_a_broken_connection_is_replaced() -> None:
    async def scenario(world: World) -> None:
        world.first.handlers[ApiKey.HEARTBEAT] = _raise(HangUp)
        assert await world.refusal() is ErrorCode.NETWORK_EXCEPTION
        world.first.handlers[ApiKey.HEARTBEAT] = always(ANSWER)
        assert (await world.ask()).error_code == 27

    run(scenario)


def test_a_node_that_moved_is_asked_where_it_is_now() -> None:
    async def scenario(world: World) -> None:
        await world.ask()
        world.endpoints[NODE] = ("127.0.0.1", world.second.port)
        await world.ask()
        assert len(world.second.requests(ApiKey.HEARTBEAT)) == 1
        await asyncio.sleep(0.01)
        assert world.first.connections == []

    run(scenario)


def test_who_waits_for_the_old_address_of_a_node_hears_of_it() -> None:
    async def scenario(world: World) -> None:
        world.first.handlers[ApiKey.API_VERSIONS] = _raise(Silence)
        waiting = asyncio.ensure_future(world.refusal())
        await asyncio.sleep(0.01)
        world.endpoints[NODE] = ("127.0.0.1", world.second.port)
        await world.ask()
        assert await waiting is ErrorCode.BROKER_NOT_AVAILABLE

    run(scenario)


def test_a_node_without_an_address_and_one_that_refuses_are_not_available() -> None:
    async def scenario(world: World) -> None:
        world.first.close()
        assert await world.refusal() is ErrorCode.BROKER_NOT_AVAILABLE
        world.endpoints.clear()
        assert await world.refusal() is ErrorCode.BROKER_NOT_AVAILABLE

    run(scenario)


def test_no_answer_in_time_is_an_error_and_the_end_of_the_connection() -> None:
    async def scenario(world: World) -> None:
        (await world.connections.get(NODE))._timeout_ms = 50
        world.first.handlers[ApiKey.HEARTBEAT] = _raise(Silence)
        assert await world.refusal() is ErrorCode.NETWORK_EXCEPTION
        world.first.handlers[ApiKey.HEARTBEAT] = always(ANSWER)
        assert (await world.ask()).error_code == 27
        assert len(world.first.requests(ApiKey.API_VERSIONS)) == 2

    run(scenario)


def test_a_node_of_older_versions_only_is_not_asked() -> None:
    async def scenario(world: World) -> None:
        world.first.api_limits[ApiKey.HEARTBEAT] = (0, 2)
        assert await world.refusal(min_version=3) is ErrorCode.UNSUPPORTED_VERSION
        assert world.first.requests(ApiKey.HEARTBEAT) == []

    run(scenario)


def _raise(error: type[Exception]) -> Callable[[Any], Any]:
    def handler(request: Any) -> Any:
        raise error

    return handler
