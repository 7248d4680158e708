"""The cluster as commands see it: topics, offsets, groups, by name. Blocking, one request after the other.

client/ speaks the protocol. Here are the requests that several commands need, and errors for people.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from odradek.cli.errors import Failure, Usage, connection_failure, kafka_failure
from odradek.cli.records.offsets import At, Bound
from odradek.core.errors import ErrorCode, KafkaError, ProtocolError
from odradek.core.types import ZERO_UUID, TopicPartition, uuid_to_text
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

# Timestamps of ListOffsets with a meaning of their own.
LATEST, EARLIEST = -1, -2
READ_UNCOMMITTED, READ_COMMITTED = 0, 1


class PartitionInfo(NamedTuple):
    partition: int
    leader: int | None
    leader_epoch: int | None
    replicas: list[int]
    isr: list[int]
    offline: list[int]
    elr: list[int] | None = None
    """Eligible leader replicas; None where nobody was asked (see replication.py), or nobody knows them."""
    last_known_elr: list[int] | None = None


class TopicInfo(NamedTuple):
    name: str
    id: str | None
    is_internal: bool
    partitions: list[PartitionInfo]

    @property
    def replication_factor(self) -> int | None:
        return len(self.partitions[0].replicas) if self.partitions else None

    @property
    def topic_partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.name, partition.partition) for partition in self.partitions]


class FoundOffset(NamedTuple):
    """An offset found in a partition, between its first and its end."""

    partition: int
    start: int
    end: int
    offset: int


class ClusterAccess:
    """A connection to the cluster that the properties name. Failures are ready to be shown."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        from odradek.client.blocking import BlockingClient

        self._servers = properties["bootstrap.servers"]
        self.timeout_ms = int(properties["request.timeout.ms"])
        try:
            self.client = BlockingClient(
                self._servers,
                client_id=properties["client.id"],
                request_timeout_ms=self.timeout_ms,
                api_timeout_ms=self.timeout_ms,
            )
        except ValueError as e:
            raise Usage(str(e)) from e

    def close(self) -> None:
        self.client.close()

    def send(
        self, api_key: ApiKey, request: Any, *, node_id: int | None = None, max_version: int | None = None
    ) -> Any:
        """One request to a broker, to any where none is named, and its response."""
        with self.failing(self._servers):
            return self.client.send(api_key, request, node_id=node_id, max_version=max_version)

    def send_within(self, timeout_ms: int, api_key: ApiKey, request: Any, *, node_id: int) -> Any:
        """The response of a broker that may be down or silent. Raises what the client raises."""
        return self.client.call(self._send_within, timeout_ms, api_key, request, node_id)

    async def _send_within(self, timeout_ms: int, api_key: ApiKey, request: Any, node_id: int) -> Any:
        async with asyncio.timeout(timeout_ms / 1000):
            return await self.client.client.send(api_key, request, node_id=node_id)

    @contextmanager
    def failing(self, thing: str, subject: str = "") -> Iterator[None]:
        """What the client raises becomes a failure of the thing it was asked for."""
        try:
            yield
        except OSError as e:
            raise self._connection_failure(e) from e
        except KafkaError as e:
            raise kafka_failure(thing, subject, e) from e
        except ProtocolError as e:
            raise Failure(str(e), "is the address right? -b HOST:PORT") from e

    def _connection_failure(self, error: OSError) -> Failure:
        from odradek.client.client import AdvertisedAddressError

        if isinstance(error, AdvertisedAddressError):
            return Failure(str(error), "next: odradek start --set advertised.listeners=PLAINTEXT://HOST:PORT")
        return connection_failure(self._servers, error)

    # Topics

    def metadata(self, names: Sequence[str] | None = None) -> Any:
        types = request_types(ApiKey.METADATA)
        topics = None if names is None else [types.MetadataRequestTopic(name=name) for name in names]
        return self.send(
            ApiKey.METADATA, types.MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        )

    def topics(self) -> list[TopicInfo]:
        return sorted(_topic(topic) for topic in self.metadata().topics if not topic.error_code)

    def topic_names(self) -> list[str]:
        return [topic.name for topic in self.topics()]

    def find_topics(self, names: Sequence[str]) -> tuple[list[TopicInfo], list[Failure]]:
        """The topics of these names in the order given, and what is wrong with the others."""
        found, failures = {}, []
        for topic in self.metadata(list(dict.fromkeys(names))).topics:
            if topic.error_code:
                error = KafkaError(ErrorCode(topic.error_code))
                failures.append(kafka_failure(f"topic {topic.name}", topic.name, error))
            else:
                found[topic.name] = _topic(topic)
        return [found[name] for name in dict.fromkeys(names) if name in found], failures

    def topic(self, name: str) -> TopicInfo:
        topics, failures = self.find_topics([name])
        if failures:
            raise failures[0]
        return topics[0]

    def have_leaders(self, names: Sequence[str]) -> bool:
        """Are these topics known, and can all their partitions be used?"""
        topics, failures = self.find_topics(names)
        return not failures and all(p.leader is not None for topic in topics for p in topic.partitions)

    def broker_ids(self) -> list[int]:
        return sorted(broker.node_id for broker in self.metadata([]).brokers)

    def send_to_leaders(
        self,
        api_key: ApiKey,
        partitions: Sequence[TopicPartition],
        topics: Sequence[TopicInfo],
        make_request: Callable[[Mapping[str, list[int]]], Any],
        max_version: int | None = None,
    ) -> Iterator[Any]:
        """One request to every leader of some partitions; those without a leader raise a failure."""
        by_leader: dict[int, dict[str, list[int]]] = {}
        leaders = {
            TopicPartition(topic.name, partition.partition): partition.leader
            for topic in topics
            for partition in topic.partitions
        }
        for tp in partitions:
            leader = leaders.get(tp)
            if leader is None:
                code = (
                    ErrorCode.LEADER_NOT_AVAILABLE if tp in leaders else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                )
                raise kafka_failure(f"partition {tp}", tp.topic, KafkaError(code))
            by_leader.setdefault(leader, {}).setdefault(tp.topic, []).append(tp.partition)
        for leader, wanted in sorted(by_leader.items()):
            yield self.send(api_key, make_request(wanted), node_id=leader, max_version=max_version)

    # Offsets

    def list_offsets(
        self,
        topics: Sequence[TopicInfo],
        partitions: Sequence[TopicPartition],
        timestamp: int,
        isolation_level: int = 0,
    ) -> dict[TopicPartition, int | None]:
        """The offset at a timestamp in each partition; None where nothing is as late."""
        types = request_types(ApiKey.LIST_OFFSETS)

        def request(wanted: Mapping[str, list[int]]) -> Any:
            return types.ListOffsetsRequest(
                replica_id=-1,
                isolation_level=isolation_level,
                topics=[
                    types.ListOffsetsTopic(
                        name=name,
                        partitions=[
                            types.ListOffsetsPartition(partition_index=index, timestamp=timestamp)
                            for index in indexes
                        ],
                    )
                    for name, indexes in wanted.items()
                ],
                timeout=self.timeout_ms,
            )

        offsets: dict[TopicPartition, int | None] = {}
        for response in self.send_to_leaders(ApiKey.LIST_OFFSETS, partitions, topics, request):
            for topic in response.topics:
                for partition in topic.partitions:
                    tp = TopicPartition(topic.name, partition.partition_index)
                    if partition.error_code:
                        error = KafkaError(ErrorCode(partition.error_code))
                        raise kafka_failure(f"partition {tp}", tp.topic, error)
                    offsets[tp] = partition.offset if partition.offset >= 0 else None
        return offsets

    def bounds(
        self, topics: Sequence[TopicInfo], isolation_level: int = 0
    ) -> dict[TopicPartition, tuple[int, int]]:
        """First and end offset of every partition of some topics."""
        partitions = [tp for topic in topics for tp in topic.topic_partitions]
        starts = self.list_offsets(topics, partitions, EARLIEST)
        ends = self.list_offsets(topics, partitions, LATEST, isolation_level)
        return {tp: (starts[tp] or 0, ends[tp] or 0) for tp in partitions}

    def resolve(
        self, topics: Sequence[TopicInfo], partitions: Sequence[TopicPartition], bound: Bound
    ) -> dict[TopicPartition, FoundOffset]:
        """Where a bound such as `-100` or `@-1h` lies in each partition."""
        bounds = self.bounds(topics)
        times = self.list_offsets(topics, partitions, bound.value) if bound.at is At.TIME else {}
        return {
            tp: FoundOffset(tp.partition, *bounds[tp], bound.resolve(*bounds[tp], lambda _, tp=tp: times[tp]))  # type: ignore[misc]
            for tp in partitions
        }

    # Groups

    def listed_groups(self) -> list[tuple[int, Any]]:
        """Every group with the broker that coordinates it, sorted by name."""
        types = request_types(ApiKey.LIST_GROUPS)
        groups = []
        for broker_id in self.broker_ids():
            response = self.send(ApiKey.LIST_GROUPS, types.ListGroupsRequest(), node_id=broker_id)
            if response.error_code:
                error = KafkaError(ErrorCode(response.error_code))
                raise kafka_failure(f"groups of broker {broker_id}", "", error)
            groups += [(broker_id, group) for group in response.groups]
        return sorted(groups, key=lambda found: str(found[1].group_id))

    def coordinator(self, group: str) -> int:
        """The broker that coordinates a group; the cluster is given time to find one."""
        with self.failing(f"group {group}", group):
            return self.client.coordinator(group)

    def transaction_coordinator(self, transactional_id: str) -> int:
        with self.failing(f"transactional id {transactional_id}", transactional_id):
            return self.client.coordinator(transactional_id, 1)

    def group_names(self) -> list[str]:
        return [group.group_id for _, group in self.listed_groups()]


def _topic(topic: Any) -> TopicInfo:
    partitions = sorted(
        PartitionInfo(
            partition.partition_index,
            partition.leader_id if partition.leader_id >= 0 else None,
            partition.leader_epoch if partition.leader_epoch >= 0 else None,
            list(partition.replica_nodes),
            list(partition.isr_nodes),
            list(partition.offline_replicas),
        )
        for partition in topic.partitions
    )
    topic_id = None if topic.topic_id in (None, ZERO_UUID) else uuid_to_text(topic.topic_id)
    return TopicInfo(topic.name, topic_id, topic.is_internal, partitions)
