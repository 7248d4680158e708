"""SimNet: the sockets of a process on the simulated network, with the kernel's buffers, errors and
readiness."""

import asyncio
import errno
import os
from collections import deque
from collections.abc import Callable, Sequence

from odradek.core.types import Buffer
from odradek.runtime.api import SYSTEM_BUFFER, ListeningSocket, Socket
from odradek.sim.world.disk import MAX_BUFFERS, SimDisk
from odradek.sim.world.network import Network, Pipe, Signal
from odradek.sim.world.process import Process

CONNECT_TIMEOUT_SECONDS = 30.0
SYN_RETRY_SECONDS = 1.0
_OWN_HOST = frozenset({"", "0.0.0.0", "::", "localhost", "127.0.0.1", "::1"})


class SimSocket:
    """One end of a connection. Its state is the kernel's and outlives the process."""

    __slots__ = (
        "_broken",
        "_closed",
        "_eof",
        "_error",
        "_net",
        "_number",
        "_received",
        "out",
        "peer",
        "reader",
        "vanished",
        "writer",
    )

    out: Pipe

    def __init__(self, net: "SimNet", peer: tuple[str, int]) -> None:
        self._net = net
        self._number = net.network.next_number()
        self.peer = peer
        self.reader: asyncio.Handle | None = None
        self.writer: asyncio.Handle | None = None
        self._received = bytearray()
        self._eof = False
        self._broken = False
        self._error: int | None = None
        self._closed = False
        self.vanished = False

    @property
    def host(self) -> str:
        return self._net.host

    @property
    def over(self) -> bool:
        return self._closed or self._broken or self.vanished

    def fileno(self) -> int:
        return -1 if self._closed else self._number

    def unread(self) -> int:
        return len(self._received)

    # -- what the process calls

    def recv_into(self, buffer: Buffer, /) -> int:
        self._net.process.check()
        self._check_open()
        view = memoryview(buffer).cast("B")
        if not self._received:
            self._raise_error()
            if self._eof or self._broken:
                return 0
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        count = self._shorten(min(len(view), len(self._received)))
        view[:count] = self._received[:count]
        del self._received[:count]
        self._net.event("recv", self._number, count)
        self.update()
        sender = self.out.target
        assert isinstance(sender, SimSocket)
        sender.update()
        return count

    def send(self, data: Buffer, /) -> int:
        room = self._room()
        view = memoryview(data).cast("B")
        count = self._shorten(min(room, len(view)))
        self._net.event("send", self._number, count)
        network = self._net.network
        if network.faults.reset and network.rng.random() < network.faults.reset:
            self.fail(errno.ECONNRESET)
            self.out.target.fail(errno.ECONNRESET)
            self._raise_error()
        self.out.put(bytes(view[:count]))
        self.update()
        return count

    def sendmsg(self, buffers: Sequence[Buffer], /) -> int:
        if len(buffers) > MAX_BUFFERS:
            raise OSError(errno.EMSGSIZE, os.strerror(errno.EMSGSIZE))
        return self.send(b"".join(buffers))

    def sendfile(self, fd: int, offset: int, count: int, /) -> int:
        data = self._net.disk.pread(fd, min(count, self._room()), offset)
        return self.send(data) if data else 0

    def close(self) -> None:
        if self._closed or not self._net.process.alive:
            return
        assert self.reader is None, "remove the reader before closing the socket"
        assert self.writer is None, "remove the writer before closing the socket"
        self._net.event("close", self._number)
        self._net.disown(self)
        self.hang_up()

    # -- what the kernel and the network do

    def hang_up(self) -> None:
        """Close the stream; with a reset if received bytes were not read."""
        if not self.over:
            self.out.put(Signal.RESET if self._received else Signal.FIN)
        self._closed = True
        self._received.clear()
        self.update()

    def vanish(self) -> None:
        """The host lost power. After its restart, bytes that still arrive here are refused."""
        self.vanished = True
        self._received.clear()
        self.update()

    def fail(self, code: int) -> None:
        if not self.over:
            self._broken = True
            self._error = code
            self.update()

    def receive(self, item: bytes | Signal) -> None:
        if self._closed or self.vanished:
            if isinstance(item, bytes):
                self.out.put(Signal.RESET)
        elif item is Signal.RESET:
            self.fail(errno.ECONNRESET)
        elif item is Signal.FIN:
            self._eof = True
            self.update()
        elif isinstance(item, bytes) and not self._broken:
            self._received += item
            self.update()

    def update(self) -> None:
        """Report readiness to the loop."""
        loop = self._net.network.loop
        gone = self._closed or self.vanished
        readable = not gone and (self._received or self._eof or self._broken)
        if readable and self.reader is not None:
            loop.set_hot(2 * self._number, self.reader)
        else:
            loop.clear_hot(2 * self._number)
        if self.writer is not None and not gone and (self._broken or self.out.room() > 0):
            loop.set_hot(2 * self._number + 1, self.writer)
        else:
            loop.clear_hot(2 * self._number + 1)

    def _room(self) -> int:
        self._net.process.check_effect()
        self._check_open()
        self._raise_error()
        if self._broken:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        room = self.out.room()
        if room <= 0:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return room

    def _check_open(self) -> None:
        if self._closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    def _raise_error(self) -> None:
        """Raise the error of the connection, once."""
        if self._error is not None:
            code, self._error = self._error, None
            raise OSError(code, os.strerror(code))

    def _shorten(self, count: int) -> int:
        network = self._net.network
        if network.faults.short_count and count > 1 and network.rng.random() < network.faults.short_count:
            return network.rng.randrange(1, count)
        return count


class SimListener:
    __slots__ = ("_closed", "_number", "_waiting", "address", "backlog", "net", "reader")

    def __init__(self, net: "SimNet", address: tuple[str, int], backlog: int) -> None:
        self.net = net
        self._number = net.network.next_number()
        self._closed = False
        self._waiting: deque[SimSocket] = deque()
        self.address = address
        self.backlog = backlog
        self.reader: asyncio.Handle | None = None

    def fileno(self) -> int:
        return -1 if self._closed else self._number

    def accept(self) -> SimSocket:
        self.net.process.check()
        if self._closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        if not self._waiting:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        sock = self._waiting.popleft()
        self.net.event("accept", sock.fileno(), *sock.peer)
        self.net.own(sock)
        self.update()
        return sock

    def close(self) -> None:
        if self._closed or not self.net.process.alive:
            return
        assert self.reader is None, "remove the reader before closing the listener"
        self.hang_up()

    def hang_up(self) -> None:
        """Stop listening, and refuse waiting connections."""
        self._closed = True
        del self.net.listeners[self.address]
        for sock in self._waiting:
            sock.out.put(Signal.RESET)
            sock.vanish()
        self._waiting.clear()
        self.update()

    def arrive(self, client: "SimNet", port: int) -> SimSocket | None:
        """A connection request: the client's end of the new connection, or None if the queue is full."""
        if len(self._waiting) >= self.backlog:
            return None
        network = self.net.network
        near = SimSocket(client, (self.net.host, self.address[1]))
        far = SimSocket(self.net, (client.host, port))
        near.out = network.pipe(near, far)
        far.out = network.pipe(far, near)
        self._waiting.append(far)
        self.update()
        return near

    def update(self) -> None:
        loop = self.net.network.loop
        if self.reader is not None and self._waiting:
            loop.set_hot(2 * self._number, self.reader)
        else:
            loop.clear_hot(2 * self._number)


class SimNet:
    """The sockets of one process on one host."""

    def __init__(
        self,
        network: Network,
        listeners: dict[tuple[str, int], SimListener],
        host: str,
        process: Process,
        disk: SimDisk,
    ) -> None:
        self.network = network
        self.listeners = listeners
        self.host = host
        self.process = process
        self.disk = disk
        self._sockets: dict[int, SimSocket] = {}

    def open_sockets(self) -> list[tuple[str, int]]:
        """Peers of the open connections, for leak checks."""
        return [sock.peer for sock in self._sockets.values()]

    async def resolve(self, host: str) -> str:
        return host

    def listen(self, host: str, port: int, backlog: int = 512) -> SimListener:
        self.process.check_effect()
        address = (self.host, port or self.network.next_port())
        if address in self.listeners:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        if host != self.host and host not in _OWN_HOST:
            raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
        listener = SimListener(self, address, backlog)
        self.listeners[address] = listener
        return listener

    async def connect(self, host: str, port: int, receive_buffer_bytes: int = SYSTEM_BUFFER) -> SimSocket:
        self.process.check_effect()
        target = self.host if host in _OWN_HOST else host
        network = self.network
        own_port = network.next_port()
        deadline = network.loop.time() + CONNECT_TIMEOUT_SECONDS
        self.event("connect", target, port)
        while True:
            await asyncio.sleep(network.latency_seconds())
            # A connection needs an answer, and so does a refusal.
            if network.reachable(self.host, target) and network.reachable(target, self.host):
                listener = self.listeners.get((target, port))
                if listener is None:
                    await asyncio.sleep(network.latency_seconds())
                    raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
                sock = listener.arrive(self, own_port)
                if sock is not None:
                    break
            if network.loop.time() + SYN_RETRY_SECONDS > deadline:
                raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
            await asyncio.sleep(SYN_RETRY_SECONDS)
        self.own(sock)
        try:
            await asyncio.sleep(network.latency_seconds())
        except BaseException:
            sock.close()
            raise
        return sock

    def add_reader(self, sock: Socket | ListeningSocket, callback: Callable[[], None]) -> None:
        assert isinstance(sock, SimSocket | SimListener)
        self.remove_reader(sock)
        sock.reader = self._handle(sock, callback)
        sock.update()

    def remove_reader(self, sock: Socket | ListeningSocket) -> None:
        assert isinstance(sock, SimSocket | SimListener)
        if sock.reader is not None:
            sock.reader.cancel()
            sock.reader = None
            sock.update()

    def add_writer(self, sock: Socket, callback: Callable[[], None]) -> None:
        assert isinstance(sock, SimSocket)
        self.remove_writer(sock)
        sock.writer = self._handle(sock, callback)
        sock.update()

    def remove_writer(self, sock: Socket) -> None:
        assert isinstance(sock, SimSocket)
        if sock.writer is not None:
            sock.writer.cancel()
            sock.writer = None
            sock.update()

    def own(self, sock: SimSocket) -> None:
        self._sockets[sock.fileno()] = sock

    def disown(self, sock: SimSocket) -> None:
        del self._sockets[sock.fileno()]

    def event(self, what: str, *details: object) -> None:
        self.network.trace.event(self.process.name, what, *details)

    def crash(self, *, silently: bool) -> None:
        """The process is dead: the kernel closes its connections, unless the machine lost power."""
        for listener in [x for x in self.listeners.values() if x.net is self]:
            listener.reader = None
            listener.hang_up()
        for sock in self._sockets.values():
            sock.reader = sock.writer = None
            if silently:
                sock.vanish()
            else:
                sock.hang_up()
        self._sockets.clear()

    def _handle(self, sock: SimSocket | SimListener, callback: Callable[[], None]) -> asyncio.Handle:
        self.process.check()
        if sock.fileno() < 0:
            raise ValueError("the socket is closed")
        return self.network.loop.readiness(callback)
