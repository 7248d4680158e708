"""AlterPartition: a leader proposes its partition's new ISR, the controller accepts or refuses it. Pure."""

from functools import partial
from typing import TYPE_CHECKING, Any

from odradek.controller.brokers import can_lead, registered
from odradek.controller.elections import change_partition
from odradek.controller.result import ControllerResult
from odradek.core.errors import ErrorCode
from odradek.core.types import ZERO_UUID
from odradek.metadata.draft import merge
from odradek.metadata.image import RECOVERED, RECOVERING, PartitionRegistration, TopicImage
from odradek.metadata.records import MetadataRecord
from odradek.wire import responses

if TYPE_CHECKING:
    from odradek.controller.controller import Controller
    from odradek.wire.requests.alter_partition import AlterPartitionRequest

_ANY_EPOCH = -1


def alter_partition(
    c: "Controller", request: "AlterPartitionRequest", now_ms: int, next_offset: int
) -> ControllerResult:
    registered(c, request.broker_id, request.broker_epoch)
    types = responses.alter_partition
    records: list[MetadataRecord] = []
    topics = []
    for asked in request.topics:
        topic = c.image.topics_by_id.get(asked.topic_id or ZERO_UUID)
        answers = [_alter(c, types, request.broker_id, topic, p, records) for p in asked.partitions]
        topics.append(types.TopicData(topic_id=asked.topic_id, partitions=answers))
    return ControllerResult(records, types.AlterPartitionResponse(topics=topics))


def _alter(
    c: "Controller",
    types: Any,
    leader: int,
    topic: TopicImage | None,
    asked: Any,
    records: list[MetadataRecord],
) -> Any:
    index = asked.partition_index
    if topic is None:
        return types.PartitionData(partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_ID)
    partition = topic.partitions.get(index)
    if partition is None:
        return types.PartitionData(partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    code = _check(c, leader, partition, asked)
    if code is not ErrorCode.NONE:
        return types.PartitionData(partition_index=index, error_code=code)

    isr = tuple(member.broker_id for member in asked.new_isr_with_epochs)
    rules = c.election_rules(topic.name, partial(can_lead, c, partition))
    record = change_partition(
        topic.id, index, partition, isr, rules, leader_recovery_state=asked.leader_recovery_state
    )
    if record is not None:
        records.append(record)
        partition = merge(partition, record)
        if partition.leader != leader:
            return types.PartitionData(partition_index=index, error_code=ErrorCode.NEW_LEADER_ELECTED)
    return types.PartitionData(
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=partition.isr,
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def _check(c: "Controller", leader: int, partition: PartitionRegistration, asked: Any) -> ErrorCode:
    """A leader with newer epochs has talked to a newer controller. A leader with older epochs must catch
    up."""
    if asked.leader_epoch > partition.leader_epoch or asked.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if asked.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if leader != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if asked.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    isr = [member.broker_id for member in asked.new_isr_with_epochs]
    if not isr or leader not in isr or not set(isr) <= set(partition.replicas) or len(set(isr)) < len(isr):
        return ErrorCode.INVALID_REQUEST
    if asked.leader_recovery_state == RECOVERING and (
        len(isr) > 1 or partition.leader_recovery_state == RECOVERED
    ):
        return ErrorCode.INVALID_REQUEST
    for member in asked.new_isr_with_epochs:
        broker = c.image.brokers.get(member.broker_id)
        if broker is None or not broker.is_active:
            return ErrorCode.INELIGIBLE_REPLICA
        if member.broker_epoch not in (_ANY_EPOCH, broker.epoch):
            return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE
