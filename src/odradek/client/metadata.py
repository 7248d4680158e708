"""What a client knows of the cluster: brokers, topics, leaders. Filled from Metadata responses; no I/O."""

from collections.abc import Iterable
from typing import Any, NamedTuple
from uuid import UUID

from odradek.core.errors import ErrorCode
from odradek.core.types import NO_LEADER, ZERO_UUID, TopicPartition


class Broker(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None = None


class PartitionMetadata(NamedTuple):
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...] = ()


class TopicMetadata(NamedTuple):
    name: str
    id: UUID
    is_internal: bool
    partitions: dict[int, PartitionMetadata]


class ClusterMetadata:
    """A cache: `update` keeps what the response does not mention, unless the response is of all topics."""

    __slots__ = ("brokers", "cluster_id", "controller_id", "errors", "names", "topics")

    def __init__(self) -> None:
        self.cluster_id: str | None = None
        self.controller_id = -1
        self.brokers: dict[int, Broker] = {}
        self.topics: dict[str, TopicMetadata] = {}
        self.names: dict[UUID, str] = {}
        self.errors: dict[str, ErrorCode] = {}

    def update(self, response: Any, all_topics: bool) -> None:
        self.cluster_id = response.cluster_id
        self.controller_id = response.controller_id
        self.brokers = {b.node_id: Broker(b.node_id, b.host, b.port, b.rack) for b in response.brokers}
        if all_topics:
            self.topics.clear()
            self.names.clear()
            self.errors.clear()
        for topic in response.topics:
            self._update_topic(topic)

    def _update_topic(self, topic: Any) -> None:
        known = self.topics.get(topic.name)
        if topic.error_code and topic.error_code != ErrorCode.LEADER_NOT_AVAILABLE:
            self.errors[topic.name] = ErrorCode(topic.error_code)
            self.topics.pop(topic.name, None)
            if known is not None:
                self.names.pop(known.id, None)
            return
        self.errors.pop(topic.name, None)
        partitions = {
            p.partition_index: PartitionMetadata(
                p.leader_id,
                p.leader_epoch,
                tuple(p.replica_nodes),
                tuple(p.isr_nodes),
                tuple(p.offline_replicas),
            )
            for p in sorted(topic.partitions, key=lambda p: int(p.partition_index))
        }
        if known is not None:
            self.names.pop(known.id, None)
            if known.id == topic.topic_id:
                partitions = {i: _newer(known.partitions.get(i), p) for i, p in partitions.items()}
        self.topics[topic.name] = TopicMetadata(topic.name, topic.topic_id, topic.is_internal, partitions)
        if topic.topic_id != ZERO_UUID:
            self.names[topic.topic_id] = topic.name

    def leader(self, tp: TopicPartition) -> int:
        """The leader's id, NO_LEADER when there is none or the partition is not known."""
        topic = self.topics.get(tp.topic)
        partition = topic.partitions.get(tp.partition) if topic is not None else None
        return partition.leader if partition is not None and partition.leader in self.brokers else NO_LEADER

    def leader_epoch(self, tp: TopicPartition) -> int:
        topic = self.topics.get(tp.topic)
        partition = topic.partitions.get(tp.partition) if topic is not None else None
        return -1 if partition is None else partition.leader_epoch

    def topic_id(self, name: str) -> UUID:
        topic = self.topics.get(name)
        return ZERO_UUID if topic is None else topic.id

    def by_leader(self, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        """Partitions grouped by their leaders, those without one under NO_LEADER."""
        grouped: dict[int, list[TopicPartition]] = {}
        for tp in partitions:
            grouped.setdefault(self.leader(tp), []).append(tp)
        return grouped


def _newer(known: PartitionMetadata | None, found: PartitionMetadata) -> PartitionMetadata:
    """A broker that lags behind may tell of an older leader than the one already known."""
    return known if known is not None and known.leader_epoch > found.leader_epoch >= 0 else found
