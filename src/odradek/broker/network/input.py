"""InputBuffer: the received and not yet handled bytes of one connection, in a pooled buffer.

connection.py finds the frames in it.
"""

from odradek.broker.network.buffers import LARGE_BYTES, SMALL_BYTES, BufferPool
from odradek.runtime.api import Socket

RECEIVE_BYTES = SMALL_BYTES


class InputBuffer:
    """`buffer[start:end]` has the waiting bytes; `view` is the same memory. Both are None if nothing
    waits."""

    __slots__ = ("_expected", "_pool", "_receive", "buffer", "end", "lacks_room", "start", "view")

    def __init__(self, pool: BufferPool) -> None:
        self._pool = pool
        self.buffer: bytearray | None = None
        self.view: memoryview | None = None
        self.start = 0
        self.end = 0
        self._receive = RECEIVE_BYTES  # the maximum of the next receive
        self.lacks_room = 0  # missing bytes of a frame that do not fit, while the pool is full
        self._expected = RECEIVE_BYTES  # a peer that sent a large frame probably sends another one

    def receive(self, sock: Socket) -> int:
        """Receive from the socket. Returns 0 if the peer has closed. Raises OSError."""
        view = self.view
        if view is None:
            self.buffer = self._pool.take(self._expected)
            view = self.view = memoryview(self.buffer)
            self.start = self.end = 0
            self._receive = self._expected
        try:
            received = sock.recv_into(view[self.end : self.end + self._receive])
        except OSError:
            if self.start == self.end:
                self.release()
            raise
        self.end += received
        return received

    def release(self) -> None:
        self.lacks_room = 0
        if self.buffer is not None:
            if self._pool.is_full:
                self._pool.grown(self)
            self._pool.give(self.buffer)
            self.buffer = self.view = None
            self.start = self.end = 0

    def keep(self, start: int, need: int) -> None:
        """Everything before `start` is handled. The rest is the start of a frame of `need` bytes."""
        buffer = self.buffer
        assert buffer is not None
        self.start = start
        if start == self.end:
            self.release()
            return
        if start + need > len(buffer) or len(buffer) - self.end < 4:
            self._make_room(buffer, need)
            if self.lacks_room:
                return
        # A large frame is received exactly to its end: later bytes would have to be moved.
        self._receive = RECEIVE_BYTES if need <= RECEIVE_BYTES else need - (self.end - self.start)

    def make_room(self) -> None:
        """Try again after the pool had no room for the rest of a frame."""
        need, self.lacks_room = self.lacks_room, 0
        if self.buffer is not None:
            self.keep(self.start, need)

    def surrender(self) -> int:
        """Leave the buffer to the handler that has views of it. Waiting bytes move to another buffer.

        Returns the size to pass to `BufferPool.drop` when the buffer is freed.
        """
        assert self.view is not None and self.buffer is not None
        size = len(self.buffer)
        self._pool.grown(self)
        rest = self.view[self.start : self.end]
        self.buffer = self.view = None
        self.start, self.end = 0, len(rest)
        if rest:
            self.buffer = self._pool.take(max(len(rest), RECEIVE_BYTES))
            self.view = memoryview(self.buffer)
            self.view[: self.end] = rest
        return size

    def expect(self, frame_bytes: int) -> None:
        """A complete frame was handled: the next one probably has the same size."""
        self._expected = min(max(frame_bytes, RECEIVE_BYTES), LARGE_BYTES)

    def _make_room(self, buffer: bytearray, need: int) -> None:
        """Move the incomplete frame to the front of a larger buffer.

        The buffer of a large frame grows as its bytes arrive: a length alone does not reserve memory.
        """
        held = self.end - self.start
        assert self.view is not None
        if need <= len(buffer) or held < len(buffer) // 4:
            self.view[:held] = self.view[self.start : self.end]
        elif not self._pool.may_grow(self):
            self.lacks_room = need
            return
        else:
            larger = self._pool.take(min(need, max(2 * len(buffer), SMALL_BYTES)))
            view = memoryview(larger)
            view[:held] = self.view[self.start : self.end]
            self._pool.give(buffer)
            self.buffer, self.view = larger, view
        self.start, self.end = 0, held
