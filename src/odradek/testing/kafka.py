"""What the `kafka` fixture hands to a test: names of its own, what is in topics, faults, the clock."""

import time
import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import pytest

from odradek.client.admin import LATEST
from odradek.client.fetching import READ_COMMITTED
from odradek.client.partition_reader import ConsumerRecord
from odradek.client.sender import Delivery
from odradek.core.types import TopicPartition
from odradek.testing.exactly_once import findings
from odradek.testing.faults import Faults, TestClock
from odradek.testing.settings import as_texts
from odradek.testing.tracebacks import blames_the_caller

if TYPE_CHECKING:
    from odradek.testing.cluster import Cluster
    from odradek.testing.server import KafkaServer

POLL_MS = 50
SHOWN_VALUES = 20

Data: TypeAlias = bytes | str | None
"""A key or a value; text is UTF-8."""


class Kafka:
    """One test's view of a broker."""

    def __init__(self, server: "KafkaServer", *, is_shared: bool = False) -> None:
        self.server = server
        self._is_shared = is_shared
        self._suffix = uuid.uuid4().hex[:4]
        self._before = server.cluster.contents() if server.cluster is not None else None
        self._log_mark = server.cluster.log_mark() if server.cluster is not None else 0
        self._topics: list[str] = []
        self._groups: list[str] = []

    def __repr__(self) -> str:
        made = "".join(f", {name}" for name in (*self._topics, *self._groups))
        return f"<Kafka at {self.bootstrap_servers}{made}>"

    @property
    def bootstrap_servers(self) -> str:
        return self.server.bootstrap_servers

    @blames_the_caller
    def topic(
        self,
        name: str = "topic",
        partitions: int = 1,
        config: Mapping[str, str | bool | int | float] | None = None,
        *,
        replicas: int | None = None,
    ) -> str:
        """Create a topic of this test's own; its name, such as `orders-3f2a`. Without `replicas`, partitions
        have as many as default.replication.factor says."""
        full = f"{name}-{self._suffix}"
        client = self.server.client
        client.call(
            client.admin.create_topics,
            {full: partitions},
            replication_factor=-1 if replicas is None else replicas,
            configs=as_texts(config),
        )
        self._topics.append(full)
        return full

    def group(self, name: str = "group") -> str:
        """A group name of this test's own."""
        full = f"{name}-{self._suffix}"
        self._groups.append(full)
        return full

    @blames_the_caller
    def produce(
        self,
        topic: str,
        value: Data,
        *,
        key: Data = None,
        headers: Mapping[str, Data] | Iterable[tuple[str, Data]] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Delivery:
        """Write one record; when this returns, it is acknowledged. Says where it is."""
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        with self.server.client.producer() as producer:
            return producer.deliver(
                topic,
                _bytes(value),
                key=_bytes(key),
                headers=[(name, _bytes(data)) for name, data in pairs],
                partition=partition,
                timestamp_ms=timestamp_ms,
            )

    @blames_the_caller
    def records(self, topic: str, n: int | None = None, timeout: float = 5) -> list[ConsumerRecord]:
        """Records in a topic, read committed, ordered by time: `n` of them, or all there are now.

        Waits for `n`; fewer within the timeout, or more than `n`, fail the test.
        """
        records = self._read(topic, n, timeout)
        if n is not None and len(records) != n:
            values = [record.value for record in records[:SHOWN_VALUES]]
            more = ", ..." if len(records) > SHOWN_VALUES else ""
            wanted = f"{n} record{'' if n == 1 else 's'} within {timeout:g} s"
            raise AssertionError(f"{topic}: expected {wanted}, found {len(records)}: {values!r}{more}")
        return records

    @blames_the_caller
    def values(self, topic: str, n: int | None = None, timeout: float = 5) -> list[bytes | None]:
        """The values of `records`."""
        return [record.value for record in self.records(topic, n, timeout)]

    @blames_the_caller
    def assert_exactly_once(self, source: str, sink: str, group: str, timeout: float = 5) -> None:
        """Every record of `source` was read by `group` and is in `sink` once; waits while it may become so.

        Aborted records are no records, and what an open transaction holds is not decided: it is waited for.
        Records with keys are told apart by them; without keys only the numbers of records are compared.
        """
        deadline = time.monotonic() + timeout
        while True:
            read = self._read(source)
            unread = self._unread(read, group)
            held = self._held([*self.server.partitions(source), *self.server.partitions(sink)])
            wrong = findings(read, self._read(sink), unread, (source, sink, group), held)
            if not wrong:
                return
            if time.monotonic() > deadline:
                raise AssertionError("not exactly once: " + "; ".join(wrong))
            time.sleep(POLL_MS / 1000)

    @property
    def faults(self) -> Faults:
        return Faults(self._own_cluster("faults"))

    @property
    def clock(self) -> TestClock:
        __tracebackhide__ = True
        cluster = self._own_cluster("the clock")
        if self._is_shared:
            pytest.fail(
                "this test uses kafka_server, whose broker and clock other tests share; "
                "a test that takes only kafka can move its own clock"
            )
        return TestClock(cluster)

    def made(self) -> tuple[Iterable[str], Iterable[str]]:
        """The topics and groups of this test that there are now: on our own broker, all that came since."""
        cluster = self.server.cluster
        if cluster is not None and self._before is not None:
            new = cluster.contents().since(self._before)
            return new.topics.values(), new.groups
        return set(self._topics) & {*self.server.topics()}, set(self._groups) & {*self.server.groups()}

    def log(self) -> list[str]:
        """What the broker has logged since the test began, as far as it is ours and is kept."""
        cluster = self.server.cluster
        return cluster.log_tail(self._log_mark) if cluster is not None else []

    def close(self) -> None:
        """Take back the faults and delete what the test made."""
        cluster = self.server.cluster
        if cluster is None or self._before is None:
            self.server.delete(self._topics, self._groups)
            return
        cluster.revive()
        cluster.delete(cluster.contents().since(self._before))

    def _own_cluster(self, what: str) -> "Cluster":
        if self.server.cluster is None:
            pytest.skip(f"{what} is not available on the broker given by --kafka-bootstrap")
        return self.server.cluster

    def _ends(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        client = self.server.client
        found = client.call(
            client.admin.list_offsets, dict.fromkeys(partitions, LATEST), isolation_level=READ_COMMITTED
        )
        return {tp: row.offset for tp, row in found.items()}

    def _read(self, topic: str, n: int | None = None, timeout: float = 5) -> list[ConsumerRecord]:
        """All committed records up to the end; with `n`, wait until there are that many."""
        partitions = self.server.partitions(topic)
        deadline = time.monotonic() + timeout
        records: list[ConsumerRecord] = []
        with self.server.client.consumer(
            isolation_level=READ_COMMITTED, auto_offset_reset="earliest", max_wait_ms=POLL_MS
        ) as consumer:
            consumer.assign(partitions)
            while time.monotonic() < deadline:
                records += consumer.poll(POLL_MS)
                if n is not None and len(records) < n:
                    continue
                ends = self._ends(partitions)
                if all((consumer.position(tp) or 0) >= end for tp, end in ends.items()):
                    break
        return sorted(records, key=lambda r: (r.timestamp_ms, r.partition, r.offset))

    def _held(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """The partitions with a transaction open, and the last stable offset that it holds."""
        client = self.server.client
        ends = client.call(client.admin.list_offsets, dict.fromkeys(partitions, LATEST))
        stable = self._ends(partitions)
        return {tp: stable[tp] for tp in partitions if stable[tp] < ends[tp].offset}

    def _unread(self, records: list[ConsumerRecord], group: str) -> int:
        """How many of these records the group has not committed; markers between them do not count."""
        client = self.server.client
        partitions = sorted({TopicPartition(r.topic, r.partition) for r in records})
        committed = client.call(client.admin.committed, group, partitions) if partitions else {}
        done = {tp: row.committed_offset for tp, row in committed.items()}
        return sum(r.offset >= done.get(TopicPartition(r.topic, r.partition), 0) for r in records)


def _bytes(data: Data) -> bytes | None:
    return data.encode() if isinstance(data, str) else data
