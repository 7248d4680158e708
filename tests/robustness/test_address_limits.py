"""max.connections.per.ip and its overrides: a connection above the limit is closed at once."""

import pathlib
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from odradek.wire.api_keys import ApiKey
from tests.support.node import NodeProcess, running
from tests.support.raw import Connection

REJECTED = "Rejected connection from {}, address already has the configured maximum of {} connections"


def connect(node: NodeProcess, source: str = "127.0.0.1") -> socket.socket:
    host, _, port = node.bootstrap.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=20, source_address=(source, 0))


def is_served(sock: socket.socket) -> bool:
    """Whether an ApiVersions request is answered, not the connection closed."""
    try:
        sock.sendall(b"\0\0\0\x0a\0\x12\0\0\0\0\0\x01\xff\xff")
        return len(sock.recv(4)) == 4
    except ConnectionError:
        return False


@contextmanager
def connections(node: NodeProcess, count: int, source: str = "127.0.0.1") -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(connect(node, source)) for _ in range(count)]


def alter(connection: Connection, **settings: str) -> None:
    configs = [
        {"name": name.replace("_", "."), "config_operation": 0, "value": value}
        for name, value in settings.items()
    ]
    resource = {"resource_type": 4, "resource_name": "1", "configs": configs}
    answer = connection.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource]})
    assert [row.error_code for row in answer.responses] == [0]


def test_a_connection_above_the_limit_of_its_address_is_closed_at_once(tmp_path: pathlib.Path) -> None:
    with running(tmp_path / "data", "--set", "max.connections.per.ip=2") as node:
        with connections(node, 2) as first, connect(node) as third, connect(node, "127.0.0.2") as other:
            assert all(map(is_served, first))
            assert not is_served(third)
            assert is_served(other)  # another address has its own count
            assert all(map(is_served, first))
            first[0].close()
            wait_until_served(node)
        assert REJECTED.format("127.0.0.1", 2) in node.log()


def wait_until_served(node: NodeProcess) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with connect(node) as again:
            if is_served(again):
                return
        time.sleep(0.02)
    raise AssertionError("nobody is let in though somebody has left")


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"])
def test_an_override_holds_for_its_address_or_name(tmp_path: pathlib.Path, name: str) -> None:
    settings = ("max.connections.per.ip=0", f"max.connections.per.ip.overrides=10.1.2.3:9,{name}:1")
    args = [arg for setting in settings for arg in ("--set", setting)]
    with (
        running(tmp_path / "data", *args) as node,
        connect(node) as first,
        connect(node) as second,
        connect(node, "127.0.0.2") as other,
    ):
        assert is_served(first)
        assert not is_served(second)
        assert not is_served(other)


def test_changes_act_on_who_comes_next(tmp_path: pathlib.Path) -> None:
    with running(tmp_path / "data") as node, Connection(node.bootstrap) as admin:
        with connections(node, 3) as before:
            assert all(map(is_served, before))
            alter(admin, max_connections_per_ip="2")
            with connect(node) as late:
                assert not is_served(late)
            assert all(map(is_served, before))  # nobody who is there is sent away
            alter(admin, max_connections_per_ip_overrides="127.0.0.1:100")
            with connect(node) as later:
                assert is_served(later)
            alter(admin, max_connections_per_ip_overrides="nowhere.invalid:5,127.0.0.1:1")
            with connect(node) as last:
                assert is_served(last)
        deadline = time.monotonic() + 20
        while "Invalid connection limits for addresses, keeping the previous ones" not in node.log():
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_a_node_does_not_start_with_a_limit_for_a_name_that_nobody_has(tmp_path: pathlib.Path) -> None:
    with pytest.raises(RuntimeError, match=r"cannot resolve nowhere\.invalid"):
        NodeProcess(tmp_path / "data", "--set", "max.connections.per.ip.overrides=nowhere.invalid:5")


def test_the_limit_of_a_listener_lets_who_comes_wait(tmp_path: pathlib.Path) -> None:
    with running(tmp_path / "data", "--set", "listener.name.plaintext.max.connections=1") as node:
        with connect(node) as first, connect(node) as second:
            assert is_served(first)
            second.settimeout(0.3)
            with pytest.raises(TimeoutError):
                is_served(second)
            first.close()
            second.settimeout(20)
            assert len(second.recv(4)) == 4
        log = node.log()
        stopped = "Listener PLAINTEXT stopped accepting: 1 connections"
        assert f"{stopped}, listener.name.plaintext.max.connections is 1" in log
        assert "without effect" not in log
