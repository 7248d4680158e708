"""The cluster's metadata at one offset, as immutable values: topics, brokers, configs, features.

How records change it is in replay.py; nothing here decides anything. A published image is never written to
again: a change copies the containers it touches and shares all the rest.
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

CLUSTER_DEFAULT = ""  # the broker resource whose configs hold for every broker

RECOVERED = 0
RECOVERING = 1

DIR_MIGRATING = UUID(int=0)
DIR_UNASSIGNED = UUID(int=1)
RESERVED_DIRS = frozenset(UUID(int=i) for i in range(100))


class PartitionRegistration(NamedTuple):
    """What the controller knows of one partition."""

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
        """May lead partitions and join an ISR."""
        return not self.fenced and not self.in_controlled_shutdown


class ControllerRegistration(NamedTuple):
    id: int
    incarnation_id: UUID
    endpoints: Mapping[str, Endpoint]
    features: Mapping[str, VersionRange]


class MetadataImage(NamedTuple):
    """All of it. `offset` and `epoch` are of the last record contained, -1 before the first."""

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
    """Records of kinds that no code here acts on (quotas, ACLs, credentials), by identity: they survive."""

    @property
    def metadata_version(self) -> int:
        return self.features.get("metadata.version", 0)

    @property
    def elr_enabled(self) -> bool:
        return self.features.get("eligible.leader.replicas.version", 0) >= 1

    @property
    def transaction_version(self) -> int:
        """2 and above give every transaction an epoch of its own."""
        return self.features.get("transaction.version", 0)

    @property
    def group_version(self) -> int:
        """1 and above allow the consumer protocol (KIP-848)."""
        return self.features.get("group.version", 0)

    def leader_of(self, tp: TopicPartition) -> int | None:
        """NO_LEADER where a partition has none now; None where there is no such partition."""
        topic = self.topics_by_name.get(tp.topic)
        partition = None if topic is None else topic.partitions.get(tp.partition)
        return None if partition is None else partition.leader

    def alive_broker_epoch(self, broker_id: int) -> int | None:
        """The epoch of a broker that is registered and not fenced."""
        broker = self.brokers.get(broker_id)
        return None if broker is None or broker.fenced else broker.epoch

    def config(self, resource_type: int, name: str) -> Mapping[str, str]:
        """What was set dynamically on a resource, without any default."""
        return self.configs.get((resource_type, name), _NOTHING)

    def topic_config(self, topic: str) -> Mapping[str, str]:
        return self.configs.get((RESOURCE_TOPIC, topic), _NOTHING)


_NOTHING: Mapping[str, str] = MappingProxyType({})
EMPTY_IMAGE = MetadataImage()
