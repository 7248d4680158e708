"""The HTTP server over real sockets: keep-alive, pipelining, refusals, failures."""

import asyncio
import contextlib

from odradek.http import server as server_module
from odradek.http.message import Request, Response, text
from odradek.http.server import HttpServer
from odradek.runtime.real import RealRuntime


async def handler(request: Request) -> Response:
    if request.path == "/big":
        return Response(200, b"x" * 5_000_000)
    if request.path == "/broken":
        raise RuntimeError("planted")
    return text(200, request.path)


@contextlib.asynccontextmanager
async def serving(max_connections=64):
    runtime = RealRuntime()
    server = HttpServer(runtime, handler, max_connections)
    host, port = server.listen("127.0.0.1", 0)
    try:
        yield host, port
    finally:
        await server.close()
        runtime.close()


async def talk(address, data):
    """Send bytes, close our side's writing only when the server has answered all of it."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(data)
    try:
        return await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()


CLOSE = b"Connection: close\r\n\r\n"


def test_requests_on_one_connection_are_answered_in_order():
    async def run():
        async with serving() as address:
            answer = await talk(
                address, b"GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\nGET /c HTTP/1.1\r\n" + CLOSE
            )
        assert [body for body in answer.split() if body.startswith(b"/")] == [b"/a", b"/b", b"/c"]

    asyncio.run(run())


def test_a_large_answer_arrives_whole():
    async def run():
        async with serving() as address:
            answer = await talk(address, b"GET /big HTTP/1.1\r\n" + CLOSE)
        assert len(answer.partition(b"\r\n\r\n")[2]) == 5_000_000

    asyncio.run(run())


def test_a_failing_handler_is_a_500_and_the_server_goes_on():
    async def run():
        async with serving() as address:
            assert b" 500 " in await talk(address, b"GET /broken HTTP/1.1\r\n" + CLOSE)
            assert b" 200 " in await talk(address, b"GET /fine HTTP/1.1\r\n" + CLOSE)

    asyncio.run(run())


def test_garbage_and_endless_heads_are_refused_and_closed():
    async def run():
        async with serving() as address:
            assert (await talk(address, b"\x16\x03\x01\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
            assert (await talk(address, b"a" * 8192)).startswith(b"HTTP/1.1 431 ")

    asyncio.run(run())


def test_silence_is_ended(monkeypatch):
    monkeypatch.setattr(server_module, "SILENCE_S", 0.05)

    async def run():
        async with serving() as address:
            assert await talk(address, b"GET /slow") == b""

    asyncio.run(run())


def test_too_many_connections_close_the_oldest():
    async def run():
        async with serving(max_connections=2) as address:
            streams = []
            for _ in range(3):
                streams.append(await asyncio.open_connection(*address))
                streams[-1][1].write(b"GET /x HTTP/1.1\r\n\r\n")
                await streams[-1][0].readuntil(b"/x\n")
            assert await asyncio.wait_for(streams[0][0].read(), 10) == b""
            for _, writer in streams:
                writer.close()

    asyncio.run(run())
