"""A real node and its clients in one thread, turn by turn. Every run has the same turns.

The loop's clock counts work: 20,000 events are 5 ms. It jumps to the next timer if there is nothing else to
do. Work of the node's pool runs at once, uncounted, and its result arrives in the next turn.
"""

import asyncio
import random
import socket
import struct
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from odradek.broker.node import Node
from odradek.core.configs import NodeConfig, node_defaults
from odradek.runtime.real import RealDisk, RealRuntime
from tests.hostile.limits import shrink_slices
from tests.hostile.work import Work, every_callback

T = TypeVar("T")

SECONDS_PER_EVENT = 0.005 / 20_000
BEGINNING_MS = 1_750_000_000_000
MOST_TURNS = 20_000
MOST_IDLE_TURNS = 200
SOCKET_BYTES = 4 << 20


_RECEIVED = memoryview(bytearray(1 << 20))


def _skip(fd: int) -> None:
    pass


class UnsyncedDisk(RealDisk):
    """Files whose loss nobody would mourn."""

    __slots__ = ()
    fsync = fdatasync = staticmethod(_skip)

    def fsync_dir(self, path: str) -> None:
        pass


class Loop(asyncio.SelectorEventLoop):
    """An event loop whose time is work done, and what was jumped over."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._ticks = work.ticks
        self._jumped_s = 0.0
        super().__init__()

    def time(self) -> float:
        # As many calls as the real one takes, so that looking at the clock is not what is measured.
        return self._jumped_s + (next(self._ticks) // 2 - self._work.away_events) * SECONDS_PER_EVENT

    def jump(self) -> bool:
        """To the next timer, if there is one."""
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        live = [timer for timer in timers if not timer.cancelled()]
        if not live:
            return False
        self._jumped_s += max(min(timer.when() for timer in live) - self.time(), 0.0)
        return True

    def pass_time(self, seconds: float) -> None:
        """Let the clock be ahead of where it is."""
        self._jumped_s += seconds

    @property
    def is_idle(self) -> bool:
        return not self._ready  # type: ignore[attr-defined]


class StageClock:
    def __init__(self, loop: Loop) -> None:
        self._time = loop.time

    def now_ms(self) -> int:
        return BEGINNING_MS + int(self._time() * 1000)

    def steady_ms(self) -> int:
        return int(self._time() * 1000)


class StageRuntime(RealRuntime):
    """The machine, but for its time, its threads and its chance."""

    def __init__(self, loop: Loop, work: Work) -> None:
        super().__init__()
        self.disk = UnsyncedDisk()
        self.clock = StageClock(loop)
        self.rng = random.Random(1)
        self._loop = loop
        self._work = work

    def offload(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        done: asyncio.Future[T] = self._loop.create_future()
        try:
            self._loop.call_soon(_complete, done, self._work.away(work), None)
        except Exception as e:
            self._loop.call_soon(_complete, done, None, e)
        return done

    in_background = for_quorum = offload


def _complete(done: "asyncio.Future[Any]", result: Any, error: Exception | None) -> None:
    if done.cancelled():
        return
    if error is None:
        done.set_result(result)
    else:
        done.set_exception(error)


class Client:
    """A connection of the stage. `send` gives bytes to the network, as much of them as it takes each turn."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._sock = socket.socket()
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BYTES)
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BYTES)
        self._sock.connect(address)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sock.setblocking(False)
        self._out = memoryview(b"")
        self._in = bytearray()
        self.closed = False

    def send(self, data: bytes) -> None:
        self._out = memoryview(bytes(self._out) + data)
        self.push()

    def push(self) -> bool:
        """Give on what is left to send; whether anything went."""
        if not self._out or self.closed:
            return False
        try:
            sent = self._sock.send(self._out)
        except BlockingIOError:
            return False
        except OSError:
            self.closed = True
            return True
        self._out = self._out[sent:]
        return True

    def pull(self) -> bool:
        """Take what has arrived; whether anything had."""
        if self.closed:
            return False
        try:
            count = self._sock.recv_into(_RECEIVED)
        except BlockingIOError:
            return False
        except OSError:
            count = 0
        self.closed = not count
        self._in += _RECEIVED[:count]
        return True

    def answer(self) -> bytes | None:
        """The next whole answer, without its length, if it is there."""
        if len(self._in) < 4:
            return None
        (size,) = struct.unpack_from(">i", self._in)
        if len(self._in) < 4 + size:
            return None
        frame = bytes(self._in[4 : 4 + size])
        del self._in[: 4 + size]
        return frame

    def close(self) -> None:
        self._sock.close()
        self.closed = True


class Stage:
    """A node that has begun. `turn` runs every callback that is ready now, once."""

    def __init__(self, loop: Loop, work: Work, node: Node) -> None:
        self.loop = loop
        self.work = work
        self.node = node
        self._clients: dict[Client, None] = {}

    @property
    def address(self) -> tuple[str, int]:
        return self.node.address

    def connect(self) -> Client:
        """A connection that the node has accepted; `disconnect` ends it."""
        made = Client(self.address)
        before = len(self.node.server.connections)
        self._clients[made] = None
        while len(self.node.server.connections) <= before:
            self.turn()
        return made

    def disconnect(self, client: Client) -> None:
        del self._clients[client]
        client.close()
        self.wait_until_idle()

    @contextmanager
    def client(self) -> Iterator[Client]:
        """A connection for as long as the block takes."""
        made = self.connect()
        try:
            yield made
        finally:
            self.disconnect(made)

    def turn(self) -> bool:
        """One turn of the loop, and the network around it; whether anything was left to do."""
        pushed = [client.push() for client in self._clients]
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()
        self.work.turned()
        pulled = [client.pull() for client in self._clients]
        return any(pushed) or any(pulled) or not self.loop.is_idle

    def until(self, condition: Callable[[], bool]) -> None:
        """Turn until it holds. When nothing is left to do, time passes until the next timer."""
        idle = 0
        for _ in range(MOST_TURNS):
            if condition():
                return
            if self.turn():
                idle = 0
            elif (idle := idle + 1) > 1:
                assert idle < MOST_IDLE_TURNS and self.loop.jump(), "the node has nothing left to do"
        raise AssertionError(f"not within {MOST_TURNS} turns of the loop")

    def wait_until_idle(self) -> None:
        """Turn until the node has nothing left to do now."""
        idle = 0
        for _ in range(MOST_TURNS):
            idle = 0 if self.turn() else idle + 1
            if idle == 3:
                return
        raise AssertionError(f"still at work after {MOST_TURNS} turns of the loop")

    def ask(self, client: Client, frame: bytes) -> bytes | None:
        """The answer to a frame, or None where the node hangs up."""
        client.send(frame)
        found: list[bytes] = []

        def is_answered() -> bool:
            answer = client.answer()
            if answer is not None:
                found.append(answer)
            return bool(found) or client.closed

        self.until(is_answered)
        return found[0] if found else None

    def finish(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine, run by the turns of this stage."""
        return _finish(self.loop, work)


def _finish(loop: Loop, work: Coroutine[Any, Any, T]) -> T:
    task = loop.create_task(work)
    for _ in range(MOST_TURNS):
        if task.done():
            return task.result()
        loop.call_soon(loop.stop)
        loop.run_forever()
        if loop.is_idle:
            loop.jump()
    raise AssertionError(f"not within {MOST_TURNS} turns of the loop")


@contextmanager
def staged(data_dir: Path, **settings: str) -> Iterator[Stage]:
    """A node on a stage of its own; settings are given with _ for a dot."""
    work = Work()
    loop = Loop(work)
    with every_callback(work):
        try:
            defaults = node_defaults(str(data_dir), port=0)
            config = NodeConfig(defaults | {key.replace("_", "."): value for key, value in settings.items()})
            node = Node(config, StageRuntime(loop, work))
            _finish(loop, node.start())
            shrink_slices(node)
            stage = Stage(loop, work, node)
            try:
                yield stage
            finally:
                _finish(loop, node.stop())
        finally:
            loop.close()
