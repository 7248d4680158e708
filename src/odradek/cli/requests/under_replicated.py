"""Asks the cluster about replicas that are not in sync, twice with a pause: what they do, and how fast.

Only Kafka's protocol is used, so that Apache's brokers can be asked, too. replica_lag.py draws conclusions.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from odradek.cli.errors import Failure
from odradek.cli.requests.cluster_access import (
    READ_UNCOMMITTED,
    ClusterAccess,
    PartitionInfo,
    TopicInfo,
)
from odradek.cli.requests.quorum import describe_quorum
from odradek.cli.requests.replica_lag import BrokerState, LaggingReplica, Reach, Sample, explain
from odradek.cli.requests.replication import (
    QUICK_MS,
    LogEnds,
    RegisteredBroker,
    Replica,
    grouped,
    log_ends,
    registered_brokers,
    with_eligible_leaders,
)
from odradek.cli.requests.scan import ReadLimit, ReadLimitError, scan
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import TopicPartition
from odradek.records.batch import iter_records
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

PAUSE_S: Final = 1.0
"""Between the two samples."""
_MOST_TIMES: Final = 50
"""For so many replicas the first record that they lack is looked up."""
_READ_LIMIT_BYTES: Final = 256 << 20


class _Stored(NamedTuple):
    """Sizes of replicas, and the brokers that have a log directory that failed."""

    sizes: dict[Replica, int]
    failed: set[int]


class _Moment(NamedTuple):
    at_s: float
    ends: LogEnds
    stored: _Stored

    def sample(self, tp: TopicPartition, broker_id: int, leader: int | None) -> Sample:
        led = (tp, -1 if leader is None else leader)
        return Sample(
            self.at_s,
            self.ends.offsets.get((tp, broker_id)),
            self.ends.offsets.get(led),
            self.stored.sizes.get((tp, broker_id)),
            self.stored.sizes.get(led),
        )


def find_lagging(
    properties: Mapping[str, str], cluster: ClusterAccess, name: str | None, now_ms: int
) -> list[LaggingReplica]:
    """The replicas that are not in sync, of a topic or of all, in the order of their partitions."""
    topics = cluster.topics() if name is None else [cluster.topic(name)]
    lagging = [topic for topic in topics if any(_out_of_sync(p) for p in topic.partitions)]
    lagging = [
        topic._replace(partitions=[p for p in topic.partitions if _out_of_sync(p)])
        for topic in with_eligible_leaders(cluster, lagging)
    ]
    if not lagging:
        return []
    registered = registered_brokers(cluster)
    before = _look(cluster, lagging, registered)
    threading.Event().wait(PAUSE_S)
    now = _look(cluster, lagging, registered)
    brokers = _brokers(properties, cluster, lagging, registered, now.ends, now_ms)
    times = _first_missing(cluster, lagging, now.ends)
    found = []
    for topic in lagging:
        for partition, tp in zip(topic.partitions, topic.topic_partitions, strict=True):
            for broker_id in _out_of_sync(partition):
                failure = now.ends.failures.get((tp, broker_id))
                has_failed = broker_id in now.stored.failed and (tp, broker_id) not in now.stored.sizes
                since_ms = times.get((tp, broker_id))
                first, second = (m.sample(tp, broker_id, partition.leader) for m in (before, now))
                broker = brokers[broker_id]
                estimate = None
                if second.lag is None:
                    estimate = _written_since(cluster, topic, tp, partition, broker, second)
                found.append(
                    explain(
                        tp,
                        partition.leader,
                        broker,
                        broker_id in partition.offline,
                        has_failed or _is_storage_error(failure),
                        first,
                        second,
                        since_ms,
                        estimate,
                    )
                )
    return found


def _out_of_sync(partition: PartitionInfo) -> list[int]:
    """Without a leader, members of the ISR that are offline, too."""
    return [
        id_
        for id_ in partition.replicas
        if id_ not in partition.isr or (partition.leader is None and id_ in partition.offline)
    ]


def _look(
    cluster: ClusterAccess, topics: Sequence[TopicInfo], registered: Mapping[int, RegisteredBroker]
) -> _Moment:
    alive = [broker_id for broker_id, broker in registered.items() if not broker.is_fenced]
    ends = log_ends(cluster, topics, alive)
    return _Moment(time.monotonic(), ends, _stored(cluster, topics, alive))


def _stored(cluster: ClusterAccess, topics: Sequence[TopicInfo], alive: Sequence[int]) -> _Stored:
    types = request_types(ApiKey.DESCRIBE_LOG_DIRS)
    found = _Stored({}, set())
    for broker_id in alive:
        mine = [
            tp
            for topic in topics
            for partition, tp in zip(topic.partitions, topic.topic_partitions, strict=True)
            if broker_id in partition.replicas
        ]
        if not mine:
            continue
        asked = grouped(mine, types.DescribableLogDirTopic, "topic", int)
        request = types.DescribeLogDirsRequest(topics=asked)
        try:
            response = cluster.send_within(QUICK_MS, ApiKey.DESCRIBE_LOG_DIRS, request, node_id=broker_id)
        except (OSError, KafkaError):
            continue
        for result in response.results:
            if result.error_code:
                found.failed.add(broker_id)
            for topic in result.topics:
                for partition in topic.partitions:
                    tp = TopicPartition(topic.name, partition.partition_index)
                    if not partition.is_future_key:
                        found.sizes[tp, broker_id] = partition.partition_size
    return found


def _is_storage_error(failure: Exception | None) -> bool:
    return isinstance(failure, KafkaError) and failure.code is ErrorCode.KAFKA_STORAGE_ERROR


# Brokers


def _brokers(
    properties: Mapping[str, str],
    cluster: ClusterAccess,
    topics: Sequence[TopicInfo],
    registered: Mapping[int, RegisteredBroker],
    ends: LogEnds,
    now_ms: int,
) -> dict[int, BrokerState]:
    """Of all replicas that are not in sync."""
    wanted = sorted({id_ for topic in topics for partition in topic.partitions for id_ in partition.replicas})
    silent = {id_ for (_, id_), error in ends.failures.items() if not isinstance(error, KafkaError)}
    unseen = _unseen_since(properties, now_ms)
    states = {}
    for id_ in wanted:
        broker = registered.get(id_)
        if broker is None:
            states[id_] = BrokerState(id_, False, True, Reach.TIMED_OUT, None, unseen.get(id_))
            continue
        is_suspect = broker.is_fenced or id_ in silent
        reach = cluster.client.call(_reach, cluster, broker) if is_suspect else Reach.ANSWERED
        address = f"{broker.host}:{broker.port}" if broker.host else None
        since_ms = unseen.get(id_) if is_suspect else None
        states[id_] = BrokerState(id_, True, broker.is_fenced, reach, address, since_ms)
    return states


async def _reach(cluster: ClusterAccess, broker: RegisteredBroker) -> Reach:
    """Whether a broker takes connections and answers."""
    import asyncio

    from odradek.client.connection import BrokerConnection

    runtime = cluster.client.client.runtime
    if not broker.host:
        return Reach.TIMED_OUT  # a fenced broker whose address the cluster does not name
    try:
        async with asyncio.timeout(QUICK_MS / 1000):
            socket = await runtime.net.connect(broker.host, broker.port)
        socket.close()
    except TimeoutError:
        return Reach.TIMED_OUT
    except OSError:
        return Reach.REFUSED
    try:
        connection = await BrokerConnection.open(
            runtime, broker.host, broker.port, client_id="odradek", request_timeout_ms=QUICK_MS
        )
    except (OSError, KafkaError):
        return Reach.SILENT
    connection.close()
    return Reach.ANSWERED


def _unseen_since(properties: Mapping[str, str], now_ms: int) -> dict[int, int]:
    """When nodes fetched metadata last: a node that is down does not fetch. Controllers forget observers
    after some minutes."""
    try:
        quorum = describe_quorum(properties)
    except Failure:
        return {}
    replicas = [] if quorum is None else quorum.replicas
    return {r.node_id: now_ms - r.fetched_ms_ago for r in replicas if r.fetched_ms_ago is not None}


# Times


def _first_missing(cluster: ClusterAccess, topics: Sequence[TopicInfo], ends: LogEnds) -> dict[Replica, int]:
    """When the first record was written that a replica does not have; for those that are far behind."""
    behind: list[tuple[int, Replica, TopicInfo]] = []
    for topic in topics:
        for partition, tp in zip(topic.partitions, topic.topic_partitions, strict=True):
            for broker_id in _out_of_sync(partition):
                lag = ends.lag(tp, broker_id, partition.leader)
                if lag:
                    behind.append((lag, (tp, broker_id), topic))
    behind.sort(key=lambda found: -found[0])
    limit = ReadLimit(_READ_LIMIT_BYTES)
    times: dict[Replica, int] = {}
    for _, replica, topic in behind[:_MOST_TIMES]:
        timestamp = _timestamp_at(cluster, topic, replica[0], ends.offsets[replica], limit)
        if timestamp is not None:
            times[replica] = timestamp
    return times


def _timestamp_at(
    cluster: ClusterAccess, topic: TopicInfo, tp: TopicPartition, offset: int, limit: ReadLimit
) -> int | None:
    try:
        for found in scan(cluster, topic, tp, offset, offset + 1, limit, isolation_level=READ_UNCOMMITTED):
            for record in iter_records(found.data, found.batch):
                if record.offset >= offset:
                    return record.timestamp
    except (Failure, ReadLimitError):
        return None
    return None


def _written_since(
    cluster: ClusterAccess,
    topic: TopicInfo,
    tp: TopicPartition,
    partition: PartitionInfo,
    broker: BrokerState,
    now: Sample,
) -> int | None:
    """How much the leader was given since the broker was seen last."""
    if broker.unseen_since_ms is None or partition.leader is None or now.leader_end is None:
        return None
    try:
        found: Any = cluster.list_offsets([topic], [tp], broker.unseen_since_ms)[tp]
    except Failure:
        return None
    return 0 if found is None else max(0, now.leader_end - found)
