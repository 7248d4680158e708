"""Converts an image to the records that rebuild it: the content of a snapshot. Pure. raft/ writes the
file."""

from collections.abc import Iterator

from odradek.metadata.image import (
    BrokerRegistration,
    ControllerRegistration,
    MetadataImage,
    PartitionRegistration,
    TopicImage,
)
from odradek.metadata.records import (
    BrokerEndpoint,
    BrokerFeature,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
)
from odradek.metadata.versions import METADATA_VERSION

NO_BROKER = -1


def image_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """The records in Kafka's order: features with metadata.version first, nodes, topics, configs, then the
    rest."""
    names = sorted(image.features, key=lambda name: (name != METADATA_VERSION, name))
    for name in names:
        yield FeatureLevelRecord(name=name, feature_level=image.features[name])
    for broker in image.brokers.values():
        yield _broker(broker)
    for controller in image.controllers.values():
        yield _controller(controller)
    for topic in image.topics_by_id.values():
        yield TopicRecord(name=topic.name, topic_id=topic.id)
        for index, partition in sorted(topic.partitions.items()):
            yield _partition(topic, index, partition)
    for (resource_type, resource_name), configs in image.configs.items():
        for name, value in configs.items():
            yield ConfigRecord(
                resource_type=resource_type, resource_name=resource_name, name=name, value=value
            )
    if image.next_producer_id:
        yield ProducerIdsRecord(broker_id=NO_BROKER, broker_epoch=-1, next_producer_id=image.next_producer_id)
    yield from image.kept.values()


def _broker(broker: BrokerRegistration) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker.id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=_endpoints(broker),
        features=_features(broker),
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=broker.log_dirs,
        cordoned_log_dirs=broker.cordoned_log_dirs,
    )


def _controller(controller: ControllerRegistration) -> RegisterControllerRecord:
    return RegisterControllerRecord(
        controller_id=controller.id,
        incarnation_id=controller.incarnation_id,
        end_points=_endpoints(controller),
        features=_features(controller),
    )


def _endpoints(node: BrokerRegistration | ControllerRegistration) -> list[BrokerEndpoint]:
    return [
        BrokerEndpoint(name=name, host=e.host, port=e.port, security_protocol=e.security_protocol)
        for name, e in node.endpoints.items()
    ]


def _features(node: BrokerRegistration | ControllerRegistration) -> list[BrokerFeature]:
    return [
        BrokerFeature(name=name, min_supported_version=levels.min, max_supported_version=levels.max)
        for name, levels in node.features.items()
    ]


def _partition(topic: TopicImage, index: int, partition: PartitionRegistration) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index,
        topic_id=topic.id,
        replicas=partition.replicas,
        isr=partition.isr,
        removing_replicas=partition.removing,
        adding_replicas=partition.adding,
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=partition.directories,
        eligible_leader_replicas=partition.elr or None,
        last_known_elr=partition.last_known_elr or None,
    )
