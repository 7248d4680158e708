"""`make soak-held`: the cost of clients that request much and then read or send nothing.

Slow readers request records and never read the answer. Parked fetches wait for records that do not come. Each
row reports memory, descriptors and CPU time of the broker, and how long a producer's requests took at the
same time; for an Odradek node and, with --apache, for Apache Kafka. Every row has its own broker.
"""

import argparse
import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from odradek.wire.api_keys import ApiKey
from tests.hostile.names import RECORDS
from tests.hostile.others import Others
from tests.hostile.sides import Process, apache, odradek
from tests.hostile.world import World
from tests.support import peer
from tests.support.batches import batch
from tests.support.produce import produce_values
from tests.support.raw import request_bytes
from tests.support.stored import fetch_values

RECEIVE_BYTES = 4096  # so that what is asked for is held by the broker, not by the network
LOOK_S = 3.0
FULL_MB = 128
AN_HOUR_MS = 3_600_000
_TICKS = os.sysconf("SC_CLK_TCK")


class Taken(NamedTuple):
    """What a broker's process takes."""

    rss_mb: float
    descriptors: int
    cpu_s: float


class Held(NamedTuple):
    """Before and after clients asked; the memory of one client; what a producer saw."""

    before: Taken
    after: Taken
    clients: int
    idle_cpu: float
    p50_ms: float
    max_ms: float
    left: int

    def __str__(self) -> str:
        grown_kb = (self.after.rss_mb - self.before.rss_mb) * 1024 / self.clients
        return (
            f"{self.before.rss_mb:>6.0f} {self.after.rss_mb:>6.0f} {grown_kb:>9.1f} "
            f"{self.after.descriptors:>7} {self.after.cpu_s - self.before.cpu_s:>6.1f} {self.idle_cpu:>6.0%} "
            f"{self.p50_ms:>7.1f} {self.max_ms:>7.0f} {self.left:>6}"
        )


HEAD = (
    f"{'MB':>6} {'then':>6} {'KB each':>9} {'files':>7} {'CPU s':>6} {'idle':>6} {'p50 ms':>7} {'max ms':>7} "
    f"{'left':>6}"
)


def taken(process: Process) -> Taken:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    descriptors = len(os.listdir(f"/proc/{process.pid}/fd"))
    return Taken(process.rss_mb(), descriptors, (int(fields[11]) + int(fields[12])) / _TICKS)


def hold(world: World, connections: int, asked: Callable[[int], bytes], each: int = 1) -> Held:
    """Let so many connections ask and then do nothing."""
    process: Process = world.place
    produce = request_bytes(ApiKey.PRODUCE, 9, produce_values(world.topics[0], RECORDS))
    before = taken(process)
    host, port = process.bootstrap.rsplit(":", 1)
    clients: list[socket.socket] = []
    try:
        with Others(process, [produce]) as others:
            for i in range(connections):
                sock = socket.socket()
                clients.append(sock)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
                sock.connect((host, int(port)))
                sock.sendall(asked(i) * each)
            quiet_s = _until_quiet(process)
            begun_s, then = time.monotonic(), taken(process)
            time.sleep(LOOK_S)
            after = taken(process)
            idle = (after.cpu_s - then.cpu_s) / (time.monotonic() - begun_s)
        waits = sorted(others.waits_s)
        left = sum(_is_open(sock) for sock in clients)
        assert quiet_s >= 0
        return Held(
            before, after, connections * each, idle, waits[len(waits) // 2] * 1e3, waits[-1] * 1e3, left
        )
    finally:
        for sock in clients:
            sock.close()


def _until_quiet(process: Process, most_s: float = 120) -> float:
    """Until the broker's memory has stopped growing."""
    began, last, same = time.monotonic(), 0.0, 0
    while same < 4 and time.monotonic() - began < most_s:
        time.sleep(0.5)
        now = taken(process).rss_mb
        same = same + 1 if abs(now - last) < 1 else 0
        last = now
    return time.monotonic() - began


def _is_open(sock: socket.socket) -> bool:
    sock.setblocking(False)
    try:
        while data := sock.recv(1 << 16):
            pass
    except BlockingIOError:
        return True
    except OSError:
        return False
    return bool(data)


def fill(world: World, topic: str, partitions: Iterable[int], size: int, times: int = 1) -> None:
    process: Process = world.place
    records = batch([bytes(size)])
    with process.client() as client:
        for partition in partitions:
            frame = request_bytes(ApiKey.PRODUCE, 9, produce_values(topic, records, partition=partition))
            for _ in range(times):
                assert process.ask(client, frame) is not None


def wide_topic(world: World, partitions: int) -> str:
    process: Process = world.place
    topic = world.fresh("held")
    with process.client() as client:
        world.create_topics(client, [topic], partitions)
    return topic


def slow_readers(world: World, connections: int) -> Held:
    """Each asks for 50 MB of one partition."""
    topic = wide_topic(world, 1)
    fill(world, topic, [0], 1_000_000, FULL_MB)
    asked = request_bytes(ApiKey.FETCH, 12, fetch_values([(topic, 0, 0)]))
    return hold(world, connections, lambda _: asked)


def slow_readers_of_many(world: World, connections: int, partitions: int) -> Held:
    """Each asks for 16 KB of every partition."""
    topic = wide_topic(world, partitions)
    fill(world, topic, range(partitions), 16_000)
    asked = request_bytes(ApiKey.FETCH, 12, fetch_values([(topic, i, 0) for i in range(partitions)]))
    return hold(world, connections, lambda _: asked)


def parked(world: World, connections: int, partitions: int, each: int) -> Held:
    """Each waits on every partition."""
    topic = wide_topic(world, partitions)
    wanted = [(topic, i, 0) for i in range(partitions)]
    asked = request_bytes(ApiKey.FETCH, 12, fetch_values(wanted, max_wait_ms=AN_HOUR_MS, min_bytes=1 << 30))
    return hold(world, connections, lambda _: asked, each)


ROWS: dict[str, Callable[[World], Held]] = {
    "200 slow readers of 50 MB": lambda world: slow_readers(world, 200),
    "1,000 slow readers of 50 MB": lambda world: slow_readers(world, 1_000),
    "100 slow readers of 1,000 partitions": lambda world: slow_readers_of_many(world, 100, 1_000),
    "10,000 parked fetches of 1 partition": lambda world: parked(world, 100, 1, 100),
    "100 parked fetches of 1,000 partitions": lambda world: parked(world, 100, 1_000, 1),
    "1,000 parked fetches of 1,000 partitions": lambda world: parked(world, 1_000, 1_000, 1),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="make soak-held", description=__doc__)
    parser.add_argument("--rows", nargs="*", default=list(ROWS), choices=list(ROWS), metavar="ROW")
    parser.add_argument("--apache", action="store_true", help="run Apache Kafka too")
    args = parser.parse_args()
    missing = peer.missing() if args.apache else "--apache was not given"
    chosen: list[tuple[str, Callable[[float], AbstractContextManager[World]]]] = [("Odradek", odradek)]
    if missing:
        print(f"Without Apache Kafka: {missing}.")
    else:
        chosen.append(("Apache Kafka", apache))
    print(f"{'':<42} {'':<13} {HEAD}")
    for name in args.rows:
        for side, start in chosen:
            with start(120) as world:
                print(f"{name:<42} {side:<13} {ROWS[name](world)}", flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
