"""The replicas of partitions: who is in sync, who may lead, how far each one is. Reads only, and works with
Apache's brokers, too. Which partitions have a problem is decided here in the same way as by kafka-topics."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from odradek.cli.errors import kafka_failure
from odradek.cli.requests.cluster_access import LATEST, ClusterAccess, PartitionInfo, TopicInfo
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import TopicPartition
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

QUICK_MS: Final = 3_000
"""How long a broker may take to say how far its replicas are; it may be down."""
_DEBUGGING_REPLICA: Final = -2
"""As whom to list offsets: followers answer, too, and the offset is the log end."""
_TOPIC: Final = 2
_MIN_ISR: Final = "min.insync.replicas"
_CHUNK: Final = 500

Replica = tuple[TopicPartition, int]
"""A partition on a broker."""


class RegisteredBroker(NamedTuple):
    host: str
    port: int
    is_fenced: bool


def registered_brokers(cluster: ClusterAccess) -> dict[int, RegisteredBroker]:
    """Also those that are fenced, where the cluster names them."""
    types = request_types(ApiKey.DESCRIBE_CLUSTER)
    request = types.DescribeClusterRequest(include_fenced_brokers=True)
    response = cluster.send(ApiKey.DESCRIBE_CLUSTER, request)
    if response.error_code:
        raise kafka_failure("cluster", "", KafkaError(ErrorCode(response.error_code), response.error_message))
    return {
        broker.broker_id: RegisteredBroker(broker.host, broker.port, broker.is_fenced)
        for broker in response.brokers
    }


# Partitions with their eligible leaders


def with_eligible_leaders(cluster: ClusterAccess, topics: Sequence[TopicInfo]) -> list[TopicInfo]:
    """The topics as DescribeTopicPartitions shows them. Brokers that do not serve it know of no ELR."""
    with cluster.failing("partitions"):
        try:
            found = _described(cluster, [topic.name for topic in topics])
        except KafkaError as e:
            if e.code is not ErrorCode.UNSUPPORTED_VERSION:
                raise
            return list(topics)
    return [topic._replace(partitions=found.get(topic.name, topic.partitions)) for topic in topics]


def _described(cluster: ClusterAccess, names: Sequence[str]) -> dict[str, list[PartitionInfo]]:
    """Page by page."""
    types = request_types(ApiKey.DESCRIBE_TOPIC_PARTITIONS)
    found: dict[str, list[PartitionInfo]] = {}
    cursor: Any = None
    while names:
        request = types.DescribeTopicPartitionsRequest(
            topics=[types.TopicRequest(name=name) for name in names], cursor=cursor
        )
        response = cluster.client.send(ApiKey.DESCRIBE_TOPIC_PARTITIONS, request)
        for topic in response.topics:
            if not topic.error_code:
                found.setdefault(topic.name, []).extend(_partition(p) for p in topic.partitions)
        if response.next_cursor is None:
            break
        cursor = types.Cursor(
            topic_name=response.next_cursor.topic_name,
            partition_index=response.next_cursor.partition_index,
        )
    return {name: sorted(partitions) for name, partitions in found.items()}


def _partition(partition: Any) -> PartitionInfo:
    elr, last_known_elr = partition.eligible_leader_replicas, partition.last_known_elr
    return PartitionInfo(
        partition.partition_index,
        partition.leader_id if partition.leader_id >= 0 else None,
        partition.leader_epoch if partition.leader_epoch >= 0 else None,
        list(partition.replica_nodes),
        list(partition.isr_nodes),
        list(partition.offline_replicas),
        None if elr is None else list(elr),
        None if last_known_elr is None else list(last_known_elr),
    )


# What is wrong with a partition


class Judged(NamedTuple):
    """A partition with what is needed to judge it."""

    tp: TopicPartition
    info: PartitionInfo
    min_isr: int
    adding: int
    """How many of its replicas a reassignment is adding."""
    is_leader_alive: bool

    @property
    def is_under_replicated(self) -> bool:
        return len(self.info.replicas) - self.adding > len(self.info.isr)

    @property
    def is_under_min_isr(self) -> bool:
        return self.info.leader is None or len(self.info.isr) < self.min_isr

    @property
    def is_at_min_isr(self) -> bool:
        return len(self.info.isr) == self.min_isr

    @property
    def is_offline(self) -> bool:
        return self.info.leader is None or not self.is_leader_alive


def judged_partitions(cluster: ClusterAccess, topics: Sequence[TopicInfo]) -> list[Judged]:
    if not topics:
        return []
    min_isr = min_insync_replicas(cluster, [topic.name for topic in topics])
    adding = _being_added(cluster)
    alive = set(cluster.broker_ids())
    return [
        Judged(tp, info, min_isr[topic.name], adding.get(tp, 0), info.leader in alive)
        for topic in topics
        for info, tp in zip(topic.partitions, topic.topic_partitions, strict=True)
    ]


def min_insync_replicas(cluster: ClusterAccess, names: Sequence[str]) -> dict[str, int]:
    """min.insync.replicas of topics."""
    types = request_types(ApiKey.DESCRIBE_CONFIGS)
    found: dict[str, int] = {}
    for first in range(0, len(names), _CHUNK):
        resources = [
            types.DescribeConfigsResource(
                resource_type=_TOPIC, resource_name=name, configuration_keys=[_MIN_ISR]
            )
            for name in names[first : first + _CHUNK]
        ]
        response = cluster.send(
            ApiKey.DESCRIBE_CONFIGS, types.DescribeConfigsRequest(resources=resources, include_synonyms=False)
        )
        for result in response.results:
            if result.error_code:
                error = KafkaError(ErrorCode(result.error_code), result.error_message)
                raise kafka_failure(f"topic {result.resource_name}", result.resource_name, error)
            found[result.resource_name] = next(int(c.value) for c in result.configs if c.name == _MIN_ISR)
    return found


def _being_added(cluster: ClusterAccess) -> dict[TopicPartition, int]:
    types = request_types(ApiKey.LIST_PARTITION_REASSIGNMENTS)
    request = types.ListPartitionReassignmentsRequest(topics=None, timeout=cluster.timeout_ms)
    response = cluster.send(ApiKey.LIST_PARTITION_REASSIGNMENTS, request)
    if response.error_code:
        error = KafkaError(ErrorCode(response.error_code), response.error_message)
        raise kafka_failure("reassignments", "", error)
    return {
        TopicPartition(topic.name, partition.partition_index): len(partition.adding_replicas)
        for topic in response.topics
        for partition in topic.partitions
    }


# How far replicas are


class LogEnds(NamedTuple):
    """Log end offsets of replicas, and why others are not known."""

    offsets: Mapping[Replica, int]
    failures: Mapping[Replica, Exception]

    def lag(self, tp: TopicPartition, broker_id: int, leader: int | None) -> int | None:
        """How many offsets a replica is behind the leader; None where one of both is not known."""
        end = None if leader is None else self.offsets.get((tp, leader))
        own = self.offsets.get((tp, broker_id))
        return None if end is None or own is None else max(0, end - own)


def log_ends(cluster: ClusterAccess, topics: Iterable[TopicInfo], broker_ids: Iterable[int]) -> LogEnds:
    """Of the replicas on these brokers. Followers are asked before leaders: no lag is too small."""
    followed: dict[int, list[TopicPartition]] = {}
    led: dict[int, list[TopicPartition]] = {}
    for topic in topics:
        for info, tp in zip(topic.partitions, topic.topic_partitions, strict=True):
            for broker_id in info.replicas:
                where = led if broker_id == info.leader else followed
                where.setdefault(broker_id, []).append(tp)
    alive = sorted(broker_ids)
    found = LogEnds({}, {})
    for asked in (followed, led):
        for broker_id in alive:
            if broker_id in asked:
                _ask_ends(cluster, broker_id, asked[broker_id], found)
    return found


def _ask_ends(
    cluster: ClusterAccess, broker_id: int, partitions: Sequence[TopicPartition], found: LogEnds
) -> None:
    offsets, failures = found
    assert isinstance(offsets, dict)
    assert isinstance(failures, dict)
    types = request_types(ApiKey.LIST_OFFSETS)

    def asked(index: int) -> Any:
        return types.ListOffsetsPartition(partition_index=index, timestamp=LATEST)

    request = types.ListOffsetsRequest(
        replica_id=_DEBUGGING_REPLICA,
        topics=grouped(partitions, types.ListOffsetsTopic, "name", asked),
        timeout=QUICK_MS,
    )
    try:
        response = cluster.send_within(QUICK_MS, ApiKey.LIST_OFFSETS, request, node_id=broker_id)
    except (OSError, KafkaError) as e:
        failures.update(dict.fromkeys(((tp, broker_id) for tp in partitions), e))
        return
    for topic in response.topics:
        for partition in topic.partitions:
            replica = (TopicPartition(topic.name, partition.partition_index), broker_id)
            if partition.error_code:
                failures[replica] = KafkaError(ErrorCode(partition.error_code))
            else:
                offsets[replica] = partition.offset


def grouped(
    partitions: Iterable[TopicPartition],
    make_topic: Callable[..., Any],
    name_field: str,
    make_partition: Callable[[int], Any],
) -> list[Any]:
    """The topics of a request, with a part for each partition."""
    by_name: dict[str, list[Any]] = {}
    for tp in partitions:
        by_name.setdefault(tp.topic, []).append(make_partition(tp.partition))
    return [make_topic(**{name_field: name}, partitions=parts) for name, parts in by_name.items()]
