"""AssignReplicasToDirs: a broker with several directories reports where its replicas are. Pure."""

from typing import TYPE_CHECKING
from uuid import UUID

from odradek.controller.brokers import leader_and_isr_changes, registered
from odradek.controller.result import ControllerResult
from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.directories import directory_of, works
from odradek.metadata.image import DIR_UNASSIGNED, PartitionRegistration, TopicImage
from odradek.metadata.records import MetadataRecord, PartitionChangeRecord
from odradek.runtime.slices import STEP, Paced
from odradek.wire import responses

if TYPE_CHECKING:
    from odradek.controller.controller import Controller
    from odradek.wire.requests.assign_replicas_to_dirs import AssignReplicasToDirsRequest


def assign_replicas_to_dirs(
    c: "Controller", request: "AssignReplicasToDirsRequest", now_ms: int, next_offset: int
) -> Paced[ControllerResult]:
    """A broker reports the directories of its replicas."""
    if not c.versions.has_directories:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "Directory assignment is not supported yet.")
    broker = registered(c, request.broker_id, request.broker_epoch)
    types = responses.assign_replicas_to_dirs
    records: list[MetadataRecord] = []
    lost: list[tuple[TopicImage, int, PartitionRegistration]] = []
    answers = []
    for directory in request.directories:
        topics = []
        for asked in directory.topics:
            partitions = []
            for entry in asked.partitions:
                index, code = entry.partition_index, ErrorCode.NONE
                try:
                    topic, partition = _find(c, asked.topic_id, index, broker.id)
                    records += _assign(topic, index, partition, broker.id, directory.id_)
                    if not works(broker.log_dirs, directory.id_) and broker.id in partition.isr:
                        lost.append((topic, index, partition))
                except KafkaError as e:
                    code = e.code
                partitions.append(types.PartitionData(partition_index=index, error_code=code))
                yield STEP
            topics.append(types.TopicData(topic_id=asked.topic_id, partitions=partitions))
        answers.append(types.DirectoryData(id_=directory.id_, topics=topics))
    records += yield from leader_and_isr_changes(c, lost, remove=broker.id)
    return ControllerResult(records, types.AssignReplicasToDirsResponse(directories=answers))


def _find(
    c: "Controller", topic_id: UUID, index: int, broker_id: int
) -> tuple[TopicImage, PartitionRegistration]:
    topic = c.image.topics_by_id.get(topic_id)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    partition = topic.partitions.get(index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if broker_id not in partition.replicas:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return topic, partition


def _assign(
    topic: TopicImage, index: int, partition: PartitionRegistration, broker_id: int, directory: UUID
) -> list[MetadataRecord]:
    if directory_of(partition, broker_id) == directory:
        return []
    directories = list(partition.directories or [DIR_UNASSIGNED] * len(partition.replicas))
    directories[partition.replicas.index(broker_id)] = directory
    return [PartitionChangeRecord(partition_id=index, topic_id=topic.id, directories=tuple(directories))]
