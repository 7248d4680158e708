"""AlterPartition: a leader proposes its partition's new ISR, the controller accepts or refuses it. Pure."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from odradek.controller.brokers import RulesByTopic, registered
from odradek.controller.elections import change_partition
from odradek.controller.result import ControllerResult
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import ZERO_UUID
from odradek.metadata.draft import merge
from odradek.metadata.image import RECOVERED, RECOVERING, PartitionRegistration, TopicImage
from odradek.metadata.records import MetadataRecord
from odradek.runtime.slices import FEW, STEP, Paced
from odradek.wire import responses

if TYPE_CHECKING:
    from odradek.controller.controller import Controller
    from odradek.wire.requests.alter_partition import AlterPartitionRequest, BrokerState, PartitionData

_ANY_EPOCH = -1
_ALTERED = 3 * STEP
"""The cost of one proposal, besides its members."""


def alter_partition(
    c: "Controller", request: "AlterPartitionRequest", now_ms: int, next_offset: int
) -> Paced[ControllerResult]:
    registered(c, request.broker_id, request.broker_epoch)
    types = responses.alter_partition
    altering = _Altering(c, request.broker_id)
    topics = []
    for asked in request.topics:
        topic = c.image.topics_by_id.get(asked.topic_id or ZERO_UUID)
        answers = []
        for proposal in asked.partitions:
            yield _ALTERED + FEW * len(proposal.new_isr_with_epochs)
            answers.append(_answer(types, altering, topic, proposal))
        topics.append(types.TopicData(topic_id=asked.topic_id, partitions=answers))
        yield FEW
    return ControllerResult(altering.records, types.AlterPartitionResponse(topics=topics))


def _answer(types: Any, altering: "_Altering", topic: TopicImage | None, proposal: "PartitionData") -> Any:
    index = proposal.partition_index
    try:
        partition = altering.alter(topic, proposal)
    except KafkaError as e:
        return types.PartitionData(partition_index=index, error_code=e.code)
    return types.PartitionData(
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=partition.isr,
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )


class _Altering:
    """One request of a leader. A second proposal for a partition meets what the first one changed."""

    __slots__ = ("_altered", "_c", "_leader", "_rules", "records")

    def __init__(self, c: "Controller", leader: int) -> None:
        self._c = c
        self._leader = leader
        self._rules = RulesByTopic(c)
        self._altered: dict[tuple[UUID, int], PartitionRegistration] = {}
        self.records: list[MetadataRecord] = []

    def alter(self, topic: TopicImage | None, proposal: "PartitionData") -> PartitionRegistration:
        """The partition with the proposed ISR. Raises KafkaError."""
        index, leader = proposal.partition_index, self._leader
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        partition = self._altered.get((topic.id, index)) or topic.partitions.get(index)
        if partition is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        _check_leader(leader, partition, proposal)
        isr = tuple(member.broker_id for member in proposal.new_isr_with_epochs)
        _check_isr(leader, partition, isr, proposal.leader_recovery_state)
        _check_members(self._c, proposal.new_isr_with_epochs)
        record = change_partition(
            topic.id,
            index,
            partition,
            isr,
            self._rules.of(topic, partition),
            leader_recovery_state=proposal.leader_recovery_state,
        )
        if record is None:
            return partition
        self.records.append(record)
        altered = self._altered[topic.id, index] = merge(partition, record)
        if altered.leader != leader:
            raise KafkaError(ErrorCode.NEW_LEADER_ELECTED)
        return altered


def _check_leader(leader: int, partition: PartitionRegistration, proposal: "PartitionData") -> None:
    """A leader with newer epochs has talked to a newer controller. A leader with older epochs must catch
    up."""
    if proposal.leader_epoch > partition.leader_epoch or proposal.partition_epoch > partition.partition_epoch:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    if proposal.leader_epoch < partition.leader_epoch:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
    if leader != partition.leader:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if proposal.partition_epoch < partition.partition_epoch:
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION)


def _check_isr(
    leader: int, partition: PartitionRegistration, isr: Collection[int], leader_recovery_state: int
) -> None:
    members = set(isr)
    if leader not in members or not members <= set(partition.replicas) or len(members) < len(isr):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if leader_recovery_state == RECOVERED:
        return
    if leader_recovery_state != RECOVERING or partition.leader_recovery_state == RECOVERED or len(isr) > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST)


def _check_members(c: "Controller", members: "Sequence[BrokerState]") -> None:
    for member in members:
        broker = c.image.brokers.get(member.broker_id)
        if broker is None or not broker.is_active:
            raise KafkaError(ErrorCode.INELIGIBLE_REPLICA)
        if member.broker_epoch not in (_ANY_EPOCH, broker.epoch):
            raise KafkaError(ErrorCode.INELIGIBLE_REPLICA)
