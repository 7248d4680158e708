"""Compressed batches that hold far more than they are, on many connections at once: memory stays bounded."""

import gzip
import pathlib
import threading

from tests.support.batches import batch
from tests.support.node import running
from tests.support.produce import produce
from tests.support.raw import Connection
from tests.support.topics import create_topic

CONNECTIONS = 12
MESSAGE_TOO_LARGE = 10
ALLOWED_KB = 300 << 10
"""Two checks at a time, each of 64 MiB and what a growing buffer takes for a moment."""


def peak_kb(pid: int) -> int:
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def test_bombs_on_many_connections_take_the_memory_of_two(tmp_path: pathlib.Path) -> None:
    sent = batch(payload=gzip.compress(bytes(1 << 28), mtime=0), attributes=1)
    codes = []

    def throw(bootstrap: str) -> None:
        with Connection(bootstrap, 100) as connection:
            codes.append(produce(connection, "t", sent).error_code)

    with running(tmp_path / "data") as node:
        create_topic(node.bootstrap, "t")
        before = peak_kb(node.pid)
        throwers = [threading.Thread(target=throw, args=(node.bootstrap,)) for _ in range(CONNECTIONS)]
        for thrower in throwers:
            thrower.start()
        for thrower in throwers:
            thrower.join()
        assert codes == [MESSAGE_TOO_LARGE] * CONNECTIONS
        assert peak_kb(node.pid) - before < ALLOWED_KB
        with Connection(node.bootstrap) as connection:
            assert produce(connection, "t", batch([b"after"])).error_code == 0
