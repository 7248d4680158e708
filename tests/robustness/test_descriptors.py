"""More idle connections than the process has descriptors: no directory goes offline, and /healthz still
answers."""

import pathlib
import re
import socket
import time
import urllib.request
from collections.abc import Iterator

import pytest

from tests.support.batches import batch
from tests.support.node import NodeProcess, running
from tests.support.produce import produce
from tests.support.raw import Connection
from tests.support.stored import fetch, split
from tests.support.topics import create_topic

LIMIT = 256
IDLE = 300
SETTINGS = (
    "--http", "0",
    "--set", "replica.high.watermark.checkpoint.interval.ms=100",
    "--set", "log.flush.offset.checkpoint.interval.ms=100",
)  # fmt: skip


@pytest.fixture
def node(tmp_path: pathlib.Path) -> Iterator[NodeProcess]:
    with running(tmp_path / "data", *SETTINGS, descriptors=LIMIT) as process:
        yield process


def health(node: NodeProcess) -> tuple[int, str]:
    address = re.search(r"http (\S+?:\d+)", node.ready_line)[1]
    with urllib.request.urlopen(f"http://{address}/healthz", timeout=20) as answer:
        return answer.status, answer.read().decode()


def idle_connections(node: NodeProcess) -> list[socket.socket]:
    host, _, port = node.bootstrap.rpartition(":")
    return [socket.create_connection((host, int(port)), timeout=20) for _ in range(IDLE)]


def open_files(node: NodeProcess) -> int:
    return len(list(pathlib.Path(f"/proc/{node.pid}/fd").iterdir()))


def steady_open_files(node: NodeProcess) -> int:
    """How many descriptors the node has once it accepts no more."""
    last, since = open_files(node), time.monotonic()
    while time.monotonic() < since + 0.3:
        time.sleep(0.02)
        if (now := open_files(node)) != last:
            last, since = now, time.monotonic()
    return last


def test_idle_connections_take_neither_the_log_directory_nor_health(node: NodeProcess) -> None:
    create_topic(node.bootstrap, "t", partitions=20, configs={"segment.bytes": "1048576"})
    value = b"v" * 600_000
    with Connection(node.bootstrap) as connection:
        assert produce(connection, "t", batch([b"first"])).error_code == 0
        idle = idle_connections(node)
        assert steady_open_files(node) < LIMIT - 32, "a reserve is left to the logs"
        for number in range(4):  # each rolls a segment of every partition, and checkpoints are written
            for partition in range(20):
                answer = produce(connection, "t", batch([value]), partition=partition)
                assert answer.error_code == 0, (number, partition)
            assert health(node) == (200, "ok\n")
        fetched = [fetch(connection, "t", offset) for offset in range(5)]
        assert all(code == 0 and split(records) for code, records in fetched)
        for sock in idle:
            sock.close()
        with Connection(node.bootstrap) as other:
            assert produce(other, "t", batch([b"last"])).error_code == 0
    log = node.log()
    assert "offline" not in log and "Traceback" not in log
    assert re.search(r"WARN Listener PLAINTEXT stopped accepting: \d+ connections", log)
    assert node.stop() == 0
    assert (node.data_dir / ".kafka_cleanshutdown").exists()


def test_new_clients_are_served_once_others_have_left(node: NodeProcess) -> None:
    create_topic(node.bootstrap, "t")
    idle = idle_connections(node)
    steady_open_files(node)
    with Connection(node.bootstrap) as waiting:
        waiting.send(18, 0, {})
        waiting.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            waiting.socket.recv(1)
        for sock in idle:
            sock.close()
        waiting.socket.settimeout(20)
        assert waiting.receive(18, 0).error_code == 0


def test_max_connections_bounds_them_and_more_wait(tmp_path: pathlib.Path) -> None:
    with running(tmp_path / "data", "--set", "max.connections=2") as node:
        with Connection(node.bootstrap) as first, Connection(node.bootstrap) as second:
            for connection in (first, second):
                assert connection.call(18, 0, {}).error_code == 0
            with Connection(node.bootstrap) as third:
                third.send(18, 0, {})
                third.socket.settimeout(0.3)
                with pytest.raises(TimeoutError):
                    third.socket.recv(1)
                first.close()
                third.socket.settimeout(20)
                assert third.receive(18, 0).error_code == 0
        assert "Listener PLAINTEXT stopped accepting: 2 connections, max.connections is 2" in node.log()
