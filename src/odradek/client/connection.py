"""One connection to one broker: requests pipelined, answered in order, versions negotiated at the start.

client.py decides which broker to ask, and whether to retry.
"""

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from odradek import __version__
from odradek.core.errors import ErrorCode, KafkaError, ProtocolError
from odradek.runtime.api import Runtime, Socket
from odradek.wire.api_keys import ApiKey
from odradek.wire.headers import encode_request, parse_response_header
from odradek.wire.messages import request_types, response_decoder, versions

_SIZE = struct.Struct(">i")
_ERROR_CODE = struct.Struct(">h")
_LARGEST_RESPONSE_BYTES = 1 << 30
_LARGEST_SEND = 1 << 20


class _Waiting(NamedTuple):
    """A request that has been sent and not been answered."""

    api_key: int
    version: int
    correlation_id: int
    answer: "asyncio.Future[tuple[memoryview, int]]"


class Traffic:
    """What went over connections that share it: requests, responses, bytes out and in."""

    __slots__ = ("received_bytes", "requests", "responses", "sent_bytes")

    def __init__(self) -> None:
        self.requests = self.responses = self.sent_bytes = self.received_bytes = 0


class BrokerConnection:
    """Made with `open`. Any failure closes it, and every request in flight fails with the reason."""

    __slots__ = (
        "_client_id", "_correlation_id", "_failure", "_filled", "_frame", "_output", "_runtime",
        "_size_bytes", "_socket", "_timeout_ms", "_waiting", "features", "features_epoch", "host",
        "on_closed", "port", "supported_features", "traffic", "versions",
    )  # fmt: skip

    def __init__(
        self,
        runtime: Runtime,
        socket: Socket,
        host: str,
        port: int,
        client_id: str,
        timeout_ms: int,
        traffic: Traffic,
    ):
        self.host = host
        self.port = port
        self.versions: dict[int, tuple[int, int]] = {}
        self.features: dict[str, int] = {}
        self.features_epoch = -1
        self.supported_features: dict[str, tuple[int, int]] = {}
        self.on_closed: Callable[[], None] | None = None
        self.traffic = traffic
        self._runtime = runtime
        self._socket = socket
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._correlation_id = 0
        self._failure: Exception | None = None
        self._size_bytes = bytearray(4)
        self._frame: memoryview | None = None
        self._filled = 0
        self._output: deque[memoryview] = deque()
        self._waiting: deque[_Waiting] = deque()

    @classmethod
    async def open(
        cls,
        runtime: Runtime,
        host: str,
        port: int,
        *,
        client_id: str,
        request_timeout_ms: int = 30_000,
        traffic: Traffic | None = None,
    ) -> "BrokerConnection":
        """Connect and ask which versions the broker serves. OSError (TimeoutError too) when it cannot be."""
        async with asyncio.timeout(request_timeout_ms / 1000):
            socket = await runtime.net.connect(host, port)
        connection = cls(runtime, socket, host, port, client_id, request_timeout_ms, traffic or Traffic())
        runtime.net.add_reader(socket, connection._on_readable)
        try:
            await connection._negotiate()
        except BaseException as e:
            connection.close(e if isinstance(e, Exception) else None)
            raise
        return connection

    @property
    def is_open(self) -> bool:
        return self._failure is None

    @property
    def is_abandoned(self) -> bool:
        """Whether answers are missing, and nobody waits for them any more."""
        return bool(self._waiting) and all(request.answer.done() for request in self._waiting)

    def close(self, reason: Exception | None = None) -> None:
        """Close it. Requests in flight fail with the reason."""
        if self._failure is not None:
            return
        # Its trace would keep the frames of the loop that called, and all they hold, for as long as this.
        self._failure = (reason or ConnectionAbortedError("the connection was closed")).with_traceback(None)
        self._runtime.net.remove_reader(self._socket)
        if self._output:
            self._runtime.net.remove_writer(self._socket)
            self._output.clear()
        self._socket.close()
        waiting, self._waiting = self._waiting, deque()
        for request in waiting:
            if not request.answer.done():
                request.answer.set_exception(self._failure)
                # Mark it as retrieved: the sender may be gone.
                request.answer.exception()
        if self.on_closed is not None:
            self.on_closed()

    def choose_version(self, api_key: int, version: int | None = None, max_version: int | None = None) -> int:
        """The newest version that both sides know, or the given one; UNSUPPORTED_VERSION if there is none."""
        ours = versions(api_key)
        theirs = self.versions.get(api_key)
        name = ApiKey(api_key).name
        if theirs is None:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{self.host}:{self.port} does not serve {name}")
        first = max(ours[0], theirs[0])
        last = min(ours[1], theirs[1], ours[1] if max_version is None else max_version)
        if version is None:
            version = last
        if not first <= version <= last:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"{self.host}:{self.port} serves {name} in versions {theirs[0]} to {theirs[1]}",
            )
        return version

    async def send(
        self,
        api_key: int,
        request: Any,
        version: int | None = None,
        *,
        max_version: int | None = None,
        timeout_ms: int | None = None,
    ) -> Any:
        """The response. OSError when the connection fails; TimeoutError closes it, answers being in order."""
        version = self.choose_version(api_key, version, max_version)
        frame, position = await self._exchange(api_key, version, request, timeout_ms)
        return response_decoder(api_key, version)(frame, position)[0]

    def send_unanswered(self, api_key: int, request: Any, *, max_version: int | None = None) -> None:
        """Send a request that has no response: produce with acks=0."""
        self._write(api_key, self.choose_version(api_key, None, max_version), request)

    async def _negotiate(self) -> None:
        """The newest ApiVersions first; a broker that does not know it says which one to ask with."""
        types = request_types(ApiKey.API_VERSIONS)
        request = types.ApiVersionsRequest(
            client_software_name="odradek", client_software_version=__version__
        )
        version = versions(ApiKey.API_VERSIONS)[1]
        frame, position = await self._exchange(ApiKey.API_VERSIONS, version, request, None)
        if len(frame) < position + 2:
            raise ProtocolError("the answer to ApiVersions is cut short")
        (error,) = _ERROR_CODE.unpack_from(frame, position)
        if error == ErrorCode.UNSUPPORTED_VERSION:
            # That answer has the form of v0, whatever the question's version was.
            response, _ = response_decoder(ApiKey.API_VERSIONS, 0)(frame, position)
            served = [api.max_version for api in response.api_keys if api.api_key == ApiKey.API_VERSIONS]
            version = min(version, *served) if served else 0
            frame, position = await self._exchange(ApiKey.API_VERSIONS, version, request, None)
        response, _ = response_decoder(ApiKey.API_VERSIONS, version)(frame, position)
        if response.error_code:
            raise KafkaError(ErrorCode(response.error_code), "ApiVersions failed")
        self.versions = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
        self.features = {f.name: f.max_version_level for f in response.finalized_features or ()}
        self.features_epoch = response.finalized_features_epoch
        self.supported_features = {
            f.name: (f.min_version, f.max_version) for f in response.supported_features or ()
        }

    async def _exchange(
        self, api_key: int, version: int, request: Any, timeout_ms: int | None
    ) -> tuple[memoryview, int]:
        """The response frame and the position of its body."""
        correlation_id = self._write(api_key, version, request)
        answer: asyncio.Future[tuple[memoryview, int]] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(api_key, version, correlation_id, answer))
        try:
            async with asyncio.timeout((self._timeout_ms if timeout_ms is None else timeout_ms) / 1000):
                return await answer
        except TimeoutError:
            name = ApiKey(api_key).name
            error = TimeoutError(f"no answer to {name} from {self.host}:{self.port} in time")
            self.close(error)
            raise error from None

    def _write(self, api_key: int, version: int, request: Any) -> int:
        if self._failure is not None:
            raise ConnectionAbortedError(f"the connection is closed: {self._failure}")
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        frame = encode_request(api_key, version, self._correlation_id, self._client_id, request)
        self._output.append(memoryview(frame))
        self.traffic.requests += 1
        self.traffic.sent_bytes += len(frame)
        if len(self._output) == 1:
            self._send_output()
            if self._failure is None and self._output:
                self._runtime.net.add_writer(self._socket, self._on_writable)
        if self._failure is not None:
            raise ConnectionAbortedError(f"the connection is closed: {self._failure}")
        return self._correlation_id

    def _on_writable(self) -> None:
        self._send_output()
        if self._failure is None and not self._output:
            self._runtime.net.remove_writer(self._socket)

    def _send_output(self) -> None:
        output = self._output
        try:
            while output:
                sent = self._socket.send(output[0][:_LARGEST_SEND])
                if sent == len(output[0]):
                    output.popleft()
                else:
                    output[0] = output[0][sent:]
        except (BlockingIOError, InterruptedError):
            return
        except OSError as e:
            self.close(e)

    def _on_readable(self) -> None:
        try:
            while self._failure is None and self._receive():
                pass
        except (BlockingIOError, InterruptedError):
            return
        except (OSError, ProtocolError) as e:
            self.close(e)

    def _receive(self) -> bool:
        """Read once; True when there may be more."""
        target = self._frame if self._frame is not None else memoryview(self._size_bytes)
        count = self._socket.recv_into(target[self._filled :])
        if count == 0:
            raise ConnectionResetError(f"{self.host}:{self.port} closed the connection")
        self._filled += count
        if self._filled < len(target):
            return True
        self._filled = 0
        if self._frame is None:
            if self._size_bytes == b"HTTP":
                raise ProtocolError(f"{self.host}:{self.port} speaks HTTP, not Kafka's protocol")
            (size,) = _SIZE.unpack(self._size_bytes)
            if not 4 <= size <= _LARGEST_RESPONSE_BYTES:
                raise ProtocolError(f"{self.host}:{self.port} announced a response of {size} bytes")
            self._frame = memoryview(bytearray(size))
        else:
            frame, self._frame = self._frame, None
            self._on_frame(frame)
        return True

    def _on_frame(self, frame: memoryview) -> None:
        if not self._waiting:
            raise ProtocolError(f"{self.host}:{self.port} sent a response to no request")
        request = self._waiting[0]
        correlation_id, position = parse_response_header(frame, 0, request.api_key, request.version)
        if correlation_id != request.correlation_id:
            raise ProtocolError(f"{self.host}:{self.port} answered out of order")
        self._waiting.popleft()
        self.traffic.responses += 1
        self.traffic.received_bytes += _SIZE.size + len(frame)
        if not request.answer.done():
            request.answer.set_result((frame, position))
