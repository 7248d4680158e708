"""flush.messages over the wire: an answer means durable, with any acks, and other clients do not wait for the
disk."""

import threading

import pytest

from odradek.runtime.real import RealDisk, RealRuntime
from odradek.testing.broker import Broker
from tests.support.batches import batch
from tests.support.produce import PRODUCE, produce, produce_values
from tests.support.raw import Connection
from tests.support.stored import fetch, split
from tests.support.topics import create_topic

API_VERSIONS = 18


class HeldDisk(RealDisk):
    """Holds the syncs of a topic's data while `gate` is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.held = threading.Semaphore(0)
        self._paths: dict[int, str] = {}
        self.syncs = 0

    def open(self, path, flags, mode=0o644):
        fd = RealDisk.open(path, flags, mode)
        self._paths[fd] = path
        return fd

    def fdatasync(self, fd):
        if "/flushed-" in self._paths[fd] and self._paths[fd].endswith(".log"):
            self.syncs += 1
            if not self.gate.is_set():
                self.held.release()
            assert self.gate.wait(30)


class HeldBroker(Broker):
    def make_runtime(self):
        runtime = RealRuntime()
        self.disk = runtime.disk = HeldDisk()
        return runtime


@pytest.fixture
def broker():
    with HeldBroker() as running:
        create_topic(running.bootstrap_servers, "flushed", configs={"flush.messages": "1"})
        create_topic(running.bootstrap_servers, "plain")
        yield running
        running.disk.gate.set()


@pytest.mark.parametrize("acks", [1, -1])
def test_an_answer_waits_for_the_sync_and_nobody_else_does(broker, acks):
    with Connection(broker.bootstrap_servers) as waiting, Connection(broker.bootstrap_servers) as other:
        assert produce(waiting, "flushed", batch([b"0"]), acks=acks).base_offset == 0
        broker.disk.gate.clear()
        for value in (b"1", b"2", b"3"):
            waiting.send(PRODUCE, 9, produce_values("flushed", batch([value]), acks=acks))
        assert broker.disk.held.acquire(timeout=20), "the sync has begun"
        assert other.call(API_VERSIONS, 0, {}).error_code == 0
        assert produce(other, "plain", batch([b"x"])).error_code == 0
        assert len(split(fetch(other, "flushed")[1])) == 1, "what is not durable is not shown"
        broker.disk.gate.set()
        answers = [waiting.receive(PRODUCE, 9).responses[0].partition_responses[0] for _ in range(3)]
        assert [(a.error_code, a.base_offset) for a in answers] == [(0, 1), (0, 2), (0, 3)]
        assert len(split(fetch(other, "flushed")[1])) == 4


def test_many_producers_share_a_sync(broker):
    connections = [Connection(broker.bootstrap_servers) for _ in range(20)]
    try:
        assert produce(connections[0], "flushed", batch([b"0"])).error_code == 0
        broker.disk.gate.clear()
        for connection in connections:
            connection.send(PRODUCE, 9, produce_values("flushed", batch([b"v"])))
        assert broker.disk.held.acquire(timeout=20)
        broker.look(lambda node: None)
        before = broker.disk.syncs
        broker.disk.gate.set()
        for connection in connections:
            assert connection.receive(PRODUCE, 9).responses[0].partition_responses[0].error_code == 0
        assert broker.disk.syncs - before <= 3, "twenty producers waited for a sync or two"
    finally:
        for connection in connections:
            connection.close()


def test_a_repeat_is_not_answered_before_its_first_append_is_durable(broker):
    """An idempotent producer that lost its connection sends again: there is not yet safely there."""
    numbered = batch([b"v"], producer_id=3, producer_epoch=0, base_sequence=0)
    with Connection(broker.bootstrap_servers) as first, Connection(broker.bootstrap_servers) as second:
        broker.disk.gate.clear()
        first.send(PRODUCE, 9, produce_values("flushed", numbered))
        assert broker.disk.held.acquire(timeout=20)
        second.send(PRODUCE, 9, produce_values("flushed", numbered))
        broker.look(lambda node: None)
        second.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            second.receive(PRODUCE, 9)
        broker.disk.gate.set()
        assert first.receive(PRODUCE, 9).responses[0].partition_responses[0].base_offset == 0
