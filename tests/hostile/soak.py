"""`make soak-hostile`: sends the requests of rows.py at full length to real processes, over sockets.

For each one it reports how long the short requests of a second connection waited, and the memory of the
broker, for an Odradek node and for Apache Kafka. Every row has its own node.
"""

import argparse
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import NamedTuple

from odradek.wire.api_keys import ApiKey
from tests.hostile.expressions import long_names, subscribe
from tests.hostile.names import RECORDS
from tests.hostile.others import PAUSE_S, Others
from tests.hostile.rows import ROWS, Row
from tests.hostile.sides import Process, answer, apache, odradek
from tests.hostile.world import World
from tests.support import peer
from tests.support.produce import produce_values
from tests.support.raw import request_bytes
from tests.support.stored import fetch_values

PARKED_CONNECTIONS, PARKED_EACH, PRODUCES = 100, 50, 50
LONG_NAMES, REPEATS = 20, 1_000


class Outcome(NamedTuple):
    """What a second connection saw while a row was worked off."""

    p50_ms: float
    max_ms: float
    took_s: float
    rss_mb: float
    ended: str

    def __str__(self) -> str:
        return (
            f"{self.p50_ms:>8.1f} {self.max_ms:>9.0f} {self.took_s:>7.1f} {self.rss_mb:>7.0f} {self.ended:<9}"
        )


HEAD = f"{'p50 ms':>8} {'max ms':>9} {'took s':>7} {'MB':>7} {'':<9}"


def observed(world: World, work: Callable[[], str]) -> Outcome:
    """Do something hostile while others ask."""
    asks = [
        request_bytes(ApiKey.API_VERSIONS, 0, {}),
        request_bytes(ApiKey.METADATA, 8, {"topics": [{"name": world.topics[0]}]}),
    ]
    process: Process = world.place
    stop, peak = threading.Event(), [0.0]

    def watch() -> None:
        while not stop.wait(0.02):
            peak[0] = max(peak[0], process.rss_mb())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    began = time.monotonic()
    try:
        with Others(process, asks) as others:
            ended = work()
            time.sleep(2 * PAUSE_S)
    finally:
        stop.set()
        watcher.join()
    waits = sorted(others.waits_s)
    return Outcome(
        waits[len(waits) // 2] * 1e3,
        waits[-1] * 1e3,
        time.monotonic() - began,
        peak[0],
        "gave up" if others.failed else ended,
    )


def run_row(world: World, row: Row) -> Outcome:
    process: Process = world.place
    with process.client() as client:
        sent = row.case.frame_of(world, client, row.whole_bytes)

        def work() -> str:
            try:
                return "answered" if process.ask(client, sent) is not None else "closed"
            except TimeoutError:
                return "timed out"
            except OSError:
                return "closed"

        return observed(world, work)


def run_expression(world: World) -> Outcome:
    process: Process = world.place
    with process.client() as client:
        world.create_topics(client, long_names(LONG_NAMES))
        group = world.fresh("matching")

        def work() -> str:
            try:
                subscribe(world, client, group, REPEATS)
                process.ask(client, request_bytes(ApiKey.API_VERSIONS, 0, {}))
                time.sleep(1)  # it may be resolved after the answer
            except TimeoutError:
                return "timed out"
            except AssertionError:
                return "refused"
            return "answered"

        return observed(world, work)


def run_parked(world: World) -> Outcome:
    """The others are the producers whose records wake all who wait."""
    process: Process = world.place
    with ExitStack() as stack:
        clients = [stack.enter_context(process.client()) for _ in range(PARKED_CONNECTIONS)]
        topic = world.fresh("awaited")
        world.create_topics(clients[0], [topic])
        produce = request_bytes(ApiKey.PRODUCE, 9, produce_values(topic, RECORDS))
        offset = [0]

        def park() -> None:
            values = fetch_values([(topic, 0, offset[0])], max_wait_ms=30_000, min_bytes=1)
            for client in clients:
                client.sendall(request_bytes(ApiKey.FETCH, 12, values) * PARKED_EACH)

        def work() -> str:
            with process.client() as producer:
                for _ in range(PRODUCES):
                    park()
                    time.sleep(0.05)
                    process.ask(producer, produce)
                    offset[0] += 1
                    for client in clients:
                        for _ in range(PARKED_EACH):
                            if answer(client) is None:
                                return "closed"
            return "answered"

        return observed(world, work)


def all_rows() -> dict[str, tuple[int, Callable[[World], Outcome]]]:
    """Their lengths, and what runs them."""

    def runs(row: Row) -> Callable[[World], Outcome]:
        return lambda world: run_row(world, row)

    found: dict[str, tuple[int, Callable[[World], Outcome]]] = {
        row.name: (row.whole_bytes, runs(row)) for row in ROWS
    }
    found["heartbeat-with-an-expression"] = (1_000, run_expression)
    found["parked-fetches"] = (0, run_parked)
    return found


def sides(with_apache: bool) -> Iterator[tuple[str, Callable[[float], AbstractContextManager[World]]]]:
    yield "Odradek", odradek
    if with_apache:
        yield "Apache Kafka", apache


def main() -> None:
    parser = argparse.ArgumentParser(prog="make soak-hostile", description=__doc__)
    parser.add_argument("--rows", nargs="*", default=list(all_rows()), help="only these (default: all)")
    parser.add_argument("--seconds", type=float, default=120, help="give a row up after so long")
    parser.add_argument("--no-apache", action="store_true", help="do not run Apache Kafka")
    args = parser.parse_args()
    rows = all_rows()
    unknown = [name for name in args.rows if name not in rows]
    if unknown:
        parser.error(f"no such row: {', '.join(unknown)}; there are {', '.join(rows)}")
    missing = "--no-apache was given" if args.no_apache else peer.missing()
    if missing:
        print(f"Without Apache Kafka: {missing}.")
    chosen = list(sides(missing is None))
    print("What a second connection waited for short requests while a hostile one was worked off.")
    print(f"{'':<45} {'bytes':>9} " + " | ".join(f"{name:<{len(HEAD)}}" for name, _ in chosen))
    print(f"{'':<45} {'':>9} " + " | ".join(HEAD for _ in chosen))
    for name in args.rows:
        length, run = rows[name]
        print(f"{name:<45} {length:>9,} ", end="", flush=True)
        for i, (_, side) in enumerate(chosen):
            print(" | " if i else "", end="", flush=True)
            try:
                with side(args.seconds) as world:
                    print(run(world), end="", flush=True)
            except (OSError, RuntimeError, AssertionError) as e:
                print(f"{str(e)[: len(HEAD)]:<{len(HEAD)}}", end="", flush=True)
        print(flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
