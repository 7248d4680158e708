"""Sockets between the nodes of a test's cluster, which the test can cut: then nothing arrives any more.

A cut acts as a network does that loses every packet. Nobody is told: what is sent waits, a dial waits. When
the cut ends, all of it arrives, unless who sent it has given up meanwhile. Clients are never cut off: only
what nodes dial and accept of each other is known here.
"""

import asyncio
import socket
from collections.abc import Callable

from odradek.runtime.api import SYSTEM_BUFFER, ListeningSocket, Socket
from odradek.runtime.real import RealListener, RealNet, RealSocket

Address = tuple[str, int]


class Wires:
    """Which address is whose, and who is cut off from whom. All nodes of a cluster share it."""

    def __init__(self) -> None:
        self.owners: dict[Address, int] = {}
        self._cuts: tuple[frozenset[int], ...] = ()

    def cut(self, a: int, b: int) -> None:
        self._cuts += (frozenset((a, b)),)

    def mend(self, a: int, b: int) -> None:
        """Take one cut back: blocks may be within each other."""
        cuts = list(self._cuts)
        cuts.remove(frozenset((a, b)))
        self._cuts = tuple(cuts)

    def is_cut(self, a: int, b: int) -> bool:
        return frozenset((a, b)) in self._cuts


class WiredNet(RealNet):
    """The net of one node. `obey` is called on its loop when cuts have changed."""

    __slots__ = ("_dials", "_node_id", "_others", "_readers", "_wires")

    def __init__(self, node_id: int, wires: Wires) -> None:
        self._node_id = node_id
        self._wires = wires
        self._others: dict[int, int] = {}  # the node at the other end of a socket, by descriptor
        self._readers: dict[int, Callable[[], None]] = {}  # of these sockets
        self._dials: dict[asyncio.Future[None], int] = {}  # that wait for the end of a cut

    def obey(self) -> None:
        loop = asyncio.get_running_loop()
        for fd, callback in self._readers.items():
            if self._is_cut(self._others[fd]):
                loop.remove_reader(fd)
            else:
                loop.add_reader(fd, callback)
        for dial, other in self._dials.items():
            if not self._is_cut(other) and not dial.done():
                dial.set_result(None)

    def _is_cut(self, other: int) -> bool:
        return self._wires.is_cut(self._node_id, other)

    def listen(self, host: str, port: int, backlog: int = 512) -> RealListener:
        listener = super().listen(host, port, backlog)
        self._wires.owners[listener.address] = self._node_id
        return _Listener(listener, self._accepted)

    def _accepted(self, sock: RealSocket) -> None:
        other = self._wires.owners.get(sock.peer)
        if other is not None:
            self._know(sock, other)

    def _know(self, sock: RealSocket, other: int, own: Address | None = None) -> None:
        """Until it is closed, who is at the other end."""
        fd, close = sock.fileno(), sock.close

        def forget() -> None:
            self._others.pop(fd, None)
            if own is not None:
                self._wires.owners.pop(own, None)
            close()

        self._others[fd] = other
        sock.close = forget

    async def connect(self, host: str, port: int, receive_buffer_bytes: int = SYSTEM_BUFFER) -> RealSocket:
        other = self._wires.owners.get((host, port))
        if other is None or other == self._node_id:
            return await super().connect(host, port, receive_buffer_bytes)
        while self._is_cut(other):
            await self._mended(other)
        sock = socket.socket()
        sock.setblocking(False)
        sock.bind((host, 0))  # the other end must know whose it is when it accepts
        own: Address = sock.getsockname()
        self._wires.owners[own] = self._node_id
        try:
            await asyncio.get_running_loop().sock_connect(sock, (host, port))
        except BaseException:
            self._wires.owners.pop(own, None)
            sock.close()
            raise
        dialled = RealSocket(sock, (host, port))
        self._know(dialled, other, own)
        return dialled

    async def _mended(self, other: int) -> None:
        dial: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._dials[dial] = other
        try:
            await dial
        finally:
            del self._dials[dial]

    def add_reader(self, sock: Socket | ListeningSocket, callback: Callable[[], None]) -> None:
        other = self._others.get(sock.fileno())
        if other is not None:
            self._readers[sock.fileno()] = callback
            if self._is_cut(other):
                return
        super().add_reader(sock, callback)

    def remove_reader(self, sock: Socket | ListeningSocket) -> None:
        self._readers.pop(sock.fileno(), None)
        super().remove_reader(sock)


class _Listener(RealListener):
    __slots__ = ("_on_accepted",)

    def __init__(self, listener: RealListener, on_accepted: Callable[[RealSocket], None]) -> None:
        super().__init__(listener._sock)
        self._on_accepted = on_accepted

    def accept(self) -> RealSocket:
        sock = super().accept()
        self._on_accepted(sock)
        return sock
