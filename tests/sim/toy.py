"""A node of one file for testing the simulator itself: it appends payloads to a log and answers with numbers.

Protocol: a frame is a length (int32) and a payload, which is appended; the reply is its number (int64). On
start the log is scanned and cut after the last whole entry. The flags plant the bugs that tests look for.
"""

import asyncio
import itertools
import os
import struct
import zlib
from collections.abc import Sequence

from odradek.runtime.api import ListeningSocket, Runtime, Socket

PORT = 9092
_ENTRY = struct.Struct(">iI")  # length int32 | crc uint32 | payload
_LENGTH = struct.Struct(">i")
_NUMBER = struct.Struct(">q")


class ToyNode:
    def __init__(
        self, runtime: Runtime, data_dir: str, *, flush: bool = True, recover: bool = True, leak: bool = False
    ) -> None:
        self._runtime = runtime
        self._path = f"{data_dir}/log"
        self._dir = data_dir
        self._flush = flush
        self._recover = recover
        self._leak = leak
        self._listener: ListeningSocket | None = None
        self._connections: dict[int, _Connection] = {}
        self._end = 0
        self._fd = -1
        self.entries: list[bytes] = []

    async def start(self) -> None:
        disk = self._runtime.disk
        disk.makedirs(self._dir)
        disk.fsync_dir("/")
        self._fd = disk.open(self._path, os.O_RDWR | os.O_CREAT)
        disk.fsync_dir(self._dir)
        self._scan()
        listener = self._runtime.net.listen("", PORT)
        self._runtime.net.add_reader(listener, self._accept)
        self._listener = listener

    async def stop(self) -> None:
        net = self._runtime.net
        assert self._listener is not None
        net.remove_reader(self._listener)
        self._listener.close()
        connections = list(self._connections.values())
        for connection in connections:
            connection.close()
        for connection in connections:
            if connection.append is not None:
                await connection.append
        if not self._leak:
            self._runtime.disk.close(self._fd)

    def forget(self, connection: "_Connection") -> None:
        del self._connections[connection.number]

    async def append(self, payload: bytes) -> int:
        disk = self._runtime.disk
        entry = _ENTRY.pack(len(payload), zlib.crc32(payload)) + payload
        done = 0
        while done < len(entry):
            done += disk.pwrite(self._fd, entry[done:], self._end + done)
        self._end += len(entry)
        number = len(self.entries)
        self.entries.append(payload)
        if self._flush:
            await self._runtime.offload(lambda: disk.fsync(self._fd))
        return number

    def _scan(self) -> None:
        disk = self._runtime.disk
        data = disk.pread(self._fd, disk.size(self._fd), 0)
        while self._end + _ENTRY.size <= len(data):
            length, crc = _ENTRY.unpack_from(data, self._end)
            payload = data[self._end + _ENTRY.size : self._end + _ENTRY.size + length]
            if length <= 0 or zlib.crc32(payload) != crc or len(payload) < length:
                break
            self.entries.append(payload)
            self._end += _ENTRY.size + length
        if self._recover:
            disk.ftruncate(self._fd, self._end)
            disk.fsync(self._fd)
        else:
            self._end = len(data)

    def _accept(self) -> None:
        assert self._listener is not None
        sock = self._listener.accept()
        self._connections[sock.fileno()] = _Connection(self, self._runtime, sock)


class _Connection:
    """Reads frames; one append at a time; sends replies as the socket takes them."""

    def __init__(self, node: ToyNode, runtime: Runtime, sock: Socket) -> None:
        self.number = sock.fileno()
        self._node = node
        self._runtime = runtime
        self._sock = sock
        self._input = bytearray()
        self._output = bytearray()
        self._busy = False
        self.append: asyncio.Task[None] | None = None
        runtime.net.add_reader(sock, self._on_readable)

    def close(self) -> None:
        self._runtime.net.remove_reader(self._sock)
        self._runtime.net.remove_writer(self._sock)
        self._sock.close()
        self._node.forget(self)

    def _on_readable(self) -> None:
        buffer = bytearray(4096)
        try:
            count = self._sock.recv_into(buffer)
        except BlockingIOError:
            return
        except OSError:
            count = 0
        if count == 0:
            self.close()
            return
        self._input += buffer[:count]
        self._next()

    def _next(self) -> None:
        if self._busy or len(self._input) < _LENGTH.size:
            return
        (length,) = _LENGTH.unpack_from(self._input)
        if len(self._input) < _LENGTH.size + length:
            return
        payload = bytes(self._input[_LENGTH.size : _LENGTH.size + length])
        del self._input[: _LENGTH.size + length]
        self._busy = True
        self.append = asyncio.get_running_loop().create_task(self._append(payload))

    async def _append(self, payload: bytes) -> None:
        number = await self._node.append(payload)
        self._busy = False
        if self._sock.fileno() < 0:
            return
        self._output += _NUMBER.pack(number)
        self._write()
        if self._sock.fileno() >= 0:
            self._next()

    def _write(self) -> None:
        try:
            while self._output:
                del self._output[: self._sock.send(self._output)]
        except BlockingIOError:
            self._runtime.net.add_writer(self._sock, self._write)
            return
        except OSError:
            self.close()
            return
        self._runtime.net.remove_writer(self._sock)


class ToyClient:
    """Sends numbered payloads one by one and remembers which host acknowledged which, and its number.

    It knows several hosts and goes to the next one whenever a connection fails.
    """

    def __init__(self, runtime: Runtime, name: str, payload_bytes: int) -> None:
        self._runtime = runtime
        self._name = name
        self._payload_bytes = payload_bytes
        self.sent: list[bytes] = []
        self.acknowledged: dict[bytes, tuple[str, int]] = {}

    async def run(self, hosts: Sequence[str], until: float) -> None:
        loop = asyncio.get_running_loop()
        for host in itertools.cycle(hosts):
            if loop.time() >= until:
                return
            try:
                sock = await self._runtime.net.connect(host, PORT)
            except OSError:
                await asyncio.sleep(0.1)
                continue
            try:
                while loop.time() < until:
                    await asyncio.wait_for(self._one(sock, host), 5)
                    await asyncio.sleep(self._runtime.rng.random() * 0.02)
            except (OSError, EOFError, TimeoutError):
                pass
            finally:
                self._runtime.net.remove_reader(sock)
                sock.close()
            await asyncio.sleep(0.1)

    async def _one(self, sock: Socket, host: str) -> None:
        rng = self._runtime.rng
        payload = f"{self._name}-{len(self.sent)}-".encode() + b"x" * rng.randrange(self._payload_bytes)
        self.sent.append(payload)
        frame = _LENGTH.pack(len(payload)) + payload
        while frame:
            try:
                frame = frame[sock.send(frame) :]
            except BlockingIOError:
                await asyncio.sleep(0.001)
        reply = bytearray()
        while len(reply) < _NUMBER.size:
            ready = asyncio.get_running_loop().create_future()
            self._runtime.net.add_reader(sock, lambda ready=ready: ready.done() or ready.set_result(None))  # type: ignore[misc]
            await ready
            buffer = bytearray(_NUMBER.size - len(reply))
            count = sock.recv_into(buffer)
            if count == 0:
                raise EOFError
            reply += buffer[:count]
        self.acknowledged[payload] = host, _NUMBER.unpack(reply)[0]
