"""Connection: one client connection. Frames in, replies out in the order of the requests.

A receive may have many frames. Consecutive Produce frames are handled together, so that one receive needs one
write per partition (handlers/produce.py). Views of the receive buffer are valid only until the handler
returns. A peer that does not read its replies is not read from.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from itertools import compress, repeat
from operator import is_
from struct import Struct
from typing import TYPE_CHECKING, Any, TypeVar, cast

from odradek.broker.dispatch import dispatch
from odradek.broker.handlers import produce
from odradek.broker.long_requests import answer_long
from odradek.broker.network.input import InputBuffer
from odradek.broker.network.output import OutputQueue, Slice
from odradek.broker.produce.routes import Route
from odradek.core.errors import ProtocolError
from odradek.runtime.api import Socket
from odradek.wire.headers import RequestHeader, parse_request_header

if TYPE_CHECKING:
    from odradek.broker.network.server import Server
    from odradek.core.types import ProducerIdAndEpoch

_log = logging.getLogger(__name__)

T = TypeVar("T")

# Frame: size int32, then api_key int16 of the request header.
_FRAME = Struct(">ih")
_SIZE = Struct(">i")
SMALLEST_FRAME = 8  # a request header without a client id
# Limits for requests that wait because an earlier reply is not ready.
MAX_PENDING_REPLIES = 1000
MAX_PARKED_BYTES = 4 << 20
MAX_WAITING_PARTITIONS = 1000  # of waiting fetches; the last one may exceed it
PIECE_BYTES = 100  # overhead of a piece of a reply
# The estimated cost of frames in Python calls: many short requests are handled in slices.
PRODUCE_CALLS = 80
REQUEST_CALLS = 250
# All requests but Produce are decoded into objects, many times larger than their bytes. Apache has no such
# limit.
MAX_DECODED_BYTES = 8 << 20


class Place:
    """A place in the order of replies. It is filled when its handler is done."""

    __slots__ = ("done", "header", "partitions", "pieces", "received_at")

    def __init__(self, header: RequestHeader, received_at: float) -> None:
        self.header = header
        self.received_at = received_at
        self.pieces: tuple[bytes | Slice, ...] = ()
        self.partitions = 0  # that its handler waits for
        self.done = False


class Connection:
    """State of one accepted socket."""

    __slots__ = (
        "_input",
        "_more",
        "_no_room",
        "_parked_bytes",
        "_pending",
        "_reading",
        "_server",
        "_sock",
        "_suspended",
        "_tasks",
        "_waiting_partitions",
        "acknowledged_commit",
        "closed",
        "last_active",
        "last_sent",
        "listener",
        "number",
        "on_close",
        "output",
        "peer",
        "routes",
    )

    def __init__(self, server: "Server", sock: Socket, listener: str, number: int) -> None:
        self._server = server
        self._sock = sock
        self.peer = sock.peer
        self.listener = listener
        self.number = number
        self.closed = False
        # The producer whose commit this connection acknowledged last. None while a commit is unanswered.
        self.acknowledged_commit: tuple[str, ProducerIdAndEpoch] | None = None
        self.on_close: dict[object, Callable[[], object]] = {}  # called when the connection closes
        self.last_active = server.loop.time()  # the time of the last receive
        self.last_sent = self.last_active  # the time when a slow peer last read something
        self.output = OutputQueue(
            server.runtime, sock, server.turns, self._on_moving, self._on_drained, self._on_output_error
        )
        self._input = InputBuffer(server.buffers)
        self.routes: list[Route] = []  # routes of this producer's requests
        self._pending: deque[Place] = deque()
        self._parked_bytes = 0  # bytes of finished replies that wait for earlier ones
        self._waiting_partitions = 0  # of all places
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._suspended = False  # the current request takes several turns: later ones wait
        self._reading = True
        self._no_room = False  # queued.max.request.bytes is used up
        self._more = False  # complete frames in the buffer wait for another turn
        server.runtime.net.add_reader(sock, self.on_readable)

    # --- in -------------------------------------------------------------------------------------------

    def on_readable(self) -> None:
        if self._input.view is None and self._server.buffers.is_full:
            self._wait_for_room()
            return
        try:
            received = self._input.receive(self._sock)
        except BlockingIOError:
            return
        except OSError as e:
            self.close(f"receive failed: {e}")
            return
        if received == 0:
            self.close(None)
            return
        self.last_active = self._server.loop.time()
        self._work()

    def _work(self) -> None:
        """Handle every complete frame in the buffer, then send the replies that are ready."""
        try:
            self._take_frames()
        except ProtocolError as e:
            self.refuse(e)
            return
        except Exception:
            _log.exception(
                "Closing connection %s from %s:%d", self.number, *self.peer[:2], extra={"peer": self.peer[0]}
            )
            self.close(None)
            return
        if not self.closed and self.output:
            self.output.flush()
        if self._input.lacks_room:
            self._wait_for_room()
        self._adjust_reading()
        if self._more and not (self.closed or self.output or self._is_full()):
            self._server.loop.call_soon(self._go_on)

    def _wait_for_room(self) -> None:
        self._no_room = True
        self._server.buffers.wait(self._on_room, to_grow=self._input.lacks_room > 0)
        self._adjust_reading()

    def _on_room(self) -> None:
        self._no_room = False
        if self.closed:
            return
        if self._input.lacks_room:
            self._input.make_room()
            if self._input.lacks_room:
                self._wait_for_room()
                return
        self._adjust_reading()

    def _go_on(self) -> None:
        """Handle the waiting frames in the buffer, unless another callback does."""
        if self._more and not (self.closed or self._suspended or self.output or self._is_full()):
            self._work()

    def _is_full(self) -> bool:
        """Whether too much waits for an earlier reply. `fulfil` continues later."""
        return (
            len(self._pending) >= MAX_PENDING_REPLIES
            or self._parked_bytes >= MAX_PARKED_BYTES
            or self._waiting_partitions >= MAX_WAITING_PARTITIONS
        )

    def _take_frames(self) -> None:
        """Handle every complete frame, and consecutive Produce frames together."""
        waiting = self._input
        buffer, view = waiting.buffer, waiting.view
        if buffer is None or view is None:
            return
        limit = self._server.max_request_bytes
        pending = self._pending
        start, end = waiting.start, waiting.end
        produces: list[tuple[int, int]] = []
        need = 4
        self._more = False
        services = self._server.services
        left, produce_key = services.slices.slice_calls, services.apis.produce_key
        while end - start >= 6:
            if left <= 0 or (pending and self._is_full()):
                self._more = True
                break
            size, api_key = _FRAME.unpack_from(buffer, start)
            if size < SMALLEST_FRAME or size > limit or (size > MAX_DECODED_BYTES and api_key != produce_key):
                break
            stop = start + 4 + size
            if stop > end:
                need = 4 + size
                break
            if api_key == produce_key:
                left -= PRODUCE_CALLS
                produces.append((start + 4, stop))
            else:
                left -= REQUEST_CALLS
                if produces:
                    if self._produce(buffer, view, produces):
                        return
                    produces = []
                waiting.start = stop
                frame = view[start + 4 : stop]
                header, position = parse_request_header(frame)
                dispatch(services, self, header, frame, position)
                if self.closed or self._suspended:
                    return
            start = stop
        if produces and self._produce(buffer, view, produces):
            return
        if self._more:
            waiting.start = start
            return
        if end - start >= 4:
            _check_size(buffer, start, end, limit, produce_key)
        waiting.keep(start, need)

    def _produce(self, buffer: bytearray, view: memoryview, frames: list[tuple[int, int]]) -> bool:
        """Handle consecutive Produce frames. Returns True if later frames must wait: one of them takes
        longer, or not all were handled."""
        waiting = self._input
        taken = produce.handle_run(self._server.services, self, buffer, view, frames)
        if waiting.buffer is buffer:
            start, stop = frames[taken - 1]
            waiting.start = stop
            waiting.expect(stop - start + 4)
        if self._suspended or self.closed:
            return True
        self._more = self._more or taken < len(frames)
        return taken < len(frames)

    def suspend(self) -> None:
        """Stop handling frames until `resume`: the current request takes more than this turn."""
        self._suspended = True

    def resume(self) -> None:
        self._suspended = False
        if not self.closed:
            self._work()

    def answer_in_slices(
        self, header: RequestHeader, frame: memoryview, position: int, end: int | None = None
    ) -> None:
        """Answer a long request in slices, and suspend the connection until then. The request takes over its
        frame.

        It is the last frame taken, or the one that ends at `end`.
        """
        if end is not None:
            self._input.start = end
        size = self._input.surrender()
        place = self.reserve(header)
        self.suspend()
        task = self.spawn(answer_long(self._server.services, self, place, frame, position), "long request")
        task.add_done_callback(lambda _: self._server.buffers.drop(size))
        self.on_close[place] = task.cancel

    def _adjust_reading(self) -> None:
        """Read only while the peer reads its replies and nothing is suspended."""
        if self.closed:
            return
        want = not (self._no_room or self._suspended or self._more or self.output or self._is_full())
        if want != self._reading:
            self._reading = want
            net = self._server.runtime.net
            if want:
                net.add_reader(self._sock, self.on_readable)
            else:
                net.remove_reader(self._sock)

    # --- out ------------------------------------------------------------------------------------------

    def reply(self, header: RequestHeader, *pieces: bytes | Slice) -> None:
        """Answer a request that was just received. It is sent with the next flush, after earlier replies."""
        if self._pending:
            self._park(self.reserve(header), pieces)
        else:
            self.output.push_all(pieces)
        self._server.observe(header.api_key, header.api_version, self.last_active)

    def reply_many(self, header: RequestHeader, replies: list[bytes]) -> None:
        """Answer several requests of one API and version."""
        if self._pending:
            for frame in replies:
                self.reply(header, frame)
        else:
            self.output.push(b"".join(replies) if len(replies) > 1 else replies[0])
            self._server.observe(header.api_key, header.api_version, self.last_active, len(replies))

    def reserve(self, header: RequestHeader) -> Place:
        """Reserve the place of a reply to a request that was just received. `fulfil` fills it."""
        place = Place(header, self.last_active)
        self._pending.append(place)
        return place

    def wait_for(self, place: Place, partitions: int) -> None:
        """Its handler may wait for `partitions` partitions. If all waits together are many, the connection is
        not read."""
        more = partitions - place.partitions
        if more > 0:
            place.partitions = partitions
            self._waiting_partitions += more
            self._adjust_reading()

    def fulfil(self, place: Place, *pieces: bytes | Slice) -> None:
        self._server.observe(place.header.api_key, place.header.api_version, place.received_at)
        if not self.closed:
            self._fill(place, pieces)

    def fulfil_some(self, place: Place, replies: list[bytes], *, is_last: bool) -> None:
        """Answer the next requests of a place that was reserved for several."""
        self._server.observe(place.header.api_key, place.header.api_version, place.received_at, len(replies))
        if self.closed:
            return
        data = b"".join(replies)
        if self._pending[0] is not place:
            self._parked_bytes -= _held_bytes(place.pieces)
            self._park(place, (*place.pieces, data))
            place.done = is_last
        elif is_last:
            self._fill(place, (data,))
        else:
            self.output.push(data)
            self.output.flush()
            self._adjust_reading()

    def _fill(self, place: Place, pieces: tuple[bytes | Slice, ...]) -> None:
        pending = self._pending
        if pending[0] is not place:
            self._park(place, pieces)
            return
        was_full = self._is_full()
        self.output.push_all(pieces)
        pending.popleft()
        self._waiting_partitions -= place.partitions
        while pending and pending[0].done:
            place = pending.popleft()
            self._waiting_partitions -= place.partitions
            self._parked_bytes -= _held_bytes(place.pieces)
            self.output.push_all(place.pieces)
        if pending and pending[0].pieces:  # some of its requests are answered
            self._parked_bytes -= _held_bytes(pending[0].pieces)
            self.output.push_all(pending[0].pieces)
            pending[0].pieces = ()
        self.output.flush()
        self._adjust_reading()
        if was_full:
            self._server.loop.call_soon(self._go_on)

    def _park(self, place: Place, pieces: tuple[bytes | Slice, ...]) -> None:
        place.pieces = pieces
        place.done = True
        self._parked_bytes += _held_bytes(pieces)

    def spawn(self, work: Coroutine[Any, Any, T], name: str) -> "asyncio.Task[T]":
        """Run work that belongs to this connection. The server cancels it when it stops."""
        task = self._server.loop.create_task(work, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        return task

    def refuse(self, error: ProtocolError) -> None:
        """Close the connection after a protocol error. Earlier requests are still answered."""
        _log.warning(
            "Closing connection %s from %s:%d: %s",
            self.number,
            *self.peer[:2],
            error,
            extra={"peer": self.peer[0]},
        )
        self.output.flush()
        self.close(None)

    def _on_moving(self) -> None:
        self.last_sent = self._server.loop.time()

    def _on_drained(self) -> None:
        self._go_on()
        self._adjust_reading()

    def _on_output_error(self, error: OSError) -> None:
        self.close(f"send failed: {error}")

    # --- end ------------------------------------------------------------------------------------------

    def close(self, reason: str | None) -> None:
        if self.closed:
            return
        self.closed = True
        if reason is not None:
            _log.info(
                "Connection %s from %s:%d closed: %s",
                self.number,
                *self.peer[:2],
                reason,
                extra={"peer": self.peer[0]},
            )
        if self._reading:
            self._server.runtime.net.remove_reader(self._sock)
        for forget in list(self.on_close.values()):
            forget()
        self.output.close()
        self._pending.clear()
        if self._no_room:
            self._server.buffers.forget(self._on_room)
        self._input.release()
        self._sock.close()
        self._server.forget(self)

    async def end(self) -> None:
        """Close, and cancel the tasks of this connection in the order of their start."""
        self.close(None)
        for task in list(self._tasks):
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                pass


def _held_bytes(pieces: tuple[bytes | Slice, ...]) -> int:
    """The memory of a reply until it is sent. Slices of files count as small."""
    of_bytes = compress(pieces, map(is_, map(type, pieces), repeat(bytes)))  # no call for each piece
    return sum(map(len, cast(Iterator[bytes], of_bytes))) + PIECE_BYTES * len(pieces)


def _check_size(buffer: bytearray, start: int, end: int, limit: int, produce_key: int) -> None:
    """Refuse an incomplete frame as soon as its first bytes show that it is too large."""
    (size,) = _SIZE.unpack_from(buffer, start)
    if size < SMALLEST_FRAME or size > limit:
        raise ProtocolError(f"frame of {size} bytes (allowed: 8 to socket.request.max.bytes={limit})")
    if size > MAX_DECODED_BYTES and end - start >= 6:
        _, api_key = _FRAME.unpack_from(buffer, start)
        if api_key != produce_key:
            raise ProtocolError(f"api {api_key} with {size} bytes (allowed: {MAX_DECODED_BYTES})")
