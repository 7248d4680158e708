"""Partitions on real logs, in any role, and a replica manager that has them."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.metrics import Metrics, TopicMetrics
from odradek.core.types import TopicPartition
from odradek.log.log import Isolation
from odradek.log.manager import LogManager
from odradek.metadata.delta import MetadataDelta
from odradek.metadata.image import EMPTY_IMAGE, PartitionRegistration, TopicImage
from odradek.replication.fetch_sessions import PartitionFetch
from odradek.replication.manager import ReplicaManager
from odradek.replication.partition import Partition
from odradek.replication.waiters import FetchWatch
from odradek.runtime.slices import at_once
from tests.unit.log.support import LogRuntime, config, open_log

ME = 1
TOPIC = TopicImage("t", uuid.UUID(int=7), {})


def led(*isr: int, replicas: tuple[int, ...] = (), epoch: int = 0, at: int = 0) -> PartitionRegistration:
    """A partition that this node leads; `at`: its partition epoch."""
    isr = isr or (ME,)
    return PartitionRegistration(replicas or isr, isr, leader=ME, leader_epoch=epoch, partition_epoch=at)


def followed(leader: int = 2, *, epoch: int = 1, at: int = 1) -> PartitionRegistration:
    return PartitionRegistration((ME, 2), (ME, 2), leader=leader, leader_epoch=epoch, partition_epoch=at)


def opened(path: Path, registration: PartitionRegistration | None = None, **changes: Any) -> Partition:
    """A partition with its topic's configuration changed; without a registration it has no role yet.

    Where flush.messages is set, the test flushes.
    """
    path.mkdir(exist_ok=True)
    partition = Partition(open_log(LogRuntime(), path, changes=changes), ME, TopicMetrics())
    partition.log.settling.on_flush_due = lambda tp: None
    if registration is not None:
        partition.apply(registration)
    return partition


def managed(path: Path, epochs: dict[int, int] | None = None, **changes: Any) -> ReplicaManager:
    """A manager without partitions; `epochs`: the broker epochs of those alive."""
    logs = LogManager(LogRuntime(), [str(path / "data")])
    logs.open()
    logs.load(lambda topic: config())
    return ReplicaManager(ME, logs, Metrics(), lambda topic: config(**changes), (epochs or {}).get)


def delta_of(*topics: TopicImage, deleted: tuple[TopicImage, ...] = ()) -> MetadataDelta:
    delta = MetadataDelta(EMPTY_IMAGE, EMPTY_IMAGE)
    delta.changed_partitions = [(t, index, p) for t in topics for index, p in t.partitions.items()]
    delta.deleted_topics = list(deleted)
    return delta


def with_partition(
    replicas: ReplicaManager, registration: PartitionRegistration, index: int = 0
) -> Partition:
    at_once(replicas.apply_delta(delta_of(TOPIC._replace(partitions={index: registration}))))
    return replicas.partition(TopicPartition(TOPIC.name, index))


@contextmanager
def refused(code: ErrorCode) -> Iterator[None]:
    with pytest.raises(KafkaError) as raised:
        yield
    assert raised.value.code is code


class Poked(FetchWatch):
    """A fetch that waits for a partition, and how often it was to look again. A change ends its watch."""

    def __init__(
        self, then: Callable[[], None] = lambda: None, isolation: Isolation = Isolation.HIGH_WATERMARK
    ) -> None:
        super().__init__(isolation)
        self.fetch = self
        self.partition = PartitionFetch(0, 1)
        self.times = 0
        self._then = then

    def poke(self) -> None:
        self.times += 1
        self._then()

    look = end_wait = poke
