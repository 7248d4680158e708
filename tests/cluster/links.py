"""What nodes send to each other goes through here, and can be lost, late or cut, in one direction only.

Network namespaces with `tc netem` would need root and a kernel with netem; proxies run everywhere. Every
port of a node has one. Nodes know each other by the ports of the proxies (advertised listeners), and
clients go to the brokers directly. Who opened a connection is found in /proc, by its port.
"""

import os
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from odradek.cli.node.local_directories import free_ports
from odradek.cli.node.local_plan import BROKER, CONTROLLER, HOST, NodePorts, PlannedNode
from tests.cluster.nodes import Processes, formatted_with, running

INTERNAL = "INTERNAL"
_PIECE = 1 << 16
_LOOKS = 20
_TURN_S = 0.001
"""How late a piece may be that is due."""


class Way(NamedTuple):
    """One direction between two nodes."""

    source: int
    target: int


class _Stream:
    """One direction of one connection: bytes that were read and are due later."""

    def __init__(self, way: Way, from_socket: socket.socket, to_socket: socket.socket) -> None:
        self.way = way
        self.reads, self.writes = from_socket, to_socket
        self.pieces: deque[tuple[float, bytes]] = deque()
        self.is_ended = False


class Links(threading.Thread):
    """One thread moves all bytes. `cut`: what is sent gets lost and the connection stays, as with a broken
    cable. After `heal` those connections are closed: TCP would send the bytes again."""

    def __init__(self, pids: Callable[[], Mapping[int, int]]) -> None:
        super().__init__(name="links", daemon=True)
        self._pids = pids
        self._lock = threading.Lock()
        self._selector = selectors.DefaultSelector()
        self._streams: dict[socket.socket, _Stream] = {}
        self._lossy: set[socket.socket] = set()
        self._cut: set[Way] = set()
        self._delays: dict[Way, float] = {}
        self._is_over = threading.Event()

    def listen(self, node_id: int, port: int, behind: int) -> None:
        server = socket.socket()
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((HOST, port))
        server.listen(64)
        server.setblocking(False)
        self._selector.register(server, selectors.EVENT_READ, (node_id, behind))

    def cut(self, *ways: Way) -> None:
        with self._lock:
            self._cut |= set(ways)

    def delay(self, seconds: float, *ways: Way) -> None:
        with self._lock:
            self._delays |= dict.fromkeys(ways, seconds)

    def heal(self) -> None:
        with self._lock:
            self._cut.clear()
            self._delays.clear()
            for lossy in list(self._lossy):
                self._close(lossy)

    def reset(self) -> None:
        """Close every connection."""
        with self._lock:
            for sock in list(self._streams):
                self._close(sock)

    def finish(self) -> None:
        self._is_over.set()
        self.join()
        with self._lock:
            for sock in list(self._streams):
                self._close(sock)
            for key in list(self._selector.get_map().values()):
                self._selector.unregister(key.fileobj)
                key.fileobj.close()  # type: ignore[union-attr]
            self._selector.close()

    def run(self) -> None:
        while not self._is_over.is_set():
            for key, _ in self._selector.select(self._wait_s()):
                with self._lock:
                    if key.data is not None:
                        self._accept(key.fileobj, *key.data)  # type: ignore[arg-type]
                    else:
                        self._read(key.fileobj)  # type: ignore[arg-type]
            with self._lock:
                self._write_what_is_due()

    def _wait_s(self) -> float:
        with self._lock:
            is_late = any(stream.pieces for stream in self._streams.values())
        return _TURN_S if is_late else 0.05

    def _accept(self, server: socket.socket, target: int, behind: int) -> None:
        try:
            client, (_, port) = server.accept()
        except OSError:  # it has given up
            return
        source = self._owner(port)
        to_node = socket.socket()
        try:
            to_node.connect((HOST, behind))
        except OSError:  # the node is down
            to_node.close()
            client.close()
            return
        for sock in (client, to_node):
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(sock, selectors.EVENT_READ)
        self._streams[client] = _Stream(Way(source, target), client, to_node)
        self._streams[to_node] = _Stream(Way(target, source), to_node, client)

    def _owner(self, port: int) -> int:
        """The node whose socket has this port; 0 if it is none of them, or gone. While connections come and
        go a read of the table may miss some."""
        local = f"0100007F:{port:04X}"
        for _ in range(_LOOKS):
            rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
            for row in rows:
                if row[1] == local and (found := self._with_socket(row[9])):
                    return found
        return 0

    def _with_socket(self, inode: str) -> int:
        for node_id, pid in self._pids().items():
            try:
                for fd in os.scandir(f"/proc/{pid}/fd"):
                    if os.readlink(fd.path) == f"socket:[{inode}]":
                        return node_id
            except OSError:
                continue
        return 0

    def _read(self, sock: socket.socket) -> None:
        stream = self._streams.get(sock)
        if stream is None:
            return
        try:
            data = sock.recv(_PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data and stream.way in self._cut:
            self._lossy.add(sock)
            return
        if not data:
            self._selector.unregister(sock)
            stream.is_ended = True
        stream.pieces.append((time.monotonic() + self._delays.get(stream.way, 0.0), data))

    def _write_what_is_due(self) -> None:
        now = time.monotonic()
        for stream in list(self._streams.values()):
            while stream.pieces and stream.pieces[0][0] <= now:
                due, data = stream.pieces.popleft()
                if not data:
                    self._close(stream.reads)
                    break
                try:
                    sent = stream.writes.send(data)
                except BlockingIOError:
                    sent = 0
                except OSError:
                    self._close(stream.reads)
                    break
                if sent < len(data):
                    stream.pieces.appendleft((due, data[sent:]))
                    break

    def _close(self, sock: socket.socket) -> None:
        """Both directions."""
        stream = self._streams.get(sock)
        if stream is None:
            return
        for end in (stream.reads, stream.writes):
            found = self._streams.pop(end, None)
            self._lossy.discard(end)
            if found is not None and not found.is_ended:
                self._selector.unregister(end)
            end.close()


@contextmanager
def linked(folder: Path, count: int, settings: Mapping[str, str]) -> Iterator[tuple[Processes, Links]]:
    """A cluster whose nodes meet through links."""
    ports = free_ports(3 * count)
    known, bound, direct = ports[:count], ports[count : 2 * count], ports[2 * count :]

    def change(node: PlannedNode) -> dict[str, str]:
        i = node.node_id - 1
        return {
            "listeners": _listeners(direct[i].broker, bound[i], node),
            "advertised.listeners": _listeners(direct[i].broker, known[i], node),
            "inter.broker.listener.name": INTERNAL,
            "listener.security.protocol.map": ",".join(
                f"{n}:PLAINTEXT" for n in (BROKER, INTERNAL, CONTROLLER)
            ),
        }

    plan = formatted_with(folder, count, settings, change, known)
    nodes = (node._replace(address=f"{HOST}:{direct[node.node_id - 1].broker}") for node in plan.nodes)
    cluster = Processes(folder, plan._replace(nodes=tuple(nodes)))
    links = Links(lambda: {node_id: node.process.pid for node_id, node in cluster.nodes.items()})
    for i in range(count):
        links.listen(i + 1, known[i].broker, bound[i].broker)
        links.listen(i + 1, known[i].controller, bound[i].controller)
    links.start()
    try:
        with running(cluster):
            yield cluster, links
    finally:
        links.finish()


def _listeners(direct: int, ports: NodePorts, node: PlannedNode) -> str:
    """Clients go to the first one."""
    listeners = [f"{BROKER}://{HOST}:{direct}", f"{INTERNAL}://{HOST}:{ports.broker}"]
    if CONTROLLER in node.properties["listeners"]:
        listeners.append(f"{CONTROLLER}://{HOST}:{ports.controller}")
    return ",".join(listeners)
