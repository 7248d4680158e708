"""MetadataImage: the cluster's metadata at one offset, as immutable values: topics, brokers, configs,
features.

draft.py applies records to it. A published image never changes: a change copies the containers that it
modifies and shares everything else.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

from odradek.core.types import NO_LEADER, TopicPartition

RESOURCE_TOPIC = 2
RESOURCE_BROKER = 4
RESOURCE_BROKER_LOGGER = 8
RESOURCE_CLIENT_METRICS = 16
RESOURCE_GROUP = 32

CLUSTER_DEFAULT = ""  # the broker resource whose configs apply to every broker

RECOVERED = 0
RECOVERING = 1

DIR_MIGRATING = UUID(int=0)
DIR_UNASSIGNED = UUID(int=1)
RESERVED_DIRS = frozenset(UUID(int=i) for i in range(100))


class PartitionRegistration(NamedTuple):
    """The state of one partition in the metadata."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    directories: tuple[UUID, ...] = ()
    leader_recovery_state: int = RECOVERED

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_LEADER


class TopicImage(NamedTuple):
    name: str
    id: UUID
    partitions: dict[int, PartitionRegistration]


class Endpoint(NamedTuple):
    host: str
    port: int
    security_protocol: int


class VersionRange(NamedTuple):
    min: int
    max: int

    def __contains__(self, level: object) -> bool:
        return isinstance(level, int) and self.min <= level <= self.max


class BrokerRegistration(NamedTuple):
    id: int
    epoch: int
    incarnation_id: UUID
    endpoints: Mapping[str, Endpoint]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    log_dirs: tuple[UUID, ...]
    cordoned_log_dirs: tuple[UUID, ...] | None
    features: Mapping[str, VersionRange]

    @property
    def is_active(self) -> bool:
        """Whether it may lead partitions and join an ISR."""
        return not self.fenced and not self.in_controlled_shutdown


class ControllerRegistration(NamedTuple):
    id: int
    incarnation_id: UUID
    endpoints: Mapping[str, Endpoint]
    features: Mapping[str, VersionRange]


class MetadataImage(NamedTuple):
    """All metadata. `offset` and `epoch` are those of the last record; -1 before the first."""

    offset: int = -1
    epoch: int = -1
    timestamp_ms: int = -1
    topics_by_name: Mapping[str, TopicImage] = MappingProxyType({})
    topics_by_id: Mapping[UUID, TopicImage] = MappingProxyType({})
    brokers: Mapping[int, BrokerRegistration] = MappingProxyType({})
    controllers: Mapping[int, ControllerRegistration] = MappingProxyType({})
    configs: Mapping[tuple[int, str], Mapping[str, str]] = MappingProxyType({})
    features: Mapping[str, int] = MappingProxyType({})
    next_producer_id: int = 0
    kept: Mapping[tuple[Any, ...], Any] = MappingProxyType({})
    """Records without effect in Odradek (quotas, ACLs, credentials), by identity. They are kept."""

    @property
    def metadata_version(self) -> int:
        return self.features.get("metadata.version", 0)

    @property
    def elr_enabled(self) -> bool:
        return self.features.get("eligible.leader.replicas.version", 0) >= 1

    @property
    def transaction_version(self) -> int:
        """From 2 every transaction has its own epoch."""
        return self.features.get("transaction.version", 0)

    @property
    def group_version(self) -> int:
        """From 1 the consumer protocol is allowed (KIP-848)."""
        return self.features.get("group.version", 0)

    def leader_of(self, tp: TopicPartition) -> int | None:
        """The leader or NO_LEADER; None if there is no such partition."""
        topic = self.topics_by_name.get(tp.topic)
        partition = None if topic is None else topic.partitions.get(tp.partition)
        return None if partition is None else partition.leader

    def alive_broker_epoch(self, broker_id: int) -> int | None:
        """The epoch of a broker that is registered and not fenced."""
        broker = self.brokers.get(broker_id)
        return None if broker is None or broker.fenced else broker.epoch

    def config(self, resource_type: int, name: str) -> Mapping[str, str]:
        """The dynamic configs of a resource, without defaults."""
        return self.configs.get((resource_type, name), _NOTHING)

    def topic_config(self, topic: str) -> Mapping[str, str]:
        return self.configs.get((RESOURCE_TOPIC, topic), _NOTHING)


_NOTHING: Mapping[str, str] = MappingProxyType({})
EMPTY_IMAGE = MetadataImage()
