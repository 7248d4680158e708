"""A connection to a broker for the workloads: requests in, responses out, the fate of each one known.

Deliberately without retries or caches, which would hide what happened to a request from the checkers.
"""

import asyncio
import random
import struct
from collections import deque
from typing import Any

from odradek.broker.apis import REFUSED_BELOW, SERVED
from odradek.runtime.api import Runtime, Socket
from odradek.wire.api_keys import ApiKey
from odradek.wire.headers import encode_request, parse_response_header
from odradek.wire.messages import response_decoder

_SIZE = struct.Struct(">i")
_RECEIVE_BYTES = 64 * 1024

PATIENCE_SECONDS = 8.0


class NoAnswer(Exception):
    """The connection failed before the response came: whether the request was carried out is unknown."""


class Caller:
    """One connection, made when first needed and again after a failure. Each API has a version drawn once."""

    def __init__(
        self, runtime: Runtime, address: tuple[str, int], client_id: str, rng: random.Random
    ) -> None:
        self._runtime = runtime
        self._address = address
        self._client_id = client_id
        self._rng = rng
        self._versions: dict[ApiKey, int] = {}
        self._correlation_id = 0
        self._sock: Socket | None = None
        self._input = bytearray()
        self._output = bytearray()
        self._waiting: deque[tuple[ApiKey, int, int, asyncio.Future[Any]]] = deque()

    def version(self, api_key: ApiKey) -> int:
        version = self._versions.get(api_key)
        if version is None:
            served = SERVED[api_key]
            version = self._rng.randint(max(served.min, REFUSED_BELOW.get(api_key, 0)), served.max)
            self._versions[api_key] = version
        return version

    async def call(self, api_key: ApiKey, request: Any, *, version: int | None = None) -> Any:
        """Send and wait for the response."""
        return await self.answer(await self.send(api_key, request, version=version))

    async def send(
        self, api_key: ApiKey, request: Any, *, version: int | None = None, silent: bool = False
    ) -> "asyncio.Future[Any]":
        """Send without waiting; several may be under way. `silent` requests are never answered."""
        sock = await self._connected()
        if version is None:
            version = self.version(api_key)
        self._correlation_id += 1
        frame = encode_request(api_key, version, self._correlation_id, self._client_id, request)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if silent:
            future.set_result(None)
        else:
            self._waiting.append((api_key, version, self._correlation_id, future))
        self._output += frame
        self._write(sock)
        return future

    async def answer(self, future: "asyncio.Future[Any]") -> Any:
        try:
            return await asyncio.wait_for(future, PATIENCE_SECONDS)
        except TimeoutError:
            self.close()
            raise NoAnswer("no response in time") from None

    def close(self, reason: str = "closed") -> None:
        sock, self._sock = self._sock, None
        if sock is None:
            return
        self._runtime.net.remove_reader(sock)
        self._runtime.net.remove_writer(sock)
        sock.close()
        self._input.clear()
        self._output.clear()
        waiting, self._waiting = self._waiting, deque()
        for _, _, _, future in waiting:
            if not future.done():
                future.set_exception(NoAnswer(reason))
                # Callers that lost interest are no error.
                future.exception()

    async def _connected(self) -> Socket:
        if self._sock is None:
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    self._sock = await self._runtime.net.connect(*self._address)
            except OSError as e:
                raise NoAnswer(f"cannot connect: {e}") from e
            self._runtime.net.add_reader(self._sock, self._on_readable)
        return self._sock

    def _write(self, sock: Socket) -> None:
        try:
            while self._output:
                del self._output[: sock.send(self._output)]
        except BlockingIOError:
            self._runtime.net.add_writer(sock, lambda: self._write(sock))
            return
        except OSError as e:
            self.close(str(e))
            return
        self._runtime.net.remove_writer(sock)

    def _on_readable(self) -> None:
        assert self._sock is not None
        buffer = bytearray(_RECEIVE_BYTES)
        try:
            count = self._sock.recv_into(buffer)
        except BlockingIOError:
            return
        except OSError as e:
            self.close(str(e))
            return
        if count == 0:
            self.close("the broker hung up")
            return
        self._input += buffer[:count]
        while len(self._input) >= _SIZE.size:
            (size,) = _SIZE.unpack_from(self._input)
            if len(self._input) < _SIZE.size + size:
                return
            frame = bytes(self._input[_SIZE.size : _SIZE.size + size])
            del self._input[: _SIZE.size + size]
            self._take(frame)

    def _take(self, frame: bytes) -> None:
        assert self._waiting, "a response that nobody asked for"
        api_key, version, expected, future = self._waiting.popleft()
        correlation_id, position = parse_response_header(frame, 0, api_key, version)
        assert correlation_id == expected, f"response {correlation_id} where {expected} was due"
        response, end = response_decoder(api_key, version)(frame, position)
        assert end == len(frame), f"{api_key.name} v{version}: {len(frame) - end} bytes left over"
        if not future.done():
            future.set_result(response)
