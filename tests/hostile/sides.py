"""Brokers in their own processes, over sockets: an Odradek node, and Apache Kafka if it is available."""

import contextlib
import os
import re
import shutil
import socket
import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.hostile.world import Size, World
from tests.support import peer
from tests.support.node import NodeProcess

SMALL = Size(topics=20, wide=50, groups=5, transactional_ids=5, consumer_groups=1)
IDLE_S = 0.02
APACHE_SETTINGS = ("offsets.topic.num.partitions=5", "transaction.state.log.num.partitions=5")


class Process:
    """A broker's process and how it is asked; a place for a world."""

    def __init__(self, bootstrap: str, pid: int, timeout_s: float) -> None:
        self.bootstrap = bootstrap
        self.pid = pid
        self._timeout_s = timeout_s

    def connect(self) -> socket.socket:
        host, port = self.bootstrap.rsplit(":", 1)
        sock = socket.create_connection((host, int(port)), self._timeout_s)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    @contextmanager
    def client(self) -> Iterator[socket.socket]:
        with self.connect() as sock:
            yield sock

    def ask(self, client: socket.socket, frame: bytes) -> bytes | None:
        """The answer, or None where the broker hangs up; TimeoutError where neither comes."""
        client.sendall(frame)
        return answer(client)

    def wait_until_idle(self) -> None:
        time.sleep(IDLE_S)

    def rss_mb(self) -> float:
        with contextlib.suppress(OSError):
            found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text())
            if found:
                return int(found[1]) / 1024
        return 0.0


def answer(client: socket.socket) -> bytes | None:
    """The next answer of a connection."""
    with contextlib.suppress(ConnectionError):
        head = _exactly(client, 4)
        return _exactly(client, struct.unpack(">i", head)[0])
    return None


def _exactly(client: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = client.recv(min(count - len(data), 1 << 20))
        if not piece:
            raise ConnectionResetError(f"closed after {len(data)} of {count} bytes")
        data += piece
    return bytes(data)


@contextmanager
def odradek(timeout_s: float) -> Iterator[World]:
    """Killed in the end: a node that is held up would not stop by itself for long."""
    with tempfile.TemporaryDirectory(prefix="odradek-hostile-") as directory:
        node = NodeProcess(Path(directory) / "data")
        try:
            yield World(Process(node.bootstrap, node.pid, timeout_s), SMALL)
        finally:
            node.kill()


@contextmanager
def apache(timeout_s: float) -> Iterator[World]:
    directory = Path(tempfile.mkdtemp(prefix="odradek-hostile-"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    try:
        bootstrap = peer.start(directory, port, *APACHE_SETTINGS, environment=os.environ)
        pid = int(next(directory.glob("node-*/pid")).read_text().split()[0])
        yield World(Process(bootstrap, pid, timeout_s), SMALL)
    finally:
        peer.stop(directory)
        shutil.rmtree(directory, ignore_errors=True)
