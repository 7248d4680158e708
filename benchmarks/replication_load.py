"""Replicated partitions on three nodes: throughput, latency, failover, catching up.

Each partition has three replicas and takes acks=all with two of them in sync. Node 1 leads what is measured.
"""

import asyncio
import json
import os
import pathlib
import signal
import time
from collections.abc import Iterator
from typing import Any

from asking import (
    active_controller,
    create_at,
    longest_answer_ms,
    until_brokers,
    until_in_sync,
    until_led,
    until_led_by_others,
)
from cluster import cpu_s, run
from loads import Plan
from three_nodes import KINDS, Nodes, new_folder, rss_mb

REPLICAS = 3
LEADER, FOLLOWERS = 1, (2, 3)
NODES = (LEADER, *FOLLOWERS)
MB = 1_000_000
Sample = tuple[str, float]


def replication(
    broker: str, kgen: pathlib.Path, work: pathlib.Path, port: int, plan: Plan, runs: int
) -> Iterator[Sample]:
    """Row keys and values."""
    with new_folder(work, broker) as folder:
        nodes = KINDS[broker](folder, port)
        try:
            load = _Load(nodes, kgen, plan)
            load.start()
            yield from load.throughput(runs)
            yield from load.latency(runs)
            yield from load.catch_up()
        finally:
            nodes.stop()
    for turn in range(runs):
        with new_folder(work, broker) as folder:
            nodes = KINDS[broker](folder, port)
            try:
                load = _Load(nodes, kgen, plan)
                load.start()
                yield from load.failovers()
                if turn == 0:
                    yield from load.many()
            finally:
                nodes.stop()


class _Load:
    def __init__(self, nodes: Nodes, kgen: pathlib.Path, plan: Plan) -> None:
        self._nodes = nodes
        self._kgen = kgen
        self._plan = plan
        self._topics = 0

    def start(self) -> None:
        self._nodes.start()
        asyncio.run(until_brokers(self._nodes.ports[0], REPLICAS))

    def throughput(self, runs: int) -> Iterator[Sample]:
        for label, batch in (("16K", 16384), ("1M", MB)):
            self._run("produce", self._topic(), batch=batch, secs=int(self._plan.warm_s), mb=100_000)
            for _ in range(runs):
                topic = self._topic()
                before = {node_id: cpu_s(self._nodes.pid(node_id)) for node_id in NODES}
                done = self._run("produce", topic, batch=batch, mb=self._plan.replicated_mb)
                gigabytes = done["bytes"] / 1e9
                taken = {i: (cpu_s(self._nodes.pid(i)) - before[i]) / gigabytes for i in NODES}
                yield f"replication.{label}.rate", done["MBs"]
                yield f"replication.{label}.cpu", sum(taken.values())
                yield f"replication.{label}.cpu.leader", taken[LEADER]
                yield f"replication.{label}.cpu.follower", sum(taken[i] for i in FOLLOWERS) / len(FOLLOWERS)
                self._run("delete", topic)

    def latency(self, runs: int) -> Iterator[Sample]:
        topic = self._topic()
        end = time.monotonic() + self._plan.warm_s
        while time.monotonic() < end:
            self._run("lat", topic, count=1000)
        for _ in range(runs):
            done = self._run("lat", topic, count=self._plan.latency_count)
            yield "replication.p50", done["p50"]
            yield "replication.p99", done["p99"]

    def catch_up(self) -> Iterator[Sample]:
        """A follower comes back to what it missed. The time begins when it is a broker again."""
        topic, port = self._topic(), self._nodes.ports[0]
        _until_gone(self._end(FOLLOWERS[-1], signal.SIGTERM))
        self._run("produce", topic, batch=MB, mb=self._plan.replicated_mb)
        self._nodes.restart(FOLLOWERS[-1])
        asyncio.run(until_brokers(port, REPLICAS))
        began = time.monotonic()
        asyncio.run(until_in_sync(port, topic, REPLICAS))
        yield "replication.catch_up", self._plan.replicated_mb / (time.monotonic() - began)

    def failovers(self) -> Iterator[Sample]:
        controller = asyncio.run(active_controller(self._nodes.ports[0]))
        other = next(node_id for node_id in NODES if node_id != controller)
        yield "replication.kill", self._gap_ms(other, signal.SIGKILL)
        self._nodes.restart(other)
        asyncio.run(until_brokers(self._nodes.ports[controller - 1], REPLICAS))
        yield "replication.shutdown", self._gap_ms(other, signal.SIGTERM)
        self._nodes.restart(other)
        asyncio.run(until_brokers(self._nodes.ports[controller - 1], REPLICAS))
        yield "replication.kill_both", self._gap_ms(controller, signal.SIGKILL)
        self._nodes.restart(controller)
        asyncio.run(until_brokers(self._nodes.ports[other - 1], REPLICAS))

    def many(self) -> Iterator[Sample]:
        """Many partitions: created, left alone, and their leader killed."""
        ports, count, topic = self._nodes.ports, self._plan.partitions, "many"
        began = time.monotonic()
        asyncio.run(create_at(ports, topic, NODES, count))
        asyncio.run(until_led(ports, topic, count))
        yield "replication.many.led", (time.monotonic() - began) * 1000
        asyncio.run(until_in_sync(ports[0], topic, REPLICAS))
        pids = [self._nodes.pid(node_id) for node_id in NODES]
        time.sleep(self._plan.idle_s / 2)
        before = sum(map(cpu_s, pids))
        time.sleep(self._plan.idle_s)
        yield "replication.many.idle", (sum(map(cpu_s, pids)) - before) / self._plan.idle_s / REPLICAS * 100
        yield "replication.many.rss", sum(map(rss_mb, pids)) / REPLICAS
        _until_gone(self._end(LEADER, signal.SIGKILL))
        began = time.monotonic()
        stall = asyncio.run(
            longest_answer_ms(ports[1], lambda: until_led_by_others(ports[1:], topic, LEADER, count))
        )
        yield "replication.many.failover", (time.monotonic() - began) * 1000
        yield "replication.many.stall", stall

    def _gap_ms(self, leader: int, how: signal.Signals) -> float:
        """From the end of a leader to the next record that is acknowledged."""
        topic = self._topic(leader)
        self._run("first", topic, secs=30)
        pid = self._end(leader, how)
        began = time.clock_gettime(time.CLOCK_BOOTTIME)
        acked: float = self._run("first", topic, secs=120)["boottime"]
        _until_gone(pid)
        return (acked - began) * 1000

    def _topic(self, leader: int = LEADER) -> str:
        self._topics += 1
        name = f"replicated-{self._topics}"
        replicas = (leader, *(node_id for node_id in NODES if node_id != leader))
        asyncio.run(create_at(self._nodes.ports, name, replicas))
        asyncio.run(until_in_sync(self._nodes.ports[leader - 1], name, REPLICAS))
        return name

    def _run(self, command: str, topic: str, **options: object) -> dict[str, Any]:
        ports = ",".join(map(str, self._nodes.ports))
        pairs = [f"{key}={value}" for key, value in options.items()]
        answer: dict[str, Any] = json.loads(
            run(self._kgen, command, f"ports={ports}", f"topic={topic}", *pairs)
        )
        return answer

    def _end(self, node_id: int, how: signal.Signals) -> int:
        """Signal a node. Returns its process."""
        pid = self._nodes.pid(node_id)
        os.kill(pid, how)
        return pid


def _lives(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def _until_gone(pid: int) -> None:
    while _lives(pid):
        time.sleep(0.01)
