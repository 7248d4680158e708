"""Partitions on real logs, in any role, and a replica manager that has them."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.metrics import Metrics, TopicMetrics
from odradek.core.types import TopicPartition
from odradek.log.log import Isolation, Log
from odradek.log.manager import LogManager
from odradek.metadata.delta import MetadataDelta
from odradek.metadata.image import EMPTY_IMAGE, BrokerRegistration, PartitionRegistration, TopicImage
from odradek.replication.context import LeaderContext
from odradek.replication.fetch_sessions import PartitionFetch
from odradek.replication.manager import ReplicaManager
from odradek.replication.partition import Partition
from odradek.replication.waiters import FetchWatch
from odradek.runtime.slices import at_once
from tests.unit.log.support import TP, LogRuntime, StillClock, config

if TYPE_CHECKING:
    from odradek.wire.requests.alter_partition import AlterPartitionRequest
    from odradek.wire.responses.alter_partition import AlterPartitionResponse

ME = 1
TOPIC = TopicImage("t", uuid.UUID(int=7), {})


MAX_LAG_MS = 30_000


class Surroundings:
    """What leaders see beside their partitions: a clock that the test moves, and the brokers that it
    registers."""

    def __init__(self, epochs: dict[int, int] | None = None) -> None:
        self.clock = StillClock()
        self.metrics = Metrics()
        self.image = EMPTY_IMAGE
        self.context = LeaderContext(self.clock, lambda: self.image, MAX_LAG_MS, self.metrics.isr)
        for broker_id, epoch in (epochs or {}).items():
            self.register(broker_id, epoch)

    def register(self, broker_id: int, epoch: int, **changes: bool) -> None:
        broker = BrokerRegistration(
            broker_id, epoch, uuid.UUID(int=epoch), {}, None, False, False, (), None, {}
        )
        brokers = {**self.image.brokers, broker_id: broker._replace(**changes)}
        self.image = self.image._replace(brokers=brokers)

    def proposed(self) -> "AlterPartitionRequest | None":
        """The request that the leaders' proposals make; the test answers it, or lets it fail."""
        return at_once(self.context.proposals.next_request(ME, broker_epoch=10))

    def answer(self, response: "AlterPartitionResponse") -> bool:
        return at_once(self.context.proposals.settle(response))


def led(*isr: int, replicas: tuple[int, ...] = (), epoch: int = 0, at: int = 0) -> PartitionRegistration:
    """A partition that this node leads; `at`: its partition epoch."""
    isr = isr or (ME,)
    return PartitionRegistration(replicas or isr, isr, leader=ME, leader_epoch=epoch, partition_epoch=at)


def followed(leader: int = 2, *, epoch: int = 1, at: int = 1) -> PartitionRegistration:
    return PartitionRegistration((ME, 2), (ME, 2), leader=leader, leader_epoch=epoch, partition_epoch=at)


def opened(
    path: Path,
    registration: PartitionRegistration | None = None,
    around: Surroundings | None = None,
    **changes: Any,
) -> Partition:
    """A partition with its topic's configuration changed; without a registration it has no role yet.

    Where flush.messages is set, the test flushes.
    """
    path.mkdir(exist_ok=True)
    log = Log.open(LogRuntime(), str(path / str(TP)), TP, TOPIC.id, config(**changes))
    partition = Partition(log, ME, TopicMetrics(), (around or Surroundings()).context)
    partition.log.settling.on_flush_due = lambda tp: None
    if registration is not None:
        partition.apply(registration)
    return partition


def managed(
    path: Path, epochs: dict[int, int] | None = None, around: Surroundings | None = None, **changes: Any
) -> ReplicaManager:
    """A manager without partitions; `epochs`: the broker epochs of those alive."""
    logs = LogManager(LogRuntime(), [str(path / "data")])
    logs.open()
    logs.load(lambda topic: config())
    around = around or Surroundings(epochs)
    return ReplicaManager(ME, logs, around.metrics, lambda topic: config(**changes), around.context)


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
