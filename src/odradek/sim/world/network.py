"""Network: the links between hosts. Pipes deliver bytes late, hold them back, or break. net.py has the
sockets.

As TCP promises, bytes are never lost or reordered in a pipe: a dropped packet is a late one, and a partition
holds bytes back until it heals. Only the connection may be lost, with or without a notification of the peer.
"""

import errno
import random
from collections import deque
from contextvars import Context
from enum import Enum
from typing import Final, Protocol

from odradek.sim.world.loop import SimLoop
from odradek.sim.world.trace import Trace


class Signal(Enum):
    """What a pipe delivers besides bytes."""

    FIN = "fin"
    RESET = "reset"


class ConnectionEnd(Protocol):
    """One end of a connection, for the network."""

    @property
    def host(self) -> str: ...
    @property
    def over(self) -> bool:
        """Whether arriving bytes are ignored."""
        ...

    @property
    def vanished(self) -> bool:
        """Whether the host lost power: nothing is sent from here again."""
        ...

    def unread(self) -> int: ...
    def receive(self, item: bytes | Signal) -> None: ...
    def fail(self, code: int) -> None: ...
    def update(self) -> None: ...


class NetFaults:
    """The faults of the network. Probabilities are per call. They may change during the simulation."""

    def __init__(self) -> None:
        self.min_latency_seconds = 0.000_05
        self.max_latency_seconds = 0.001
        self.slow = 0.0
        self.slow_seconds = 0.3
        self.short_count = 0.0
        self.fragment = 0.0
        self.reset = 0.0
        self.buffer_bytes = 256 * 1024


class Network:
    """Links between hosts, and their faults."""

    def __init__(self, loop: SimLoop, rng: random.Random, trace: Trace) -> None:
        self.loop: Final = loop
        self.rng: Final = rng
        self.trace: Final = trace
        self.faults = NetFaults()
        self.root_context: Final = Context()
        self._pipes: list[Pipe] = []
        self._cut: set[tuple[str, str]] = set()
        """Cut directions: (source, target)."""
        self._down: set[str] = set()
        self._next_number = 1000
        self._next_port = 30_000

    def next_number(self) -> int:
        """A socket number that is unique among all hosts."""
        self._next_number += 1
        return self._next_number

    def next_port(self) -> int:
        self._next_port += 1
        return self._next_port

    def latency_seconds(self) -> float:
        faults, rng = self.faults, self.rng
        seconds = rng.uniform(faults.min_latency_seconds, faults.max_latency_seconds)
        if faults.slow and rng.random() < faults.slow:
            seconds += rng.random() * faults.slow_seconds
        return seconds

    def pipe(self, source: ConnectionEnd, target: ConnectionEnd) -> "Pipe":
        pipe = Pipe(self, source, target)
        self._pipes.append(pipe)
        return pipe

    def reachable(self, source: str, target: str) -> bool:
        """Whether sent bytes arrive."""
        return (source, target) not in self._cut and target not in self._down

    def cut(self, source: str, target: str) -> None:
        """Cut the link from one host to another until it is healed. The other direction stays open."""
        self.trace.event("network", "cut", source, target)
        self._cut.add((source, target))

    def partition(self, one: str, other: str) -> None:
        """Cut the link between two hosts in both directions until it is healed."""
        self.cut(one, other)
        self.cut(other, one)

    def mend(self, source: str, target: str) -> None:
        """Heal one direction of one link."""
        self.trace.event("network", "mend", source, target)
        self._cut.discard((source, target))
        self._resume()

    def heal(self) -> None:
        self.trace.event("network", "heal")
        self._cut.clear()
        self._resume()

    def host_down(self, host: str) -> None:
        """The host lost power: it answers nothing, and its peers are not notified."""
        self._down.add(host)

    def host_up(self, host: str) -> None:
        self._down.discard(host)
        self._resume()

    def reset_connections(self, host: str) -> None:
        """Reset every connection of a host, at both ends."""
        self.trace.event("network", "reset", host)
        for pipe in list(self._pipes):
            if host in (pipe.source.host, pipe.target.host):
                pipe.target.fail(errno.ECONNRESET)

    def _resume(self) -> None:
        self._pipes = [pipe for pipe in self._pipes if not (pipe.source.over and pipe.target.over)]
        for pipe in list(self._pipes):
            pipe.resume()


class Pipe:
    """One direction of a connection: the bytes in flight from source to target, in order."""

    __slots__ = (
        "_held",
        "_in_flight_bytes",
        "_last_arrival",
        "_network",
        "_unacknowledged_bytes",
        "_under_way",
        "source",
        "target",
    )

    def __init__(self, network: Network, source: ConnectionEnd, target: ConnectionEnd) -> None:
        self._network = network
        self.source = source
        self.target = target
        self._in_flight_bytes = 0
        self._unacknowledged_bytes = 0
        """The bytes in flight that have arrived, but whose acknowledgement could not be delivered."""
        self._last_arrival = 0.0
        self._under_way: deque[bytes | Signal] = deque()
        self._held: deque[bytes | Signal] = deque()

    def room(self) -> int:
        """How many more bytes the buffers of both ends accept together."""
        return self._network.faults.buffer_bytes - self._in_flight_bytes - self.target.unread()

    def put(self, item: bytes | Signal) -> None:
        network = self._network
        if isinstance(item, bytes):
            self._in_flight_bytes += len(item)
            if network.faults.fragment and len(item) > 1 and network.rng.random() < network.faults.fragment:
                cut = network.rng.randrange(1, len(item))
                self._schedule(item[:cut])
                item = item[cut:]
        self._schedule(item)

    def resume(self) -> None:
        """Send the held back bytes again, before later ones."""
        if self._unacknowledged_bytes and self._is_acknowledged():
            self._in_flight_bytes -= self._unacknowledged_bytes
            self._unacknowledged_bytes = 0
            self.source.update()
        if self.source.vanished:
            self._held.clear()
        if self._held and self._network.reachable(self.source.host, self.target.host):
            self._under_way.extendleft(reversed(self._held))
            for _ in self._held:
                self._set_timer()
            self._held.clear()

    def _schedule(self, item: bytes | Signal) -> None:
        self._under_way.append(item)
        self._set_timer()

    def _set_timer(self) -> None:
        network = self._network
        when = max(self._last_arrival, network.loop.now() + network.latency_seconds())
        self._last_arrival = when
        network.loop.call_at(when, self._arrive, context=network.root_context)

    def _arrive(self) -> None:
        # Timers of the same time fire in any order: each one delivers the next bytes.
        item = self._under_way.popleft()
        if self._held or not self._network.reachable(self.source.host, self.target.host):
            self._held.append(item)
            return
        if isinstance(item, bytes):
            if self._is_acknowledged():
                self._in_flight_bytes -= len(item)
            else:
                self._unacknowledged_bytes += len(item)
        assert 0 <= self._unacknowledged_bytes <= self._in_flight_bytes
        self.target.receive(item)

    def _is_acknowledged(self) -> bool:
        """Whether the acknowledgement of arrived bytes reaches the source."""
        return self._network.reachable(self.target.host, self.source.host)
