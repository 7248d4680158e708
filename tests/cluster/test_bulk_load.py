"""Producers at the speed of the disk, into topics whose oldest segments go: the quorum does not notice.

A probe asks the controller listener of every node again and again. If it waits longer than its own thread and
the node's waited for a CPU, the node's loop stood still. `make soak-bulk` loads for ten minutes.
"""

import os
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer

from odradek.client.blocking import BlockingClient
from odradek.wire.api_keys import ApiKey
from tests.cluster.nodes import config_of, processes
from tests.cluster.test_kills import create, quorum_of
from tests.support.raw import Connection

LOADED_S = float(os.environ.get("ODRADEK_SOAK_BULK_S", "4"))
STALL_S = 0.5
TOPICS = ("bulk-0", "bulk-1", "bulk-2")
SETTINGS = {
    "log.retention.bytes": str(64 << 20),
    "log.segment.bytes": str(16 << 20),
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "1000",
}
VALUE = bytes(100_000)

pytestmark = pytest.mark.timeout(2 * LOADED_S + 120)


def waited_for_a_cpu_s(pid: int) -> float:
    """How long the first thread of a process has been ready and not running."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[1]) / 1e9


class Probe(threading.Thread):
    """`worst_s`: the longest that the loop of a node took for a small request."""

    def __init__(self, address: str, pid: int) -> None:
        super().__init__(name=f"probe-{address}")
        self.worst_s, self.count = 0.0, 0
        self._address, self._pid = address, pid
        self._is_over = threading.Event()

    def run(self) -> None:
        own = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
        with Connection(self._address) as connection:
            while not self._is_over.wait(0.02):
                delayed_s = waited_for_a_cpu_s(self._pid) + int(own.read_text().split()[1]) / 1e9
                began = time.monotonic()
                connection.call(ApiKey.API_VERSIONS, 0, {})
                took_s = time.monotonic() - began
                delayed_s = waited_for_a_cpu_s(self._pid) + int(own.read_text().split()[1]) / 1e9 - delayed_s
                self.worst_s = max(self.worst_s, took_s - delayed_s)
                self.count += 1

    def finish(self) -> None:
        self._is_over.set()
        self.join()


class Load(threading.Thread):
    """One producer to one topic, as fast as it can."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(name=f"load-{topic}")
        self.acknowledged = 0
        self.errors: list[str] = []
        self._topic = topic
        self._is_over = threading.Event()
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "batch.size": 900_000, "queue.buffering.max.kbytes": 20_000}
        )

    def run(self) -> None:
        while not self._is_over.is_set():
            try:
                self._producer.produce(self._topic, VALUE, on_delivery=self._delivered)
            except BufferError:
                self._producer.poll(0.05)
        assert self._producer.flush(60) == 0

    def _delivered(self, error: object, message: object) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self.errors.append(str(error))

    def finish(self) -> None:
        self._is_over.set()
        self.join()


def term_of(client: BlockingClient) -> tuple[int, int]:
    """Who leads the quorum, and in which epoch."""
    found = quorum_of(client)
    return found.leader_id, found.leader_epoch


def test_no_election_and_no_stall_while_producers_write_at_the_speed_of_the_disk(tmp_path: Path) -> None:
    with ExitStack() as stack:
        cluster = stack.enter_context(processes(tmp_path, 3, SETTINGS))
        client = stack.enter_context(BlockingClient(cluster.plan.bootstrap_servers))
        for topic in TOPICS:
            create(client, topic)
        before = term_of(client)
        probes = []
        for node in cluster.plan.nodes:
            (listener,) = config_of(node.properties).controller_listeners
            probes.append(Probe(f"{listener.host}:{listener.port}", cluster.nodes[node.node_id].process.pid))
        loads = [Load(cluster.plan.bootstrap_servers, topic) for topic in TOPICS]
        for thread in (*probes, *loads):
            thread.start()
            stack.callback(thread.finish)
        time.sleep(LOADED_S)
        for thread in (*loads, *probes):
            thread.finish()
        assert term_of(client) == before
    mb = sum(load.acknowledged for load in loads) * len(VALUE) / 1e6
    print(f"{mb / LOADED_S:.0f} MB/s, longest stalls in s: {[round(probe.worst_s, 3) for probe in probes]}")
    assert not any(load.errors for load in loads), [load.errors[:1] for load in loads]
    assert mb > 10 * LOADED_S, "this is no load"
    assert all(probe.count > 5 * LOADED_S for probe in probes)
    assert max(probe.worst_s for probe in probes) < STALL_S
