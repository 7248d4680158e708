"""ImageDraft: applies records to the image. Replicated metadata changes nowhere else. Pure.

A draft copies a container when a batch of records first changes it, and shares everything else.
"""

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from odradek.core.types import NO_LEADER
from odradek.metadata import records as r
from odradek.metadata.delta import MetadataDelta
from odradek.metadata.image import (
    RESOURCE_TOPIC,
    BrokerRegistration,
    ControllerRegistration,
    Endpoint,
    MetadataImage,
    PartitionRegistration,
    TopicImage,
    VersionRange,
)
from odradek.runtime.slices import FEW, Paced

NO_RECOVERY_CHANGE = -1


class ReplayError(Exception):
    """A record that contradicts the image: the log is damaged, or this code has a bug."""


class ImageDraft:
    """The containers that a batch changes, copied at their first change."""

    __slots__ = (
        "base",
        "brokers",
        "changed_partitions",
        "configs",
        "controllers",
        "deleted_topics",
        "features",
        "kept",
        "next_producer_id",
        "open_configs",
        "open_topics",
        "topics_by_id",
        "topics_by_name",
    )

    def __init__(self, base: MetadataImage) -> None:
        self.base = base
        self.topics_by_id: dict[UUID, TopicImage] | None = None
        self.topics_by_name: dict[str, TopicImage] | None = None
        self.open_topics: dict[UUID, TopicImage] = {}
        self.deleted_topics: dict[UUID, TopicImage] = {}
        self.changed_partitions: dict[tuple[UUID, int], None] = {}
        self.brokers: dict[int, BrokerRegistration] | None = None
        self.controllers: dict[int, ControllerRegistration] | None = None
        self.configs: dict[tuple[int, str], Any] | None = None
        self.open_configs: dict[tuple[int, str], dict[str, str]] = {}
        self.features: dict[str, int] | None = None
        self.kept: dict[tuple[Any, ...], Any] | None = None
        self.next_producer_id = base.next_producer_id

    def replay(self, record: Any) -> None:
        handler = _HANDLERS.get(type(record))
        if handler is None:
            raise ReplayError(f"no handler for {type(record).__name__}")
        handler(self, record)

    def finish(self, last_offset: int, epoch: int, timestamp_ms: int) -> Paced[MetadataDelta]:
        base = self.base
        changes: dict[str, Any] = {}
        if self.topics_by_id is not None:
            changes["topics_by_id"] = self.topics_by_id
            changes["topics_by_name"] = self.topics_by_name
        if self.brokers is not None:
            changes["brokers"] = self.brokers
        if self.controllers is not None:
            changes["controllers"] = self.controllers
        if self.configs is not None:
            changes["configs"] = self.configs
        if self.features is not None:
            changes["features"] = self.features
        if self.kept is not None:
            changes["kept"] = self.kept
        image = base._replace(
            offset=last_offset,
            epoch=epoch,
            timestamp_ms=timestamp_ms,
            next_producer_id=self.next_producer_id,
            **changes,
        )
        delta = MetadataDelta(base, image)
        delta.changed_topics = list(self.open_topics)
        delta.deleted_topics = list(self.deleted_topics.values())
        for topic_id, index in self.changed_partitions:
            topic = self.open_topics[topic_id]
            delta.changed_partitions.append((topic, index, topic.partitions[index]))
            yield 3 * FEW
        delta.changed_configs = list(self.open_configs)
        return delta

    # --- topics -------------------------------------------------------------------------------------

    def _topics(self) -> tuple[dict[UUID, TopicImage], dict[str, TopicImage]]:
        if self.topics_by_id is None or self.topics_by_name is None:
            self.topics_by_id = dict(self.base.topics_by_id)
            self.topics_by_name = dict(self.base.topics_by_name)
        return self.topics_by_id, self.topics_by_name

    def _set_topic(self, topic: TopicImage) -> None:
        by_id, by_name = self._topics()
        by_id[topic.id] = by_name[topic.name] = topic
        self.open_topics[topic.id] = topic

    def _open_topic(self, topic_id: UUID) -> TopicImage:
        topic = self.open_topics.get(topic_id)
        if topic is None:
            known = self._topics()[0].get(topic_id)
            if known is None:
                raise ReplayError(f"a record names an unknown topic id: {topic_id}")
            topic = TopicImage(known.name, known.id, dict(known.partitions))
            self._set_topic(topic)
        return topic

    def topic(self, record: Any) -> None:
        if record.name in self._topics()[1]:
            raise ReplayError(f"topic {record.name} is created twice")
        self._set_topic(TopicImage(record.name, record.topic_id, {}))

    def remove_topic(self, record: Any) -> None:
        by_id, by_name = self._topics()
        topic = by_id.pop(record.topic_id, None)
        if topic is None:
            raise ReplayError(f"cannot remove an unknown topic id: {record.topic_id}")
        del by_name[topic.name]
        self.open_topics.pop(topic.id, None)
        if self.changed_partitions:
            for index in topic.partitions:
                self.changed_partitions.pop((topic.id, index), None)
        existed = self.base.topics_by_id.get(topic.id)
        if existed is not None:
            self.deleted_topics[topic.id] = existed
        key = (RESOURCE_TOPIC, topic.name)
        if key in (self.base.configs if self.configs is None else self.configs):
            self._configs().pop(key)
            self.open_configs[key] = {}

    def partition(self, record: Any) -> None:
        replicas = tuple(record.replicas)
        isr = tuple(record.isr)
        topic = self._open_topic(record.topic_id)
        topic.partitions[record.partition_id] = PartitionRegistration(
            replicas=replicas,
            isr=replicas if isr == replicas else isr,
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            adding=tuple(record.adding_replicas),
            removing=tuple(record.removing_replicas),
            elr=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
            directories=tuple(record.directories or ()),
            leader_recovery_state=record.leader_recovery_state,
        )
        self.changed_partitions[topic.id, record.partition_id] = None

    def partition_change(self, record: Any) -> None:
        topic = self._open_topic(record.topic_id)
        old = topic.partitions.get(record.partition_id)
        if old is None:
            raise ReplayError(f"cannot change an unknown partition: {topic.name}-{record.partition_id}")
        topic.partitions[record.partition_id] = merge(old, record)
        self.changed_partitions[topic.id, record.partition_id] = None

    def clear_elr(self, record: Any) -> None:
        by_id, by_name = self._topics()
        if record.topic_name:
            if record.topic_name not in by_name:
                raise ReplayError(f"cannot clear the ELR of an unknown topic: {record.topic_name}")
            ids = [by_name[record.topic_name].id]
        else:
            ids = list(by_id)
        for topic_id in ids:
            for index, old in by_id[topic_id].partitions.items():
                if old.elr or old.last_known_elr:
                    topic = self._open_topic(topic_id)
                    epoch = old.partition_epoch + 1
                    topic.partitions[index] = old._replace(elr=(), last_known_elr=(), partition_epoch=epoch)
                    self.changed_partitions[topic_id, index] = None

    # --- nodes --------------------------------------------------------------------------------------

    def _brokers(self) -> dict[int, BrokerRegistration]:
        if self.brokers is None:
            self.brokers = dict(self.base.brokers)
        return self.brokers

    def register_broker(self, record: Any) -> None:
        cordoned = record.cordoned_log_dirs
        self._brokers()[record.broker_id] = BrokerRegistration(
            id=record.broker_id,
            epoch=record.broker_epoch,
            incarnation_id=record.incarnation_id,
            endpoints=_endpoints(record.end_points),
            rack=record.rack,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            log_dirs=tuple(record.log_dirs),
            cordoned_log_dirs=None if cordoned is None else tuple(cordoned),
            features=_features(record.features),
        )

    def unregister_broker(self, record: Any) -> None:
        self._broker(record.broker_id, record.broker_epoch)
        del self._brokers()[record.broker_id]

    def _broker(self, broker_id: int, epoch: int) -> BrokerRegistration:
        broker = self._brokers().get(broker_id)
        if broker is None or broker.epoch != epoch:
            raise ReplayError(f"a record names an unregistered broker: {broker_id} at epoch {epoch}")
        return broker

    def broker_registration_change(self, record: Any) -> None:
        broker = self._broker(record.broker_id, record.broker_epoch)
        changes: dict[str, Any] = {}
        if record.fenced:
            changes["fenced"] = record.fenced > 0
        if record.in_controlled_shutdown:
            changes["in_controlled_shutdown"] = record.in_controlled_shutdown > 0
        if record.log_dirs:
            changes["log_dirs"] = tuple(record.log_dirs)
        if record.cordoned_log_dirs is not None:
            changes["cordoned_log_dirs"] = tuple(record.cordoned_log_dirs)
        self._brokers()[broker.id] = broker._replace(**changes)

    def fence_broker(self, record: Any) -> None:
        broker = self._broker(record.id, record.epoch)
        self._brokers()[broker.id] = broker._replace(fenced=True)

    def unfence_broker(self, record: Any) -> None:
        broker = self._broker(record.id, record.epoch)
        self._brokers()[broker.id] = broker._replace(fenced=False)

    def register_controller(self, record: Any) -> None:
        if self.controllers is None:
            self.controllers = dict(self.base.controllers)
        self.controllers[record.controller_id] = ControllerRegistration(
            id=record.controller_id,
            incarnation_id=record.incarnation_id,
            endpoints=_endpoints(record.end_points),
            features=_features(record.features),
        )

    # --- the rest -----------------------------------------------------------------------------------

    def _configs(self) -> dict[tuple[int, str], Any]:
        if self.configs is None:
            self.configs = dict(self.base.configs)
        return self.configs

    def config(self, record: Any) -> None:
        key = (record.resource_type, record.resource_name)
        values = self.open_configs.get(key)
        if values is None:
            values = self.open_configs[key] = dict(self._configs().get(key, ()))
        if record.value is None:
            values.pop(record.name, None)
        else:
            values[record.name] = record.value
        configs = self._configs()
        if values:
            configs[key] = values
        else:
            configs.pop(key, None)

    def feature_level(self, record: Any) -> None:
        if self.features is None:
            self.features = dict(self.base.features)
        if record.feature_level == 0:
            self.features.pop(record.name, None)
        else:
            self.features[record.name] = record.feature_level

    def producer_ids(self, record: Any) -> None:
        if record.next_producer_id < self.next_producer_id:
            raise ReplayError(
                f"producer ids go back from {self.next_producer_id} to {record.next_producer_id}"
            )
        self.next_producer_id = record.next_producer_id

    def no_op(self, record: Any) -> None:
        pass

    def keep(self, record: Any) -> None:
        if self.kept is None:
            self.kept = dict(self.base.kept)
        identity = _IDENTITY[type(record)](record)
        if isinstance(record, r.OpaqueRecord):
            self.kept.pop(identity, None)  # what it means may depend on what comes before it
        if isinstance(record, r.ClientQuotaRecord) and record.remove:
            self.kept.pop(identity, None)
        else:
            self.kept[identity] = record

    def drop(self, record: Any) -> None:
        if self.kept is None:
            self.kept = dict(self.base.kept)
        self.kept.pop(_IDENTITY[type(record)](record), None)


def merge(old: PartitionRegistration, record: Any) -> PartitionRegistration:
    """A partition after a PartitionChangeRecord. A record with a leader, even the same one, starts a new
    leader epoch."""
    leader, leader_epoch = old.leader, old.leader_epoch
    if record.leader != r.NO_LEADER_CHANGE:
        leader, leader_epoch = record.leader, old.leader_epoch + 1
    replicas = old.replicas if record.replicas is None else tuple(record.replicas)
    isr = old.isr if record.isr is None else tuple(record.isr)
    if record.directories is not None:
        directories = tuple(record.directories)
    elif record.replicas is None or not old.directories:
        directories = old.directories
    else:
        raise ReplayError("replicas change without their directories")
    recovery = record.leader_recovery_state
    assert leader == NO_LEADER or leader in replicas, f"leader {leader} is not among {replicas}"
    return PartitionRegistration(
        replicas=replicas,
        isr=replicas if isr == replicas else isr,
        leader=leader,
        leader_epoch=leader_epoch,
        partition_epoch=old.partition_epoch + 1,
        adding=old.adding if record.adding_replicas is None else tuple(record.adding_replicas),
        removing=old.removing if record.removing_replicas is None else tuple(record.removing_replicas),
        elr=_or(record.eligible_leader_replicas, old.elr),
        last_known_elr=_or(record.last_known_elr, old.last_known_elr),
        directories=directories,
        leader_recovery_state=old.leader_recovery_state if recovery == NO_RECOVERY_CHANGE else recovery,
    )


def _or(value: Iterable[int] | None, old: tuple[int, ...]) -> tuple[int, ...]:
    return old if value is None else tuple(value)


def _endpoints(endpoints: Iterable[Any]) -> dict[str, Endpoint]:
    return {e.name: Endpoint(e.host, e.port, e.security_protocol) for e in endpoints}


def _features(features: Iterable[Any]) -> dict[str, VersionRange]:
    return {f.name: VersionRange(f.min_supported_version, f.max_supported_version) for f in features}


_IDENTITY: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    r.ClientQuotaRecord: lambda q: (
        "quota",
        frozenset((e.entity_type, e.entity_name) for e in q.entity),
        q.key,
    ),
    r.UserScramCredentialRecord: lambda s: ("scram", s.name, s.mechanism),
    r.RemoveUserScramCredentialRecord: lambda s: ("scram", s.name, s.mechanism),
    r.AccessControlEntryRecord: lambda a: ("acl", a.id),
    r.RemoveAccessControlEntryRecord: lambda a: ("acl", a.id),
    r.DelegationTokenRecord: lambda t: ("token", t.token_id),
    r.RemoveDelegationTokenRecord: lambda t: ("token", t.token_id),
    r.OpaqueRecord: lambda o: ("opaque", o.value),
}

_HANDLERS: dict[type, Callable[[ImageDraft, Any], None]] = {
    r.RegisterBrokerRecord: ImageDraft.register_broker,
    r.UnregisterBrokerRecord: ImageDraft.unregister_broker,
    r.TopicRecord: ImageDraft.topic,
    r.PartitionRecord: ImageDraft.partition,
    r.ConfigRecord: ImageDraft.config,
    r.PartitionChangeRecord: ImageDraft.partition_change,
    r.FenceBrokerRecord: ImageDraft.fence_broker,
    r.UnfenceBrokerRecord: ImageDraft.unfence_broker,
    r.RemoveTopicRecord: ImageDraft.remove_topic,
    r.FeatureLevelRecord: ImageDraft.feature_level,
    r.ProducerIdsRecord: ImageDraft.producer_ids,
    r.BrokerRegistrationChangeRecord: ImageDraft.broker_registration_change,
    r.NoOpRecord: ImageDraft.no_op,
    r.ZkMigrationStateRecord: ImageDraft.no_op,
    r.RegisterControllerRecord: ImageDraft.register_controller,
    r.ClearElrRecord: ImageDraft.clear_elr,
    r.ClientQuotaRecord: ImageDraft.keep,
    r.UserScramCredentialRecord: ImageDraft.keep,
    r.AccessControlEntryRecord: ImageDraft.keep,
    r.DelegationTokenRecord: ImageDraft.keep,
    r.OpaqueRecord: ImageDraft.keep,
    r.RemoveUserScramCredentialRecord: ImageDraft.drop,
    r.RemoveAccessControlEntryRecord: ImageDraft.drop,
    r.RemoveDelegationTokenRecord: ImageDraft.drop,
}
