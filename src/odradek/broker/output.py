"""What waits to be sent on one connection: bytes, and parts of log files that never enter Python.

Small parts are read and sent together with the bytes around them; large ones go by sendfile. A part that
the page cache does not hold is read in the pool, chunk by chunk, so the loop never waits for a disk.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from typing import Protocol

from odradek.records.kernel import allocate
from odradek.runtime.api import Runtime, Socket

SENDFILE_FROM_BYTES = 128 * 1024
CHUNK_BYTES = 1024 * 1024
TURN_BYTES = 8 * CHUNK_BYTES
GATHER_PIECES = 64
_ENDS_EARLY = "the log file ends before the slice that was to be sent"


class Slice(Protocol):
    """A stretch of an open file; holding it keeps the descriptor open."""

    @property
    def fd(self) -> int: ...
    @property
    def position(self) -> int: ...
    @property
    def size(self) -> int: ...


class _FilePart:
    """What is still to be sent of a slice."""

    __slots__ = ("fd", "owner", "position", "size")

    def __init__(self, owner: Slice) -> None:
        self.owner = owner
        self.fd = owner.fd
        self.position = owner.position
        self.size = owner.size


class _State(Enum):
    IDLE = auto()
    SOCKET_FULL = auto()
    READING_DISK = auto()


def _nothing() -> None:
    pass


def _no_error(error: OSError) -> None:
    pass


class OutputQueue:
    """Pieces in order, sent as far as the socket takes them, the rest as it takes more.

    `on_moving` is called when a socket that was full takes more, which is a sign of life of the peer,
    `on_drained` when a queue that could not be sent at once has become empty,
    `on_error` when the socket or the file failed: nothing more can be sent then.
    """

    __slots__ = ("_on_drained", "_on_error", "_on_moving", "_pieces", "_probe", "_runtime", "_sock", "_state")

    def __init__(
        self,
        runtime: Runtime,
        sock: Socket,
        on_moving: Callable[[], None],
        on_drained: Callable[[], None],
        on_error: Callable[[OSError], None],
    ) -> None:
        self._runtime = runtime
        self._sock = sock
        self._pieces: deque[bytes | bytearray | _FilePart] = deque()
        self._probe = bytearray(1)
        self._on_moving = on_moving
        self._on_drained = on_drained
        self._on_error = on_error
        self._state = _State.IDLE

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def push(self, data: bytes) -> None:
        assert data, "an empty piece would be sent forever"
        self._pieces.append(data)

    def push_file(self, part: Slice) -> None:
        self._pieces.append(_FilePart(part))

    def flush(self) -> bool:
        """Send what the socket takes now. True when nothing is left."""
        pieces = self._pieces
        if self._state is _State.IDLE and pieces:
            head = pieces[0]
            if type(head) is bytes and len(pieces) == 1:
                try:
                    sent = self._sock.send(head)
                except BlockingIOError:
                    sent = 0
                except OSError as e:
                    self._on_error(e)
                    return False
                if sent == len(head):
                    pieces.clear()
                    return True
                pieces[0] = head[sent:]
            self._run()
        return not pieces

    def close(self) -> None:
        self._move_to(_State.IDLE)
        self._pieces.clear()
        # Else the queue and its connection would keep each other alive.
        self._on_moving = self._on_drained = _nothing
        self._on_error = _no_error

    def _run(self) -> None:
        try:
            self._move_to(self._send())
        except OSError as e:
            self._on_error(e)

    def _on_writable(self) -> None:
        self._on_moving()
        self._go_on()

    def _go_on(self) -> None:
        self._run()
        if not self._pieces:
            self._on_drained()

    def _move_to(self, state: _State) -> None:
        if state is self._state:
            return
        if self._state is _State.SOCKET_FULL:
            self._runtime.net.remove_writer(self._sock)
        self._state = state
        if state is _State.SOCKET_FULL:
            self._runtime.net.add_writer(self._sock, self._on_writable)

    def _send(self) -> _State:
        pieces, sock, turn = self._pieces, self._sock, 0
        try:
            while pieces:
                if turn >= TURN_BYTES:
                    return _State.SOCKET_FULL  # let others have their turn; the socket wakes us again
                head = pieces[0]
                if type(head) is _FilePart and head.size >= SENDFILE_FROM_BYTES:
                    if not self._is_cached(head):
                        self._read_in_pool(head)
                        return _State.READING_DISK
                    sent = sock.sendfile(head.fd, head.position, min(head.size, CHUNK_BYTES))
                    if sent == 0:
                        raise OSError(_ENDS_EARLY)
                else:
                    gathered = self._gather()
                    if not gathered:
                        assert type(head) is _FilePart
                        self._read_in_pool(head)
                        return _State.READING_DISK
                    sent = sock.sendmsg(gathered) if len(gathered) > 1 else sock.send(gathered[0])
                self._consume(sent)
                turn += sent
        except BlockingIOError:
            return _State.SOCKET_FULL
        return _State.IDLE

    def _gather(self) -> list[bytes | bytearray]:
        """Bytes and small cached parts up to the next piece that must go another way."""
        gathered: list[bytes | bytearray] = []
        total = 0
        pieces = self._pieces
        for i in range(min(len(pieces), GATHER_PIECES)):
            piece = pieces[i]
            if type(piece) is _FilePart:
                if piece.size >= SENDFILE_FROM_BYTES or total >= CHUNK_BYTES:
                    break
                data = self._read_cached(piece)
                if data is None:
                    break
                pieces[i] = piece = data
            assert not isinstance(piece, _FilePart)
            gathered.append(piece)
            total += len(piece)
        return gathered

    def _consume(self, sent: int) -> None:
        pieces = self._pieces
        while sent:
            head = pieces[0]
            size = head.size if isinstance(head, _FilePart) else len(head)
            if sent >= size:
                pieces.popleft()
                sent -= size
                continue
            if isinstance(head, _FilePart):
                head.position += sent
                head.size -= sent
            else:
                pieces[0] = head[sent:]
            return

    def _is_cached(self, part: _FilePart) -> bool:
        """Whether the next chunk can be sent without touching the disk: its ends stand for the whole."""
        last = part.position + min(part.size, CHUNK_BYTES) - 1
        try:
            for position in (part.position, last):
                self._runtime.disk.preadv_nowait(part.fd, (self._probe,), position)
        except BlockingIOError:
            return False
        return True

    def _read_cached(self, part: _FilePart) -> bytearray | None:
        """A whole small part, if that needs no disk."""
        data = allocate(part.size)
        try:
            count = self._runtime.disk.preadv_nowait(part.fd, (data,), part.position)
        except BlockingIOError:
            return None
        if count == 0:
            raise OSError(_ENDS_EARLY)
        return data if count == part.size else None

    def _read(self, fd: int, size: int, position: int) -> bytes:
        data = self._runtime.disk.pread(fd, size, position)
        if len(data) < size:
            raise OSError(_ENDS_EARLY)
        return data

    def _read_in_pool(self, part: _FilePart) -> None:
        """Read the next chunk away from the loop, put its bytes in front, and go on sending."""
        size = min(part.size, CHUNK_BYTES)
        future = self._runtime.offload(lambda: self._read(part.fd, size, part.position))

        def on_read(done: "asyncio.Future[bytes]") -> None:
            if self._state is not _State.READING_DISK:
                return  # closed meanwhile
            self._state = _State.IDLE
            try:
                data = done.result()
            except OSError as e:
                self._on_error(e)
                return
            self._consume(size)
            self._pieces.appendleft(data)
            self._go_on()

        future.add_done_callback(on_read)
