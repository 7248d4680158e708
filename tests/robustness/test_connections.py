"""Peers that behave badly, each its own way: the node stays up, others notice little, memory is bounded."""

import contextlib
import gzip
import pathlib
import re
import resource
import socket
import struct
import threading
import time

import cramjam
import pytest

from tests.support.batches import batch, record, varint
from tests.support.node import running
from tests.support.produce import PRODUCE, produce, produce_values
from tests.support.raw import Connection, request_bytes
from tests.support.stored import FETCH, fetch, fetch_values
from tests.support.topics import create_topic

API_VERSIONS = 18
MB = 1 << 20


@pytest.fixture
def node(tmp_path):
    with running(tmp_path / "data") as process:
        create_topic(process.bootstrap, "t")
        yield process


def rss_mb(node) -> float:
    status = pathlib.Path(f"/proc/{node.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def open_files(node) -> int:
    return len(list(pathlib.Path(f"/proc/{node.pid}/fd").iterdir()))


class Others:
    """A well-behaved client that produces one record after another while something else goes on."""

    def __init__(self, bootstrap: str) -> None:
        self.times: list[float] = []
        self._bootstrap = bootstrap
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.failure: BaseException | None = None

    def _run(self) -> None:
        try:
            with Connection(self._bootstrap) as connection:
                while not self._stop.is_set():
                    began = time.monotonic()
                    assert produce(connection, "t", batch([b"other"])).error_code == 0
                    self.times.append(time.monotonic() - began)
                    time.sleep(0.002)
        except BaseException as e:
            self.failure = e

    def __enter__(self) -> "Others":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def check(self) -> None:
        """Nobody waited long: the bounds leave room for a busy machine, not for a held loop."""
        assert self.failure is None, repr(self.failure)
        ordered = sorted(self.times)
        assert len(ordered) > 20
        assert ordered[len(ordered) // 2] < 0.05, f"p50 {ordered[len(ordered) // 2] * 1e3:.1f} ms"
        assert ordered[-1] < 2, f"slowest {ordered[-1] * 1e3:.0f} ms"


def wait_until(condition, timeout_s: float = 15) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_silent_and_half_open_peers_are_closed_after_the_idle_time(tmp_path):
    with running(tmp_path / "data", "--set", "connections.max.idle.ms=800") as node:
        create_topic(node.bootstrap, "t")
        silent = Connection(node.bootstrap)
        halfway = Connection(node.bootstrap)
        halfway.socket.sendall(struct.pack(">i", 1000) + b"and then nothing")
        with Others(node.bootstrap) as others:
            assert silent.closed_by_peer(10)
            assert halfway.closed_by_peer(10)
        others.check()
        silent.close()
        halfway.close()
        assert "idle" in node.log()


def test_a_slow_reader_is_not_idle(tmp_path):
    with running(tmp_path / "data", "--set", "connections.max.idle.ms=800") as node:
        create_topic(node.bootstrap, "t")
        with Connection(node.bootstrap) as connection:
            for _ in range(20):
                produce(connection, "t", batch([b"x" * 900_000]))
        host, port = node.bootstrap.rsplit(":", 1)
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
            slow.connect((host, int(port)))
            values = fetch_values([("t", 0, 0)], max_bytes=16 * MB, partition_max_bytes=16 * MB)
            slow.sendall(request_bytes(FETCH, 12, values))
            left = 4 + struct.unpack(">i", slow.recv(4, socket.MSG_PEEK))[0]
            assert left > 10 * MB
            while left:
                count = len(slow.recv(min(left, MB), socket.MSG_WAITALL))
                assert count, f"hung up with {left} bytes to come"
                left -= count
                time.sleep(0.2)


def test_a_peer_that_does_not_read_is_bounded_and_keeps_nobody_waiting(node):
    with Connection(node.bootstrap) as connection:
        for _ in range(20):
            produce(connection, "t", batch([b"x" * 900_000]))
    before = rss_mb(node)
    slow = Connection(node.bootstrap)
    slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.socket.settimeout(2)
    ask = request_bytes(
        FETCH, 12, fetch_values([("t", 0, 0)], max_bytes=16 * MB, partition_max_bytes=16 * MB)
    )
    with Others(node.bootstrap) as others:
        with contextlib.suppress(TimeoutError):
            for _ in range(200_000):
                slow.socket.sendall(ask)  # until the node has stopped reading and our buffer is full
        time.sleep(1)
    others.check()
    assert rss_mb(node) - before < 60
    slow.close()


def test_answers_that_nobody_reads_do_not_pile_up(node):
    """Small requests with larger answers: the node must stop reading before it runs out of memory."""
    before = rss_mb(node)
    slow = Connection(node.bootstrap)
    slow.socket.settimeout(2)
    asks = request_bytes(API_VERSIONS, 0, {}) * 1000
    with Others(node.bootstrap) as others, contextlib.suppress(TimeoutError):
        for _ in range(1000):
            slow.socket.sendall(asks)
    others.check()
    assert rss_mb(node) - before < 60
    slow.close()


def test_two_thousand_idle_connections_cost_little(node):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = 2000
    if 0 <= hard < count + 200:
        pytest.skip(f"this process may open {hard} files")
    before, files = rss_mb(node), open_files(node)
    host, port = node.bootstrap.rsplit(":", 1)
    idle = [socket.create_connection((host, int(port)), 30) for _ in range(count)]
    try:
        for sock in idle:
            sock.sendall(request_bytes(API_VERSIONS, 0, {}))
        for sock in idle:
            assert sock.recv(4) != b""
        wait_until(lambda: open_files(node) > files + count - 10)
        with Others(node.bootstrap) as others:
            time.sleep(2)
        others.check()
        assert rss_mb(node) - before < 40
    finally:
        for sock in idle:
            sock.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    wait_until(lambda: open_files(node) <= files + 10)


def test_large_frames_reserve_memory_only_as_they_arrive(node):
    before = rss_mb(node)
    peers = [Connection(node.bootstrap) for _ in range(50)]
    for peer in peers:
        peer.socket.sendall(struct.pack(">ih", 100 * MB, PRODUCE) + bytes(10_000))
    with Others(node.bootstrap) as others:
        time.sleep(1)
    others.check()
    assert rss_mb(node) - before < 60
    for peer in peers:
        peer.close()


def bomb(kind: str) -> bytes:
    """A batch of about a megabyte that unpacks to far more, or is answered with far more."""
    if kind == "a million refused records":
        count = 1_100_000
        payload = bytes(cramjam.zstd.compress(b"".join(record(i, None) for i in range(count)), 12))
        return batch(payload=payload, count=count, attributes=4, timestamp=0x7FFFFFFFFFFF)
    size = 1000 * MB
    if kind == "one large record":
        body_size = 1 + 3 + 1 + len(varint(size)) + size + 1 - 2
        head = varint(body_size) + b"\0" + varint(0) + varint(0) + varint(-1) + varint(size)
        zeros, count = [head, bytes(size), b"\0"], 1
    else:
        one = record(0, bytes(1000))
        zeros, count = [one * 1_000_000], 1_000_000
    packer = gzip.compress(b"".join(zeros), compresslevel=1)
    return batch(payload=packer, count=count, attributes=1)


@pytest.mark.parametrize("kind", ["one large record", "a million records", "a million refused records"])
def test_a_decompression_bomb_hurts_nobody_else(node, kind):
    create_topic(node.bootstrap, "bombed", 1, {"max.message.bytes": str(20 * MB)})
    sent = bomb(kind)
    before = peak = rss_mb(node)
    done = threading.Event()
    answers: list[bytes] = []

    def throw() -> None:
        with contextlib.suppress(OSError), Connection(node.bootstrap, 100) as offender:
            offender.socket.sendall(request_bytes(PRODUCE, 9, produce_values("bombed", sent)))
            answers.append(offender.receive_frame())
        done.set()

    thrower = threading.Thread(target=throw)
    with Others(node.bootstrap) as others:
        thrower.start()
        while not done.wait(0.02):
            peak = max(peak, rss_mb(node))
        wait_until(lambda: len(others.times) > 20)
    thrower.join()
    others.check()
    assert peak - before < 150
    assert all(len(answer) < 64 * 1024 for answer in answers)
    with Connection(node.bootstrap) as connection:
        assert produce(connection, "bombed", batch([b"after"])).error_code == 0
        assert fetch(connection, "t")[0] == 0


def test_a_peer_that_vanishes_mid_frame_leaves_nothing_behind(node):
    files = open_files(node)
    for size in (1, 3, 4, 10, 1000):
        with Connection(node.bootstrap) as peer:
            peer.socket.sendall(request_bytes(PRODUCE, 9, produce_values("t", batch([b"x" * 5000])))[:size])
            peer.socket.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )  # RST, not FIN
    wait_until(lambda: open_files(node) <= files)
    with Connection(node.bootstrap) as connection:
        assert produce(connection, "t", batch()).base_offset == 0
