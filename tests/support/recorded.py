"""Real clients whose every send and read is recorded, while something happens to the cluster.

    with load(servers, topic) as clients:
        ...                                    # kill nodes
        judge(clients, folders)                # all is read to its end; no anomaly, replicas are equal

Producers are idempotent, with acks=all. Consumers are members of a group. sim/checkers/anomalies.py judges.
"""

import threading
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import confluent_kafka as librdkafka
from confluent_kafka import Consumer, KafkaError, Message, Producer

from odradek.core.types import TopicPartition
from odradek.sim.checkers.anomalies import anomalies
from odradek.sim.checkers.operations import Operations, Polled, Run
from tests.support.quorum_tables import until
from tests.support.replicas import differing

QUIET = {"log_level": 0}
IMPATIENT = {"socket.timeout.ms": "1000", "request.timeout.ms": "1000", "message.timeout.ms": "120000"}
"""For faults that close no connection: a client that waits for an answer asks another broker after a second.
By default it does so after a minute."""
IMPATIENT_S = 1.0
PATIENCE_S = 60.0


class Worker(threading.Thread):
    """A client in a thread. What it raises is raised again by `finish`."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name)
        self.is_over = threading.Event()
        self.raised: BaseException | None = None

    def run(self) -> None:
        try:
            self.work()
        except BaseException as e:
            self.raised = e

    def work(self) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        self.is_over.set()
        self.join()
        if self.raised is not None:
            raise self.raised


class RecordedProducer(Worker):
    """Sends to each partition in turn, at a steady pace. Every record has an id."""

    def __init__(
        self,
        operations: Operations,
        name: str,
        servers: str,
        tps: Sequence[TopicPartition],
        pause_s: float,
        settings: Mapping[str, str],
    ) -> None:
        super().__init__(name)
        self.errors: list[str] = []
        self.acknowledged_at: defaultdict[TopicPartition, list[float]] = defaultdict(list)
        self._operations = operations
        self._tps, self._pause_s = tps, pause_s
        self._producer = Producer(
            {"bootstrap.servers": servers, "enable.idempotence": True, **QUIET, **settings}
        )

    def work(self) -> None:
        for number in count():
            if self.is_over.wait(self._pause_s):
                break
            self._send(self._tps[number % len(self._tps)], b"%s-%d" % (self.name.encode(), number))
            self._producer.poll(0)
        left = self._producer.flush(PATIENCE_S)
        assert left == 0, f"{self.name}: {left} records are neither acknowledged nor refused"

    def _send(self, tp: TopicPartition, value: bytes) -> None:
        sent = self._operations.send(self.name, tp, value)

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.errors.append(f"{value!r}: {error}")
                return
            offset = message.offset()
            sent.acknowledged(offset if offset is not None and offset >= 0 else None)
            self.acknowledged_at[tp].append(time.monotonic())

        self._producer.produce(tp.topic, value, partition=tp.partition, on_delivery=delivered)


class RecordedConsumer(Worker):
    """A member of a group, which commits as it reads."""

    def __init__(self, operations: Operations, name: str, servers: str, group: str, topic: str) -> None:
        super().__init__(name)
        self.errors: list[str] = []
        self.count = 0
        self._operations = operations
        self._runs: dict[TopicPartition, Run] = {}
        self._config = {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 500,
            **QUIET,
        }
        self._topic = topic

    def work(self) -> None:
        consumer = Consumer(self._config)
        consumer.subscribe([self._topic], on_assign=self._assigned, on_revoke=self._gone, on_lost=self._gone)
        while not self.is_over.is_set():
            message = consumer.poll(0.1)
            if message is not None:
                self._take(message)
        consumer.close()

    def _assigned(self, consumer: Any, partitions: list[Any]) -> None:
        for tp in (TopicPartition(p.topic, p.partition) for p in partitions):
            self._runs[tp] = self._operations.assign(self.name, tp)

    def _gone(self, consumer: Any, partitions: list[Any]) -> None:
        for p in partitions:
            self._runs.pop(TopicPartition(p.topic, p.partition), None)

    def _take(self, message: Message) -> None:
        if message.error() is not None:
            self.errors.append(str(message.error()))
            return
        self.count += 1
        self._runs[tp_of(message)].polled.append(polled_of(message))


class Clients:
    """Producers and consumers of one topic, and what they did."""

    def __init__(self, servers: str, tps: Sequence[TopicPartition], settings: Mapping[str, str]) -> None:
        self.operations = Operations()
        self.servers, self.settings = servers, settings
        self.tps = list(tps)
        self.producers: list[RecordedProducer] = []
        self.consumers: list[RecordedConsumer] = []
        self._numbers = count()

    def produce(self, pause_s: float = 0.005) -> RecordedProducer:
        name = f"p{next(self._numbers)}"
        settings = self.settings
        producer = RecordedProducer(self.operations, name, self.servers, self.tps, pause_s, settings)
        self.producers.append(producer)
        producer.start()
        return producer

    def consume(self, group: str = "g") -> RecordedConsumer:
        name = f"c{next(self._numbers)}"
        consumer = RecordedConsumer(self.operations, name, self.servers, group, self.tps[0].topic)
        self.consumers.append(consumer)
        consumer.start()
        return consumer

    def finish(self) -> None:
        for client in (*self.producers, *self.consumers):
            client.is_over.set()
        for client in (*self.producers, *self.consumers):
            client.finish()

    def acknowledged(self) -> int:
        return sum(len(at) for producer in self.producers for at in list(producer.acknowledged_at.values()))

    def await_acknowledgements(self, more: int = 1) -> None:
        """In every partition, by every producer."""
        began = [
            (producer.acknowledged_at[tp], len(producer.acknowledged_at[tp]))
            for producer in self.producers
            for tp in self.tps
        ]
        until(
            lambda: all(len(at) >= before + more for at, before in began),
            PATIENCE_S,
            lambda: f"not acknowledged any more: {[e for p in self.producers for e in p.errors[:3]]}",
        )

    def longest_gap_s(self, since: float, to: float | None = None) -> float:
        """The longest time without an acknowledgement for some producer in some partition. It may have begun
        before, and the first one after `to` ends the last."""
        longest = 0.0
        for producer in self.producers:
            for at in producer.acknowledged_at.values():
                first = max(0, bisect_left(at, since) - 1)
                last = len(at) if to is None else bisect_left(at, to) + 1
                longest = max([longest, *(b - a for a, b in pairwise(at[first:last]))])
        return longest

    def read_all(self) -> None:
        """One more consumer, from the first offset of each partition to its end."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "unused",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                **QUIET,
            }
        )
        consumer.assign([librdkafka.TopicPartition(tp.topic, tp.partition, 0) for tp in self.tps])
        runs = {tp: self.operations.assign("last", tp) for tp in self.tps}
        left = set(self.tps)
        deadline = time.monotonic() + PATIENCE_S
        while left:
            assert time.monotonic() < deadline, f"cannot be read to their ends: {left}"
            message = consumer.poll(1)
            if message is None:
                continue
            error = message.error()
            if error is None:
                runs[tp_of(message)].polled.append(polled_of(message))
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(tp_of(message))
        consumer.close()


def tp_of(message: Message) -> TopicPartition:
    topic, partition = message.topic(), message.partition()
    assert topic is not None and partition is not None
    return TopicPartition(topic, partition)


def polled_of(message: Message) -> Polled:
    offset, value = message.offset(), message.value()
    assert offset is not None and value is not None
    return Polled(offset, value)


@contextmanager
def load(
    servers: str,
    topic: str,
    partitions: int,
    *,
    producers: int = 2,
    consumers: int = 2,
    pause_s: float = 0.005,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Clients]:
    """Clients that run; every partition has been acknowledged once. They end in any case.

    `settings` are those of the producers.
    """
    clients = Clients(servers, [TopicPartition(topic, p) for p in range(partitions)], settings or {})
    try:
        for _ in range(producers):
            clients.produce(pause_s)
        for _ in range(consumers):
            clients.consume()
        clients.await_acknowledgements()
        yield clients
    finally:
        for client in (*clients.producers, *clients.consumers):
            client.is_over.set()
        for client in (*clients.producers, *clients.consumers):
            client.join()


def judge(clients: Clients, folders: Mapping[int, Sequence[Path]]) -> None:
    """All replicas must be in sync. `folders` are the log directories of each node."""
    clients.finish()
    errors = [error for client in (*clients.producers, *clients.consumers) for error in client.errors]
    assert not errors, errors[:10]
    clients.read_all()
    found = anomalies(clients.operations)
    assert not found, {name: lines[:10] for name, lines in found.items()}
    assert all(producer.acknowledged_at for producer in clients.producers)
    until(lambda: not differing(folders), what=lambda: differing(folders)[:10])
