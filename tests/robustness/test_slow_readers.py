"""Peers that ask for records and do not read them: the logs keep their descriptors."""

import pathlib
import socket
import time
from collections.abc import Iterator

import pytest

from tests.support.batches import batch
from tests.support.node import NodeProcess, running
from tests.support.produce import produce
from tests.support.raw import Connection, request_bytes
from tests.support.stored import fetch_values, split
from tests.support.topics import create_topic

FETCH = 1
LIMIT = 256
PARTITIONS = 80
RECORD_BYTES = 1_000_000
RECORDS = 2  # a reply of some partitions is more than the network takes by itself


@pytest.fixture
def node(tmp_path: pathlib.Path) -> Iterator[NodeProcess]:
    with running(tmp_path / "data", descriptors=LIMIT) as process:
        create_topic(process.bootstrap, "t", partitions=PARTITIONS)
        with Connection(process.bootstrap) as connection:
            for partition in [*range(PARTITIONS)] * RECORDS:
                written = produce(connection, "t", batch([bytes(RECORD_BYTES)]), partition=partition)
                assert written.error_code == 0
        yield process


def slow_reader(node: NodeProcess, first: int) -> socket.socket:
    """It asks for all partitions, beginning with one of them, and reads nothing."""
    host, _, port = node.bootstrap.rpartition(":")
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.settimeout(20)
    sock.connect((host, int(port)))
    wanted = [("t", (first + i) % PARTITIONS, 0) for i in range(PARTITIONS)]
    sock.sendall(request_bytes(FETCH, 12, fetch_values(wanted)))
    return sock


def open_files(node: NodeProcess) -> int:
    return len(list(pathlib.Path(f"/proc/{node.pid}/fd").iterdir()))


def test_replies_that_nobody_reads_leave_descriptors_to_the_logs(node: NodeProcess) -> None:
    readers: list[socket.socket] = []
    try:
        for wave in range(3):
            for i in range(25):
                readers.append(slow_reader(node, (25 * wave + i) * 7))
                time.sleep(0.02)
                assert open_files(node) < LIMIT - 32, f"{len(readers)} slow readers"
            time.sleep(1.2)
        with Connection(node.bootstrap) as connection:
            for partition in range(PARTITIONS):
                assert produce(connection, "t", batch([b"next"]), partition=partition).error_code == 0
    finally:
        for sock in readers:
            sock.close()
    log = node.log()
    assert "Traceback" not in log and "offline" not in log and "Out of file descriptors" not in log
    assert "the client does not read its replies" in log, "one client was closed"


def test_whoever_reads_gets_every_partition_in_the_end(node: NodeProcess) -> None:
    got: set[int] = set()
    with Connection(node.bootstrap) as connection:
        while len(got) < PARTITIONS:
            wanted = [("t", i, 0) for i in range(PARTITIONS) if i not in got]
            answer = connection.call(FETCH, 12, fetch_values(wanted))
            found = {
                row.partition_index
                for topic in answer.responses
                for row in topic.partitions
                if row.records and split(row.records)
            }
            assert found, f"nothing after {len(got)} partitions"
            got |= found
