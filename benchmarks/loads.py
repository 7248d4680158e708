"""The loads, the same for every broker: each yields (row key, value), and is warmed up first."""

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cluster import HERE, PEER, Cluster, run

Sample = tuple[str, float]
NewCluster = Callable[..., Cluster]
Load = Callable[[NewCluster, "Plan", int], Iterator[Sample]]


@dataclass(frozen=True)
class Plan:
    """How long and how much: the full plan for results, the quick one while developing."""

    warm_s: float = 10
    produce_mb: int = 1000  # below where the kernel throttles dirty pages
    fetch_mb: int = 2000
    latency_count: int = 20_000
    tiny_mb: int = 10
    idle_s: float = 10
    e2e_s: float = 20
    librdkafka_records: int = 3_000_000
    java_records: int = 5_000_000
    txn_s: float = 5
    compact_mb: int = 500
    flush_s: float = 8
    recover_mb: int = 5000
    partitions: int = 1000
    many_partitions: int = 10_000
    random_reads: int = 10_000
    quorum_creates: int = 200
    replicated_mb: int = 500
    spark_rows: int = 5_000_000
    spark_s: float = 20


QUICK = Plan(
    warm_s=2,
    produce_mb=300,
    fetch_mb=600,
    latency_count=5000,
    tiny_mb=2,
    idle_s=2,
    e2e_s=4,
    librdkafka_records=500_000,
    java_records=500_000,
    txn_s=2,
    compact_mb=100,
    flush_s=2,
    recover_mb=1000,
    partitions=200,
    many_partitions=500,
    random_reads=2000,
    quorum_creates=20,
    replicated_mb=100,
    spark_rows=500_000,
    spark_s=5,
)


def _warm(plan: Plan, work: Callable[[], object]) -> None:
    end = time.monotonic() + plan.warm_s
    while time.monotonic() < end:
        work()


def _take_pages(cluster: Cluster, mb: int) -> None:
    """Have the host back the page cache that a run will fill: a page it lends out anew costs more CPU than
    all that a broker does with it, and whether one is at hand is a matter of luck."""
    os.sync()
    path = cluster.directory.parent / "pages"
    with path.open("wb", buffering=0) as file:
        for _ in range(mb):
            file.write(bytes(1_000_000))
    path.unlink()


def produce(new: NewCluster, plan: Plan, runs: int) -> Iterator[Sample]:
    with new() as cluster:
        for label, batch in (("16K", 16384), ("1M", 1_000_000)):
            warm = f"warm-{label}"
            cluster.kgen("create", warm)
            cluster.kgen("produce", warm, batch=batch, secs=int(plan.warm_s), mb=100_000, rate=150)
            cluster.kgen("delete", warm)
            for i in range(runs):
                topic = f"p-{label}-{i}"
                cluster.kgen("create", topic)
                _take_pages(cluster, plan.produce_mb)
                done = cluster.loaded("produce", topic, batch=batch, mb=plan.produce_mb)
                yield f"produce.{label}.rate", done["MBs"]
                yield f"produce.{label}.cpu", done["cpu_per_gb"]
                cluster.kgen("delete", topic)


def latency(new: NewCluster, plan: Plan, runs: int) -> Iterator[Sample]:
    with new() as cluster:
        cluster.kgen("create", "lat")
        _warm(plan, lambda: cluster.kgen("lat", "lat", count=2000))
        for _ in range(runs):
            done = cluster.kgen("lat", "lat", count=plan.latency_count)
            yield "latency.p50", done["p50"]
            yield "latency.p99", done["p99"]
        cluster.kgen("produce", "lat", batch=1, inflight=5, secs=int(plan.warm_s), mb=1000)
        for _ in range(runs):
            yield "latency.tiny", cluster.kgen("produce", "lat", batch=1, inflight=5, mb=plan.tiny_mb)["reqs"]


def fetch(new: NewCluster, plan: Plan, runs: int) -> Iterator[Sample]:
    with new() as cluster:
        cluster.kgen("create", "f")
        cluster.kgen("produce", "f", batch=16384, mb=plan.fetch_mb + 50)
        os.sync()
        for label, size in (("1M", 1 << 20), ("8M", 8 << 20)):

            def one(size: int = size) -> dict[str, float]:
                return cluster.loaded("fetch", "f", max=size, mb=plan.fetch_mb)

            _warm(plan, one)
            for _ in range(runs):
                done = one()
                yield f"fetch.{label}.rate", done["MBs"]
                yield f"fetch.{label}.cpu", done["cpu_per_gb"]


def start(new: NewCluster, plan: Plan, runs: int) -> Iterator[Sample]:
    for _ in range(runs):
        cluster = new()
        yield "start.empty", cluster.until_ack_ms(*cluster.start_args, create=1)
        time.sleep(plan.idle_s)
        yield "start.rss", cluster.rss_mb()
        cluster.act("stop", "--dir", cluster.directory)
        yield "start.again", cluster.until_ack_ms("restart", "1", "--dir", cluster.directory)
        cluster.__exit__()


def partitions(new: NewCluster, plan: Plan, runs: int) -> Iterator[Sample]:
    for _ in range(runs):
        with new() as cluster:
            cluster.kgen("create", "many", parts=1000)
            cluster.kgen("fill", "many", parts=1000)
            yield "partitions.rss", cluster.rss_mb()


def e2e(new: NewCluster, plan: Plan, runs: int) -> Iterator[Sample]:
    with new() as cluster:
        for i in range(runs):
            topic = f"e-{i}"
            cluster.kgen("create", topic)
            done = cluster.kgen("e2e", topic, rate=1000, skip=int(plan.warm_s), secs=int(plan.e2e_s))
            yield "e2e.p50", done["p50"]
            yield "e2e.p99", done["p99"]


def clients(new: NewCluster, plan: Plan, runs: int) -> Iterator[Sample]:
    """Real clients; the first run of each warms the broker up and is not counted."""
    with new() as cluster:
        for client, records, call in (
            ("librdkafka", plan.librdkafka_records, _librdkafka),
            ("java", plan.java_records, _java),
        ):
            for i in range(runs + 1):
                topic = f"{client}-{i}"
                cluster.kgen("create", topic)
                _take_pages(cluster, records * 100 // 1_000_000)
                before = cluster.cpu_s()
                rate = call(cluster, topic, records)
                cpu = cluster.cpu_s() - before
                if i:
                    yield f"clients.{client}", rate
                    yield f"clients.{client}.cpu", cpu / (records * 100 / 1e9)
                cluster.kgen("delete", topic)


def _librdkafka(cluster: Cluster, topic: str, records: int) -> float:
    out = run(sys.executable, HERE / "client.py", "produce", cluster.bootstrap, topic, records)
    return float(json.loads(out)["recs"])


def _java(cluster: Cluster, topic: str, records: int) -> float:
    out = run(
        *(PEER, "tool", "producer-perf-test", "--bootstrap-server", cluster.bootstrap, "--topic", topic),
        *("--num-records", records, "--record-size", 100, "--throughput", -1),
        *("--command-property", "acks=all"),
    )
    return float(re.findall(r"([\d.]+) records/sec \(", out)[-1])


def txn(new: NewCluster, plan: Plan, runs: int) -> Iterator[Sample]:
    """Commits one after the other: by a raw client that waits for nothing else, and by librdkafka."""
    with new() as cluster:
        for records in (1, 100, 1000):
            topic = f"x-{records}"
            cluster.kgen("create", topic)
            cluster.kgen("txn", topic, records=records, secs=max(1, int(plan.warm_s / 2)))
            for _ in range(runs):
                done = cluster.kgen("txn", topic, records=records, secs=int(plan.txn_s))
                yield f"txn.raw.{records}", done["tps"]
                if records == 1:
                    yield "txn.raw.p50", done["p50"]
                    yield "txn.raw.p99", done["p99"]
            out = run(
                *(sys.executable, HERE / "client.py", "txn", cluster.bootstrap, topic, records),
                *(plan.warm_s / 2, plan.txn_s, runs),
            )
            for line in out.splitlines():
                done = json.loads(line)
                yield f"txn.librdkafka.{records}", done["tps"]
                if records == 1:
                    yield "txn.librdkafka.p50", done["p50"]
                    yield "txn.librdkafka.p99", done["p99"]


def flush(new: NewCluster, plan: Plan, runs: int) -> Iterator[Sample]:
    """Acknowledgements of one record each that are all durable; the first run is not counted."""
    cluster = new()
    cluster.start_args += ["--set", "log.flush.interval.messages=1"]
    with cluster:
        cluster.kgen("create", "flushed")
        for i in range(runs + 1):
            for producers in (1, 5, 50):
                done = cluster.kgen("acks", "flushed", conns=producers, secs=int(plan.flush_s))
                if i:
                    yield f"flush.{producers}", done["acks"]


def restart(new: NewCluster, plan: Plan, runs: int) -> Iterator[Sample]:
    for _ in range(runs):
        with new() as cluster:
            _create_first(cluster)
            cluster.kgen("create", "big")
            cluster.kgen("produce", "big", batch=16384, mb=plan.recover_mb, rate=150)
            cluster.act("kill", "1", "--dir", cluster.directory)
            yield "restart.killed", cluster.until_ack_ms("restart", "1", "--dir", cluster.directory)
    for _ in range(runs):
        with new() as cluster:
            _create_first(cluster)
            cluster.kgen("create", "many", parts=plan.partitions)
            cluster.kgen("fill", "many", parts=plan.partitions)
            for label, end in (("clean", "stop"), ("killed", "kill")):
                node = ("1",) if end == "kill" else ()
                cluster.act(end, *node, "--dir", cluster.directory)
                took_ms = cluster.until_ack_ms("restart", "1", "--dir", cluster.directory)
                yield f"restart.1000.{label}", took_ms


def _create_first(cluster: Cluster) -> None:
    """The topic whose first acknowledgement ends a restart."""
    cluster.kgen("create", "first")
    cluster.kgen("fill", "first")


def many(new: NewCluster, plan: Plan, runs: int) -> Iterator[Sample]:
    with new() as cluster:
        per_topic = 1000
        for start in range(0, plan.many_partitions, per_topic):
            parts = min(per_topic, plan.many_partitions - start)
            cluster.kgen("create", f"many-{start}", parts=parts)
            cluster.kgen("fill", f"many-{start}", parts=parts)
        yield "many.rss", cluster.rss_mb()


def random(new: NewCluster, plan: Plan, runs: int) -> Iterator[Sample]:
    """Fetches of one batch at offsets all over a hundred segments, whose indexes must be found first."""
    cluster = new()
    cluster.start_args += ["--set", f"log.segment.bytes={4 << 20}"]
    with cluster:
        cluster.kgen("create", "r")
        done = cluster.kgen("produce", "r", batch=16384, mb=400)
        end = done["n"] * round(done["recs"] / done["reqs"])  # the rates are rounded
        for i in range(runs + 1):
            found = cluster.kgen("random", "r", end=end, count=plan.random_reads)
            if i:
                yield "random.p50", found["p50"]
                yield "random.p99", found["p99"]


def groups(new: NewCluster, plan: Plan, runs: int) -> Iterator[Sample]:
    """The first run of each warms the broker up and is not counted."""
    with new() as cluster:
        cluster.kgen("create", "group-load", parts=1000)
        cluster.kgen("create", "group-load-100", parts=100)
        port = cluster.bootstrap.rpartition(":")[2]

        def measured(*args: object) -> dict[str, float]:
            return json.loads(run(sys.executable, HERE / "group_load.py", args[0], port, *args[1:]))

        for i in range(runs + 1):
            found = {
                "groups.classic": measured("rebalance", "classic")["ms"],
                "groups.consumer": measured("rebalance", "consumer")["ms"],
                "groups.commits": measured("commits", plan.txn_s)["rate"],
                "groups.fetch": measured("fetch", 1000, 200)["us"],
            }
            if i:
                yield from found.items()


def compaction(new: NewCluster, plan: Plan, runs: int) -> Iterator[Sample]:
    """A log of 100-byte records with ten records to a key, cleaned at once; then while somebody produces.

    The time is from the moment that it may be cleaned until the cleaner's checkpoint says that it is. The
    first run warms the broker up and is not counted.
    """
    with new("log.cleaner.backoff.ms=10", "log.cleaner.threads=1") as cluster:
        cluster.kgen("create", "lat")
        _warm(plan, lambda: cluster.kgen("lat", "lat", count=2000))
        for i in range(runs + 1):
            _take_pages(cluster, 2 * plan.compact_mb)
            alone_s, size, _ = _compact(cluster, f"c-alone-{i}", plan.compact_mb, beside=False)
            _, _, times_us = _compact(cluster, f"c-beside-{i}", plan.compact_mb, beside=True)
            if i:
                yield "compaction.rate", size / 1e6 / alone_s
                if times_us:
                    yield "compaction.p99", sorted(times_us)[len(times_us) // 2]


def _compact(cluster: Cluster, topic: str, mb: int, *, beside: bool) -> tuple[float, int, list[float]]:
    """(seconds of the cleaning, bytes that it had to clean, the p99 of each run of produces meanwhile)."""
    run(sys.executable, HERE / "client.py", "keyed", cluster.bootstrap, topic, mb)
    os.sync()
    (directory,) = cluster.directory.rglob(f"{topic}-0")
    size = sum(path.stat().st_size for path in sorted(directory.glob("*.log"))[:-1])
    run(sys.executable, HERE / "client.py", "compact", cluster.bootstrap, topic)
    began = time.monotonic()
    checkpoint = directory.parent / "cleaner-offset-checkpoint"
    times_us: list[float] = []
    while not (checkpoint.exists() and f"{topic} 0 " in checkpoint.read_text()):
        if time.monotonic() > began + 200:
            raise RuntimeError(f"{topic} is not cleaned")
        if beside:
            times_us.append(cluster.kgen("lat", "lat", count=500)["p99"])
        else:
            time.sleep(0.002)
    elapsed = time.monotonic() - began
    cluster.kgen("delete", topic)
    return elapsed, size, times_us


LOADS: dict[str, Load] = {
    "produce": produce,
    "latency": latency,
    "fetch": fetch,
    "start": start,
    "partitions": partitions,
    "e2e": e2e,
    "clients": clients,
    "txn": txn,
    "flush": flush,
    "restart": restart,
    "many": many,
    "random": random,
    "groups": groups,
    "compaction": compaction,
}
