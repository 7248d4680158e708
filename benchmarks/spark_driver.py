"""One Spark session that has both connectors: each load by each in turn, rows/s and CPU per record.

Prints a line of JSON for each number: {"side": "official", "key": "spark.read", "value": 1e6}.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from cluster import cpu_s, own_cpu_s
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from spark_protocol import protocol_ms
from spark_sides import Side, official, orders, ours, passed_through, through_json

from odradek.spark.java import prepare, use_packaged_java

PARTITIONS = 4
SKIPPED_BATCHES = 10


class Bench:
    """The session, the broker and the topics."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.spark = _session(args)
        self.admin = AdminClient({"bootstrap.servers": args.bootstrap})
        self.ours, self.official = ours(args.bootstrap), official(args.bootstrap)
        self.jvm_pid = int(self.spark.sparkContext._jvm.ProcessHandle.current().pid())  # type: ignore[union-attr]
        self.is_warm = False
        self._made = 0

    def say(self, side: str, key: str, value: float) -> None:
        if self.is_warm:
            print(json.dumps({"side": side, "key": key, "value": value}), flush=True)

    def topic(self, name: str | None = None) -> str:
        """A new topic."""
        self._made += 1
        name = name or f"out-{self._made}"
        for future in self.admin.create_topics([NewTopic(name, PARTITIONS, 1)]).values():
            future.result(30)
        return name

    def fill(self, topic: str) -> None:
        """In batches of the size that producers make unless told otherwise."""
        rows = orders(self.spark, self.args.rows, PARTITIONS)
        replace(self.official, writing={}).write(rows, self.topic(topic))

    @contextmanager
    def sink(self) -> Iterator[str]:
        """A topic to write to, gone afterwards: the disk is not what is measured."""
        name = self.topic()
        try:
            yield name
        finally:
            for future in self.admin.delete_topics([name]).values():
                future.result(30)

    def timed(self, side: str, key: str, rows: int, work: Callable[[], object]) -> None:
        """Do it; say rows per second, and the CPU of Spark, its Python workers and the broker per row."""
        before, began = self._cpu_s(), time.perf_counter()
        work()
        took = time.perf_counter() - began
        self.say(side, key, rows / took)
        spent = {part: (now - before[part]) / rows * 1e6 for part, now in self._cpu_s().items()}
        self.say(side, f"{key}.cpu", sum(spent.values()))
        for part, microseconds in spent.items():
            self.say(side, f"{key}.cpu.{part}", microseconds)

    def _cpu_s(self) -> dict[str, float]:
        jvm = own_cpu_s(self.jvm_pid)
        return {
            "jvm": jvm,
            "python": cpu_s(os.getpid()) - jvm,
            "broker": cpu_s(self.args.broker_pid),
        }

    def sides(self) -> tuple[tuple[str, Side], ...]:
        """Ours before and after the official one: the machine drifts."""
        if self.args.alone:
            return (("odradek", self.ours),)
        return ("odradek", self.ours), ("official", self.official), ("odradek again", self.ours)


def _session(args: argparse.Namespace) -> SparkSession:
    prepare()
    assert use_packaged_java()
    builder = SparkSession.builder.master("local[2]").appName("bench")
    settings = {
        "spark.jars": args.jars,
        "spark.driver.memory": "4g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.local.dir": f"{args.folder}/local",
        "spark.sql.warehouse.dir": f"{args.folder}/warehouse",
        "spark.log.level": "ERROR",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _drain(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def batch_read(bench: Bench) -> None:
    rows = bench.args.rows
    for name, side in bench.sides():
        frame = side.read(bench.spark, "orders")
        bench.timed(name, "spark.read", rows, partial(_drain, frame))
        bench.timed(name, "spark.count", rows, frame.count)


def batch_write(bench: Bench) -> None:
    rows = bench.args.rows
    made = orders(bench.spark, rows, PARTITIONS)
    for name, side in bench.sides():
        with bench.sink() as topic:
            bench.timed(name, "spark.write", rows, partial(side.write, made, topic))


def _pipeline(bench: Bench, key: str, change: Callable[[DataFrame], DataFrame]) -> None:
    rows = bench.args.rows
    for name, side in bench.sides():
        with bench.sink() as topic:
            bench.timed(name, key, rows, partial(_copy, bench, side, topic, change))


def _copy(bench: Bench, side: Side, topic: str, change: Callable[[DataFrame], DataFrame]) -> None:
    """All there is, in micro-batches of a quarter."""
    quarter = str(bench.args.rows // 4)
    stream = side.stream(bench.spark, "orders", "earliest", maxOffsetsPerTrigger=quarter)
    checkpoint = f"{bench.args.folder}/checkpoints/{topic}"
    side.start(change(stream), topic, checkpoint, availableNow=True).awaitTermination()


def pass_through(bench: Bench) -> None:
    _pipeline(bench, "spark.pass", passed_through)


def json_pipeline(bench: Bench) -> None:
    _pipeline(bench, "spark.json", through_json)


def micro_batches(bench: Bench) -> None:
    """Durations of micro-batches while records come in at a steady rate."""
    live = bench.topic(f"live-{time.monotonic_ns()}")
    feeder = subprocess.Popen(
        [sys.executable, pathlib.Path(__file__).with_name("spark_feeder.py"), bench.args.bootstrap, live]
    )
    try:
        for name, side in bench.sides():
            with bench.sink() as topic:
                took = _batches(bench, side, live, topic)
            ranks = statistics.quantiles(took, n=100)
            bench.say(name, "spark.micro.p50", ranks[49])
            bench.say(name, "spark.micro.p99", ranks[98])
    finally:
        feeder.kill()
        feeder.wait()


def _batches(bench: Bench, side: Side, live: str, topic: str) -> list[int]:
    stream = passed_through(side.stream(bench.spark, live, "latest"))
    query = side.start(stream, topic, f"{bench.args.folder}/checkpoints/{topic}")
    try:
        seen: dict[int, int] = {}
        until = None
        while until is None or time.monotonic() < until:
            time.sleep(0.2)
            if query.exception():
                raise RuntimeError(str(query.exception()))
            for progress in query.recentProgress:
                if progress["numInputRows"]:
                    seen[progress["batchId"]] = progress["durationMs"]["triggerExecution"]
            if until is None and len(seen) > SKIPPED_BATCHES:
                until = time.monotonic() + bench.args.seconds
        return [took for _, took in sorted(seen.items())][SKIPPED_BATCHES:]
    finally:
        query.stop()


def segments(bench: Bench) -> None:
    """The log directory without a broker, beside the official connector's way: through the broker."""
    rows = bench.args.rows
    load = bench.spark.read.format("odradek.segments").option("topics", "orders").load
    for name, side in bench.sides():
        frame = side.read(bench.spark, "orders") if side is bench.official else load(bench.args.log_dir)
        bench.timed(name, "spark.segments", rows, partial(_drain, frame))


def protocol(bench: Bench) -> None:
    """What the official connector does not do at all."""
    for name in ("odradek", "odradek again"):
        with bench.sink() as topic:
            for key, value in protocol_ms(bench.args.bootstrap, "orders", topic):
                bench.say(name, f"spark.protocol.{key}", value)


LOADS = (protocol, batch_read, batch_write, pass_through, json_pipeline, micro_batches, segments)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--broker-pid", type=int, required=True)
    parser.add_argument("--log-dir", required=True)
    parser.add_argument("--jars", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--alone", action="store_true", help="without the official connector")
    bench = Bench(parser.parse_args())
    bench.fill("orders")
    for load in LOADS:
        for turn in range(bench.args.rounds + 1):
            bench.is_warm = turn > 0
            load(bench)
    bench.spark.stop()


if __name__ == "__main__":
    main()
