"""One connection: version negotiation, answers in order, and failures that reach every waiting request."""

import asyncio
import struct
from typing import Any

import pytest

from odradek.client.connection import BrokerConnection
from odradek.core.errors import ErrorCode, KafkaError, ProtocolError
from odradek.runtime.real import RealRuntime
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types, response_encoder, response_types
from tests.unit.client.fake_broker import FakeBroker, HangUp, Silence, fake_broker

HEARTBEAT = request_types(ApiKey.HEARTBEAT).HeartbeatRequest(group_id="g", member_id="m")


async def connect(broker: FakeBroker, timeout_ms: int = 10_000) -> BrokerConnection:
    return await BrokerConnection.open(
        RealRuntime(), "127.0.0.1", broker.port, client_id="test", request_timeout_ms=timeout_ms
    )


def heartbeat_answer(error_code: int = 0) -> Any:
    return response_types(ApiKey.HEARTBEAT).HeartbeatResponse(error_code=error_code)


def test_the_newest_version_that_both_know_is_used() -> None:
    async def scenario() -> None:
        async with fake_broker() as broker:
            broker.api_limits[ApiKey.HEARTBEAT] = (0, 2)
            broker.handlers[ApiKey.HEARTBEAT] = lambda _: heartbeat_answer(27)
            connection = await connect(broker)
            assert (await connection.send(ApiKey.HEARTBEAT, HEARTBEAT)).error_code == 27
            await connection.send(ApiKey.HEARTBEAT, HEARTBEAT, max_version=1)
            await connection.send(ApiKey.HEARTBEAT, HEARTBEAT, 0)
            assert [version for key, version, _ in broker.seen if key == ApiKey.HEARTBEAT] == [2, 1, 0]
            with pytest.raises(KafkaError) as refused:
                await connection.send(ApiKey.HEARTBEAT, HEARTBEAT, 3)
            assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
            connection.close()

    asyncio.run(scenario())


def test_an_older_broker_says_which_api_versions_to_ask_with() -> None:
    async def scenario() -> None:
        async with fake_broker() as broker:
            types = response_types(ApiKey.API_VERSIONS)
            only = types.ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=2)
            beats = types.ApiVersion(api_key=ApiKey.HEARTBEAT, min_version=0, max_version=1)

            def serve(sock: Any, frame: bytes) -> None:
                version, correlation_id = struct.unpack_from(">hi", frame, 2)
                served.append(version)
                if version > 2:
                    body = response_encoder(18, 0)(types.ApiVersionsResponse(error_code=35, api_keys=[only]))
                else:
                    body = response_encoder(18, version)(types.ApiVersionsResponse(api_keys=[only, beats]))
                sock.send(struct.pack(">ii", len(body) + 4, correlation_id) + body)

            served: list[int] = []
            broker._serve = serve
            connection = await connect(broker)
            assert served == [4, 2]
            assert connection.versions == {ApiKey.API_VERSIONS: (0, 2), ApiKey.HEARTBEAT: (0, 1)}
            connection.close()

    asyncio.run(scenario())


def test_requests_are_pipelined_and_answered_in_order() -> None:
    async def scenario() -> None:
        async with fake_broker() as broker:
            arrived = asyncio.Event()
            codes = iter(range(1, 6))

            def answer(_request: Any) -> Any:
                if len(broker.requests(ApiKey.HEARTBEAT)) == 5:
                    arrived.set()
                code = next(codes)

                async def later() -> Any:
                    await arrived.wait()
                    return heartbeat_answer(code)

                return later()

            broker.handlers[ApiKey.HEARTBEAT] = answer
            connection = await connect(broker)
            sends = [
                asyncio.create_task(connection.send(ApiKey.HEARTBEAT, HEARTBEAT, timeout_ms=5000))
                for _ in range(5)
            ]
            assert [(await send).error_code for send in sends] == [1, 2, 3, 4, 5]
            connection.close()

    asyncio.run(scenario())


def test_a_large_request_and_a_large_answer_pass_whole() -> None:
    async def scenario() -> None:
        async with fake_broker() as broker:
            asked, answered = request_types(ApiKey.SYNC_GROUP), response_types(ApiKey.SYNC_GROUP)
            broker.handlers[ApiKey.SYNC_GROUP] = lambda request: answered.SyncGroupResponse(
                assignment=request.assignments[0].assignment[:100_000]
            )
            connection = await connect(broker)
            part = asked.SyncGroupRequestAssignment(member_id="m", assignment=bytes(range(256)) * 40_000)
            response = await connection.send(ApiKey.SYNC_GROUP, asked.SyncGroupRequest(assignments=[part]))
            assert response.assignment == (bytes(range(256)) * 40_000)[:100_000]
            connection.close()

    asyncio.run(scenario())


def test_a_closed_connection_fails_all_that_wait() -> None:
    async def scenario() -> None:
        async with fake_broker() as broker:
            answers = iter([Silence, HangUp])

            def refuse(_request: Any) -> Any:
                raise next(answers)

            broker.handlers[ApiKey.HEARTBEAT] = refuse
            connection = await connect(broker)
            first = asyncio.create_task(connection.send(ApiKey.HEARTBEAT, HEARTBEAT))
            second = asyncio.create_task(connection.send(ApiKey.HEARTBEAT, HEARTBEAT))
            for send in (first, second):
                with pytest.raises(ConnectionError):
                    await send
            assert not connection.is_open
            with pytest.raises(ConnectionError):
                await connection.send(ApiKey.HEARTBEAT, HEARTBEAT)

    asyncio.run(scenario())


def test_no_answer_in_time_closes_the_connection() -> None:
    async def scenario() -> None:
        async with fake_broker() as broker:

            def silent(_request: Any) -> Any:
                raise Silence

            broker.handlers[ApiKey.HEARTBEAT] = silent
            connection = await connect(broker)
            with pytest.raises(TimeoutError, match="HEARTBEAT"):
                await connection.send(ApiKey.HEARTBEAT, HEARTBEAT, timeout_ms=30)
            assert not connection.is_open

    asyncio.run(scenario())


def test_nobody_listening_is_an_os_error() -> None:
    async def scenario() -> None:
        async with fake_broker() as broker:
            port = broker.port
        with pytest.raises(ConnectionRefusedError):
            await BrokerConnection.open(RealRuntime(), "127.0.0.1", port, client_id="test")

    asyncio.run(scenario())


@pytest.mark.parametrize("garbage", [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\x04\0\0\0\x63"])
def test_garbage_from_a_broker_closes_the_connection(garbage: bytes) -> None:
    async def scenario() -> None:
        async with fake_broker() as broker:

            def talk_nonsense(_request: Any) -> Any:
                broker.connections[-1].send(garbage)
                raise Silence

            broker.handlers[ApiKey.HEARTBEAT] = talk_nonsense
            connection = await connect(broker)
            with pytest.raises(ProtocolError):
                await connection.send(ApiKey.HEARTBEAT, HEARTBEAT)
            assert not connection.is_open

    asyncio.run(scenario())


def test_an_http_port_is_recognized() -> None:
    async def scenario() -> None:
        async with fake_broker() as broker:

            def answer_as_http(_request: Any) -> Any:
                broker.connections[-1].send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                raise Silence

            broker.handlers[ApiKey.API_VERSIONS] = answer_as_http
            with pytest.raises(ProtocolError, match="speaks HTTP"):
                await connect(broker)

    asyncio.run(scenario())


def test_an_abandoned_request_does_not_disturb_the_next() -> None:
    async def scenario() -> None:
        async with fake_broker() as broker:
            gate = asyncio.Event()
            codes = iter([1, 2])

            def answer(_request: Any) -> Any:
                code = next(codes)

                async def later() -> Any:
                    await gate.wait()
                    return heartbeat_answer(code)

                return later()

            broker.handlers[ApiKey.HEARTBEAT] = answer
            connection = await connect(broker)
            first = asyncio.create_task(connection.send(ApiKey.HEARTBEAT, HEARTBEAT))
            second = asyncio.create_task(connection.send(ApiKey.HEARTBEAT, HEARTBEAT))
            await asyncio.sleep(0)
            first.cancel()
            gate.set()
            assert (await second).error_code == 2
            connection.close()

    asyncio.run(scenario())
