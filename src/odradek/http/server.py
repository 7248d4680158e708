"""Serves HTTP on the runtime's Net, one request at a time per connection. What is served is app.py's.

Off the hot path: connections are few, heads small, silence is ended by a timer.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from odradek.http.message import (
    END_OF_HEAD,
    MAX_HEAD_BYTES,
    BadRequest,
    Request,
    Response,
    encode,
    parse_head,
    text,
)
from odradek.runtime.api import ListeningSocket, Runtime, Socket
from odradek.runtime.scope import Scope

_log = logging.getLogger(__name__)

ACCEPT_PAUSE_S = 0.1
SILENCE_S = 30.0

Handler = Callable[[Request], Awaitable[Response]]


class HttpServer:
    """A listener and its connections."""

    def __init__(self, runtime: Runtime, handler: Handler, max_connections: int) -> None:
        self.runtime = runtime
        self.handler = handler
        self._max_connections = max_connections
        self.scope = Scope(self._on_failure)
        self._listener: ListeningSocket | None = None
        self._connections: dict[_HttpConnection, None] = {}

    def listen(self, host: str, port: int) -> tuple[str, int]:
        """Begin to serve; the address, with the port that was picked for 0."""
        listener = self._listener = self.runtime.net.listen(host, port, 16)
        self._accept_from_now()
        return listener.address

    def _accept_from_now(self) -> None:
        if self._listener is not None:
            self.runtime.net.add_reader(self._listener, self._accept)

    async def close(self) -> None:
        if self._listener is not None:
            self.runtime.net.remove_reader(self._listener)
            self._listener.close()
            self._listener = None
        for connection in list(self._connections):
            connection.close()
        await self.scope.close()

    def forget(self, connection: "_HttpConnection") -> None:
        self._connections.pop(connection, None)

    def _accept(self) -> None:
        assert self._listener is not None
        if len(self._connections) >= self._max_connections:
            next(iter(self._connections)).close()
        try:
            sock = self._listener.accept()
        except BlockingIOError:
            return
        except OSError as e:
            _log.warning("Cannot accept an HTTP connection: %s", e)
            self.runtime.net.remove_reader(self._listener)
            asyncio.get_running_loop().call_later(ACCEPT_PAUSE_S, self._accept_from_now)
            return
        self._connections[_HttpConnection(self, sock)] = None

    def _on_failure(self, error: BaseException) -> None:
        _log.error("An HTTP request failed", exc_info=error)


class _HttpConnection:
    """One client: read a head, answer it, read the next."""

    def __init__(self, server: HttpServer, sock: Socket) -> None:
        self._server = server
        self._sock = sock
        self._net = server.runtime.net
        self._received = bytearray()
        self._to_send = memoryview(b"")
        self._keep_alive = False
        self._busy = False
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._silence = self._loop.call_later(SILENCE_S, self.close)
        self._net.add_reader(sock, self._on_readable)

    def _on_readable(self) -> None:
        buffer = bytearray(MAX_HEAD_BYTES)
        try:
            count = self._sock.recv_into(buffer)
        except BlockingIOError:
            return
        except OSError:
            count = 0
        if count == 0:
            self.close()
            return
        self._silence.cancel()
        self._silence = self._loop.call_later(SILENCE_S, self.close)
        self._received += buffer[:count]
        self._next_request()

    def _next_request(self) -> None:
        if self._busy or self._closed:
            return
        end = self._received.find(END_OF_HEAD)
        if end < 0:
            if len(self._received) >= MAX_HEAD_BYTES:
                self._refuse(431)
            elif self._received[:1] == b"\0":
                self._refuse(400)  # a Kafka client, which would wait for an answer until its timeout
            return
        head = bytes(self._received[:end])
        del self._received[: end + len(END_OF_HEAD)]
        try:
            request = parse_head(head)
        except BadRequest as e:
            self._refuse(e.status)
            return
        self._busy = True
        self._net.remove_reader(self._sock)
        self._keep_alive = request.keep_alive
        self._server.scope.spawn(self._answer(request), name=f"http {request.path}")

    async def _answer(self, request: Request) -> None:
        try:
            response = await self._server.handler(request)
        except Exception:
            _log.exception("GET %r failed", request.path)
            response = text(500, "internal error")
        self._send(encode(response, keep_alive=self._keep_alive, body=request.method != "HEAD"))

    def _refuse(self, status: int) -> None:
        self._keep_alive = False
        self._busy = True
        self._net.remove_reader(self._sock)
        self._send(encode(text(status, str(BadRequest(status))), keep_alive=False))

    def _send(self, data: bytes) -> None:
        if not self._closed:
            self._to_send = memoryview(data)
            self._on_writable()

    def _on_writable(self) -> None:
        try:
            while self._to_send:
                self._to_send = self._to_send[self._sock.send(self._to_send) :]
        except BlockingIOError:
            self._net.add_writer(self._sock, self._on_writable)
            return
        except OSError:
            self.close()
            return
        self._net.remove_writer(self._sock)
        if not self._keep_alive:
            self.close()
            return
        self._busy = False
        self._net.add_reader(self._sock, self._on_readable)
        self._next_request()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._silence.cancel()
        self._net.remove_reader(self._sock)
        self._net.remove_writer(self._sock)
        self._sock.close()
        self._server.forget(self)
