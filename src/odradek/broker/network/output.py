"""OutputQueue: the replies of one connection: bytes, and slices of log files.

Small slices are read and sent together with the bytes around them. Large ones are sent with sendfile. A slice
that is not in the page cache is read in the pool, chunk by chunk, so the loop never waits for a disk. Bytes
that the socket did not accept are read again later, so a peer that does not read takes no memory.

A slice may wait long for a slow peer. If this node loses the leadership meanwhile, a truncation may remove
its records, and others take their place in the file. Bytes of a slice that a truncation has cut are never
sent: the connection is closed. The header of the reply is gone already, so there is no other way, and to copy
every waiting slice before a truncation could take gigabytes. Slices below the cut are sent.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum, auto
from itertools import islice
from typing import Protocol

from odradek.broker.network.sending import SendingTurns
from odradek.records.kernel import allocate
from odradek.runtime.api import Runtime, Socket

SENDFILE_FROM_BYTES = 128 * 1024
CHUNK_BYTES = 1024 * 1024
GATHER_PIECES = 64
GATHER_BYTES = 256 * 1024
TURN_PIECES = 2 * GATHER_PIECES
SHORT_PIECES = 8
SHORT_BYTES = 64 * 1024
_ENDS_EARLY = "the log file ends before the end of the slice to send"
_CUT = "the log was truncated, and the records to send are gone"


class Slice(Protocol):
    """A part of an open file. It keeps the descriptor open."""

    @property
    def fd(self) -> int: ...
    @property
    def position(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def cuts(self) -> Sequence[int]: ...  # positions at which the file was truncated
    @property
    def cuts_seen(self) -> int: ...  # the number of them before the slice was made


def _check_cuts(part: Slice) -> None:
    """Raises OSError if the file was truncated within the slice, or before it."""
    if min(part.cuts[part.cuts_seen :]) < part.position + part.size:
        raise OSError(_CUT)


class _Rest:
    """The rest of a slice that is partly sent."""

    __slots__ = ("cuts", "cuts_seen", "fd", "owner", "position", "size")

    def __init__(self, owner: Slice, sent: int) -> None:
        self.owner = owner
        self.cuts = owner.cuts
        self.cuts_seen = owner.cuts_seen
        self.fd = owner.fd
        self.position = owner.position + sent
        self.size = owner.size - sent


class _State(Enum):
    IDLE = auto()
    SOCKET_FULL = auto()
    READING_DISK = auto()
    NEXT_TURN = auto()


def _nothing() -> None:
    pass


def _no_error(error: OSError) -> None:
    pass


class OutputQueue:
    """Pieces in order. They are sent as fast as the socket accepts them.

    `on_moving` is called when a full socket accepts more, which shows that the peer is alive,
    `on_drained` when a queue that could not be sent at once is empty again,
    `on_error` when the socket or a file failed: nothing can be sent after that.
    `turns` limits how much may be sent in one turn; all queues share it.
    """

    __slots__ = (
        "_on_drained",
        "_on_error",
        "_on_moving",
        "_pieces",
        "_probe",
        "_runtime",
        "_sock",
        "_state",
        "_turns",
    )

    def __init__(
        self,
        runtime: Runtime,
        sock: Socket,
        turns: SendingTurns,
        on_moving: Callable[[], None],
        on_drained: Callable[[], None],
        on_error: Callable[[OSError], None],
    ) -> None:
        self._runtime = runtime
        self._sock = sock
        self._turns = turns
        self._pieces: deque[bytes | Slice] = deque()
        self._probe = bytearray(1)
        self._on_moving = on_moving
        self._on_drained = on_drained
        self._on_error = on_error
        self._state = _State.IDLE

    def __bool__(self) -> bool:
        return bool(self._pieces)

    @property
    def holds_files(self) -> bool:
        """Whether the queue keeps files open. There are few bytes between two slices."""
        return any(not isinstance(piece, bytes) for piece in islice(self._pieces, 4))

    def push(self, data: bytes) -> None:
        assert data, "an empty piece would be sent forever"
        self._pieces.append(data)

    def push_all(self, pieces: Sequence[bytes | Slice]) -> None:
        """Add all pieces at once."""
        assert b"" not in pieces, "an empty piece would be sent forever"
        self._pieces.extend(pieces)

    def flush(self) -> bool:
        """Send what the socket accepts now. Returns whether the queue is empty."""
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
        # Break the reference cycle of queue and connection.
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

    def _on_turn(self) -> None:
        if self._state is _State.NEXT_TURN:
            self._state = _State.IDLE
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
        elif state is _State.NEXT_TURN:
            self._turns.wait(self._on_turn)

    def _send(self) -> _State:
        pieces, sock, turns, turn_pieces = self._pieces, self._sock, self._turns, 0
        try:
            while pieces:
                head = pieces[0]
                is_large = not isinstance(head, bytes) and head.size >= SENDFILE_FROM_BYTES
                is_over = turns.left <= 0 or turn_pieces >= TURN_PIECES
                if is_over and (is_large or len(pieces) > SHORT_PIECES):
                    return _State.NEXT_TURN
                if is_large:
                    assert not isinstance(head, bytes)
                    if len(head.cuts) != head.cuts_seen:
                        _check_cuts(head)
                    if not self._is_cached(head):
                        self._read_in_pool(head)
                        return _State.READING_DISK
                    sent = sock.sendfile(head.fd, head.position, min(head.size, CHUNK_BYTES))
                    if sent == 0:
                        raise OSError(_ENDS_EARLY)
                    used = 1
                else:
                    gathered = self._gather()
                    if not gathered:
                        assert not isinstance(head, bytes)
                        self._read_in_pool(head)
                        return _State.READING_DISK
                    sent = sock.sendmsg(gathered) if len(gathered) > 1 else sock.send(gathered[0])
                    used = len(gathered)
                self._consume(sent)
                if used > SHORT_PIECES or sent >= SHORT_BYTES:
                    turns.charge(sent, used)
                    turn_pieces += used
        except BlockingIOError:
            return _State.SOCKET_FULL
        return _State.IDLE

    def _gather(self) -> list[bytes | bytearray]:
        """Bytes and small cached slices, up to the next piece that must be sent in another way."""
        gathered: list[bytes | bytearray] = []
        total = 0
        for piece in islice(self._pieces, GATHER_PIECES):
            data: bytes | bytearray | None
            if type(piece) is bytes:
                data = piece
            else:
                assert not isinstance(piece, bytes)
                if piece.size >= SENDFILE_FROM_BYTES or total >= GATHER_BYTES:
                    break
                if len(piece.cuts) != piece.cuts_seen:
                    _check_cuts(piece)
                data = self._read_cached(piece)
                if data is None:
                    break
            gathered.append(data)
            total += len(data)
        return gathered

    def _consume(self, sent: int) -> None:
        pieces = self._pieces
        while sent:
            head = pieces[0]
            size = len(head) if isinstance(head, bytes) else head.size
            if sent >= size:
                pieces.popleft()
                sent -= size
                continue
            if isinstance(head, bytes):
                pieces[0] = head[sent:]
            else:
                pieces[0] = _Rest(head, sent)
            return

    def _is_cached(self, part: Slice) -> bool:
        """Whether the next chunk is in the page cache. Only its first and last bytes are checked."""
        last = part.position + min(part.size, CHUNK_BYTES) - 1
        try:
            for position in (part.position, last):
                self._runtime.disk.preadv_nowait(part.fd, (self._probe,), position)
        except BlockingIOError:
            return False
        return True

    def _read_cached(self, part: Slice) -> bytearray | None:
        """A complete small slice, if it is in the page cache."""
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

    def _read_in_pool(self, part: Slice) -> None:
        """Read the next chunk in another thread, send what the socket accepts of it, and continue."""
        size = min(part.size, CHUNK_BYTES)
        future = self._runtime.offload(lambda: self._read(part.fd, size, part.position))

        def on_read(done: "asyncio.Future[bytes]") -> None:
            if self._state is not _State.READING_DISK:
                return  # the connection was closed
            self._state = _State.IDLE
            sent = 0
            try:
                data = done.result()
                if len(part.cuts) != part.cuts_seen:
                    _check_cuts(part)
                sent = self._sock.send(data)
            except BlockingIOError:
                pass
            except OSError as e:
                self._on_error(e)
                return
            self._consume(sent)
            if sent < size:
                self._move_to(_State.SOCKET_FULL)
            else:
                self._go_on()

        future.add_done_callback(on_read)
