"""Server: the listeners of a node and their connections."""

import asyncio
import logging
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, cast

from odradek.broker.network.address_limits import AddressLimits
from odradek.broker.network.buffers import BufferPool
from odradek.broker.network.connection import Connection
from odradek.broker.network.sending import SendingTurns
from odradek.core.configs import NodeConfig
from odradek.core.metrics import Metrics
from odradek.log.files import FilePool
from odradek.runtime.api import ListeningSocket, Runtime, Socket

if TYPE_CHECKING:
    from odradek.broker.controller_services import ControllerServices
    from odradek.broker.services import Services
    from odradek.broker.waiting_services import WaitingServices

_log = logging.getLogger(__name__)

ACCEPT_AT_ONCE = 64
ACCEPT_PAUSE_S = 0.1
TELL_S = 1.0
SLOW_S = 1.0
SLOW_LOOK_S = 0.1


class Server:
    """Accepts connections on named listeners and counts them."""

    services: "Services"
    """The services for handlers. Set by `open`."""

    def __init__(
        self,
        config: NodeConfig,
        runtime: Runtime,
        metrics: Metrics,
        files: FilePool,
        max_connections: int,
    ) -> None:
        """`files` is the pool of log files; `max_connections` is the limit by descriptors."""
        self._config = config
        self._files = files
        self._max_connections = max_connections
        self.runtime = runtime
        self.loop = asyncio.get_running_loop()
        self.max_request_bytes = config.max_request_size
        self.turns = SendingTurns(self.loop.call_soon)
        self.buffers = BufferPool(config.int("queued.max.request.bytes"))
        self._metrics = metrics
        self.connections: dict[int, Connection] = {}
        self.address_limits = AddressLimits(runtime)
        self._by_listener: Counter[str] = Counter()
        self._refused = 0  # connections rejected by address since the last log message
        self._told_refused_s = -TELL_S
        self._max_idle_s = config.int("connections.max.idle.ms") / 1000
        self.addresses: dict[str, tuple[str, int]] = {}
        self._listeners: dict[str, ListeningSocket] = {}
        self._waiting: dict[str, None] = {}  # listeners that accept no connection until another one closes
        self._is_open = False
        self._accepted = 0
        self._idle_sweep: asyncio.TimerHandle | None = None
        self._next_slow_look = 0.0

    def listen(self, name: str, host: str, port: int) -> tuple[str, int]:
        """Bind a listener; connections wait in its backlog until `open`."""
        listener = self.runtime.net.listen(host, port)
        self._listeners[name] = listener
        self.addresses[name] = listener.address
        return listener.address

    def open(self, services: "Services | ControllerServices | WaitingServices") -> None:
        """Start to accept connections. Each handler has its own type for the services that it needs.

        Called again, it serves those that are connected and those that come with other services.
        """
        self.services = cast("Services", services)
        if self._is_open:
            return
        self._is_open = True
        for name in self._listeners:
            self._accept_again(name)
        self._sweep_idle()

    def forget(self, connection: Connection) -> None:
        if self.connections.pop(connection.number, None) is not None:
            self._by_listener[connection.listener] -= 1
            self.address_limits.went(connection.peer[0])
        self._metrics.listener(connection.listener).closed += 1
        if self._waiting:
            self.accept_waiting()

    def observe(self, api_key: int, version: int, received_at: float, count: int = 1) -> None:
        """Count answered requests and the time since they were received."""
        found = self._metrics.requests.get(api_key) or self._metrics.request(api_key)
        found.observe(version, int((self.loop.time() - received_at) * 1e6), count)

    async def close(self) -> None:
        for listener in self._listeners.values():
            self.runtime.net.remove_reader(listener)
            listener.close()
        self._listeners.clear()
        self._waiting.clear()
        if self._idle_sweep is not None:
            self._idle_sweep.cancel()
        for connection in list(self.connections.values()):
            await connection.end()

    def _accept(self, name: str, listener: ListeningSocket) -> None:
        for _ in range(ACCEPT_AT_ONCE):
            if not self._has_room(name):
                self._wait(name, listener)
                return
            try:
                self._welcome(listener.accept(), name)
            except BlockingIOError:
                return
            except OSError as e:
                _log.warning("Listener %s cannot accept: %s", name, e)
                self.runtime.net.remove_reader(listener)
                self.loop.call_later(ACCEPT_PAUSE_S, self._accept_again, name)
                return

    def _accept_again(self, name: str) -> None:
        listener = self._listeners.get(name)
        if listener is not None:
            self.runtime.net.add_reader(listener, partial(self._accept, name, listener))

    def _welcome(self, sock: Socket, listener_name: str) -> None:
        address = sock.peer[0]
        if not self.address_limits.has_room(address):
            sock.close()
            self._tell_refused(address)
            return
        self._accepted += 1
        self._metrics.listener(listener_name).created += 1
        if self._is_full():
            self._close_least_recently_used(listener_name)
        try:
            self.connections[self._accepted] = Connection(self, sock, listener_name, self._accepted)
        except OSError:  # no memory to register it
            sock.close()
            raise
        self._by_listener[listener_name] += 1
        self.address_limits.came(address)

    # --- how many ---------------------------------------------------------------------------------------

    @property
    def max_connections(self) -> int:
        """max.connections, but at most the share of descriptors for clients."""
        return min(self._config.int("max.connections"), self._max_connections)

    def max_connections_of(self, listener: str) -> int:
        """listener.name.NAME.max.connections, else max.connections."""
        value = self._config.value(f"listener.name.{listener.lower()}.max.connections")
        assert isinstance(value, int)
        return value

    def _has_room(self, name: str) -> bool:
        if self._by_listener[name] >= self.max_connections_of(name):
            return False
        return not self._is_full() or self._is_preferred(name)

    def _is_full(self) -> bool:
        return len(self.connections) >= self.max_connections

    def _is_preferred(self, name: str) -> bool:
        """Brokers are admitted above max.connections if they have their own listener."""
        return (
            name == self._config.inter_broker_listener_name
            and len(self._listeners) > 1
            and any(connection.listener != name for connection in self.connections.values())
        )

    def _close_least_recently_used(self, name: str) -> None:
        """Close a connection of another listener to make room."""
        others = [connection for connection in self.connections.values() if connection.listener != name]
        oldest = min(others, key=lambda connection: max(connection.last_active, connection.last_sent))
        oldest.close("least recently used connection, and max.connections is reached")

    def _wait(self, name: str, listener: ListeningSocket) -> None:
        """Leave new connections in the backlog until another one closes."""
        if self._is_full():
            count, limit, what = len(self.connections), self.max_connections, "max.connections"
        else:
            count, limit = self._by_listener[name], self.max_connections_of(name)
            what = f"listener.name.{name.lower()}.max.connections"
        few = self._is_full() and limit != self._config.int("max.connections")
        _log.warning(
            "Listener %s stopped accepting: %d connections, %s is %d%s",
            name,
            count,
            what,
            limit,
            ", limited by the file descriptors of the process" if few else "",
        )
        self._waiting[name] = None
        self.runtime.net.remove_reader(listener)

    def accept_waiting(self) -> None:
        """A connection was closed, or the limit was raised: accept again."""
        if self._is_open:
            for name in [name for name in self._waiting if self._has_room(name)]:
                del self._waiting[name]
                self._accept_again(name)

    def _tell_refused(self, address: str) -> None:
        """Log rejected connections, but not each one: a client that reconnects all the time must not fill the
        log."""
        self._refused += 1
        now_s = self.loop.time()
        if now_s >= self._told_refused_s + TELL_S:
            _log.info(
                "Rejected connection from %s, address already has the configured maximum of %d connections "
                "(%d rejected since the last message)",
                address,
                self.address_limits.limit(address),
                self._refused,
            )
            self._refused, self._told_refused_s = 0, now_s

    def close_slow_readers(self) -> None:
        """Close peers that do not read their replies, to release files. The longest silent first."""
        now, files = self.loop.time(), self._files
        if now < self._next_slow_look:
            return
        self._next_slow_look = now + SLOW_LOOK_S
        slow = [
            (used, connection.number, connection)
            for connection in self.connections.values()
            if (used := max(connection.last_active, connection.last_sent)) < now - SLOW_S
            and connection.output.holds_files
        ]
        for _, _, connection in sorted(slow):
            if not files.is_short:
                break
            connection.close("the client does not read its replies, and they keep too many files open")

    def _sweep_idle(self) -> None:
        """Close connections without traffic for connections.max.idle.ms, including half-open ones."""
        oldest = self.loop.time() - self._max_idle_s
        for connection in list(self.connections.values()):
            if connection.last_active < oldest and connection.last_sent < oldest:
                connection.close("idle for longer than connections.max.idle.ms")
        self._idle_sweep = self.loop.call_later(max(self._max_idle_s / 4, 0.05), self._sweep_idle)
