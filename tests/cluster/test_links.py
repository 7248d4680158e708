"""The proxies between nodes do to bytes what they say."""

import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from odradek.cli.node.local_directories import free_ports
from odradek.cli.node.local_plan import HOST
from tests.cluster.links import Links, Way

HERE, THERE = 7, 9
TO, BACK = Way(HERE, THERE), Way(THERE, HERE)


class Pair:
    """A connection from this process, as node 7, to an echo that is node 9."""

    def __init__(self) -> None:
        (ports,) = free_ports(1)
        self.links = Links(lambda: {HERE: os.getpid()})
        self.links.listen(THERE, ports.broker, ports.controller)
        self.links.start()
        self.server = socket.create_server((HOST, ports.controller))
        self._echo = threading.Thread(target=self._serve, daemon=True)
        self._echo.start()
        self.heard: list[bytes] = []
        self.port = ports.broker

    def _serve(self) -> None:
        while True:
            try:
                sock, _ = self.server.accept()
            except OSError:
                return
            with sock:
                while data := sock.recv(100):
                    self.heard.append(data)
                    sock.sendall(data)

    def connect(self) -> socket.socket:
        return socket.create_connection((HOST, self.port), timeout=10)

    def go_down(self) -> None:
        self.server.shutdown(socket.SHUT_RDWR)
        self._echo.join()
        self.server.close()

    def close(self) -> None:
        self.links.finish()
        if self._echo.is_alive():
            self.go_down()


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.close()


def call(sock: socket.socket, data: bytes) -> bytes:
    sock.sendall(data)
    return sock.recv(100)


def hears_nothing(sock: socket.socket) -> bool:
    sock.settimeout(0.2)
    with pytest.raises(TimeoutError):
        sock.recv(100)
    sock.settimeout(10)
    return True


def test_bytes_go_through_in_both_directions(pair: Pair) -> None:
    with pair.connect() as sock:
        assert [call(sock, b"%d" % i) for i in range(20)] == [b"%d" % i for i in range(20)]


def test_one_direction_is_cut_and_the_connection_stays_until_it_heals(pair: Pair) -> None:
    with pair.connect() as sock:
        assert call(sock, b"a") == b"a"
        pair.links.cut(BACK)
        sock.sendall(b"b")
        assert hears_nothing(sock)
        assert pair.heard == [b"a", b"b"]
        pair.links.heal()
        assert sock.recv(100) == b"", "closed: what was lost does not come any more"
    with pair.connect() as sock:
        assert call(sock, b"c") == b"c"
        pair.links.cut(TO)
        sock.sendall(b"d")
        assert hears_nothing(sock)
        assert pair.heard == [b"a", b"b", b"c"]


def test_a_cut_of_others_is_not_noticed(pair: Pair) -> None:
    with pair.connect() as sock:
        pair.links.cut(Way(8, THERE), Way(THERE, 8))
        assert call(sock, b"a") == b"a"


def test_what_is_delayed_comes_later_and_in_order(pair: Pair) -> None:
    with pair.connect() as sock:
        assert call(sock, b"a") == b"a"
        pair.links.delay(0.1, TO, BACK)
        began = time.monotonic()
        assert call(sock, b"b") == b"b"
        assert time.monotonic() - began >= 0.2


def test_a_reset_closes_all_connections_and_new_ones_work(pair: Pair) -> None:
    with pair.connect() as sock:
        assert call(sock, b"a") == b"a"
        pair.links.reset()
        assert sock.recv(100) == b""
    with pair.connect() as sock:
        assert call(sock, b"b") == b"b"


def test_a_node_that_is_down_refuses(pair: Pair) -> None:
    pair.go_down()
    with pair.connect() as sock:
        assert sock.recv(100) == b""
