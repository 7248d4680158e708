"""ElectLeaders: elects the preferred replica, or with an unclean election any available one. Pure.

brokers.py elects leaders when brokers join or leave. elections.py has the rules.
"""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.controller.brokers import can_lead
from odradek.controller.elections import change_partition
from odradek.controller.result import MAX_RECORDS_PER_BATCH, TOO_MANY_RECORDS, ControllerResult
from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.image import PartitionRegistration, TopicImage
from odradek.metadata.records import NO_LEADER_CHANGE, MetadataRecord, PartitionChangeRecord
from odradek.runtime.slices import FEW, STEP, Paced
from odradek.wire import responses

if TYPE_CHECKING:
    from odradek.controller.controller import Controller
    from odradek.wire.requests.elect_leaders import ElectLeadersRequest

PREFERRED, UNCLEAN = 0, 1
_NOT_NEEDED = "Leader election not needed for topic partition."
_NO_PREFERRED = "The preferred leader was not available."
_NO_ELIGIBLE = "Eligible topic partition leaders are not available."


class _Asked(NamedTuple):
    topic: str
    partitions: list[int]


def elect_leaders(
    c: "Controller", request: "ElectLeadersRequest", now_ms: int, next_offset: int
) -> Paced[ControllerResult]:
    types = responses.elect_leaders
    asked_for_all = request.topic_partitions is None
    if not asked_for_all and not request.topic_partitions:
        return ControllerResult([], types.ElectLeadersResponse())
    asked: Any = _all(c) if asked_for_all else request.topic_partitions
    is_known = request.election_type in (PREFERRED, UNCLEAN)
    if asked_for_all and not is_known:
        asked = ()
    elected: dict[tuple[str, int], PartitionChangeRecord] = {}
    topics = []
    for row in asked:
        rows = []
        for index in row.partitions:
            yield STEP
            try:
                if not is_known:
                    raise _unknown_type(request.election_type)
                if (row.topic, index) not in elected:
                    elected[row.topic, index] = _elect(c, row.topic, index, request.election_type)
                code, message = ErrorCode.NONE, None
            except KafkaError as e:
                code, message = e.code, e.message
            if not (asked_for_all and code is ErrorCode.ELECTION_NOT_NEEDED):
                rows.append(types.PartitionResult(partition_id=index, error_code=code, error_message=message))
        topics.append(types.ReplicaElectionResult(topic=row.topic, partition_result=rows))
        yield FEW
    if len(elected) > MAX_RECORDS_PER_BATCH:
        topics = [] if asked_for_all else (yield from _refused(types, asked))
        code = ErrorCode.POLICY_VIOLATION
        return ControllerResult(
            [], types.ElectLeadersResponse(error_code=code, replica_election_results=topics)
        )
    code = ErrorCode.NONE if is_known else ErrorCode.INVALID_REQUEST
    records: list[MetadataRecord] = list(elected.values())
    return ControllerResult(
        records, types.ElectLeadersResponse(error_code=code, replica_election_results=topics)
    )


def _refused(types: Any, asked: Any) -> Paced[list[Any]]:
    """Kafka limits how much one request may change."""
    topics = []
    for row in asked:
        rows = []
        for index in row.partitions:
            rows.append(
                types.PartitionResult(
                    partition_id=index,
                    error_code=ErrorCode.POLICY_VIOLATION,
                    error_message=TOO_MANY_RECORDS,
                )
            )
            yield STEP
        topics.append(types.ReplicaElectionResult(topic=row.topic, partition_result=rows))
    return topics


def _all(c: "Controller") -> Iterator[_Asked]:
    for topic in c.image.topics_by_name.values():
        yield _Asked(topic.name, sorted(topic.partitions))


def _unknown_type(election_type: int) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {election_type}")


def _elect(c: "Controller", name: str, index: int, election_type: int) -> PartitionChangeRecord:
    """The record with a partition's new leader. Raises KafkaError if there is none."""
    topic = c.image.topics_by_name.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = topic.partitions.get(index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    if election_type == PREFERRED:
        return _elect_preferred(c, topic, index, partition)
    return _elect_unclean(c, topic, index, partition)


def _elect_preferred(
    c: "Controller", topic: TopicImage, index: int, partition: PartitionRegistration
) -> PartitionChangeRecord:
    preferred = partition.replicas[0]
    if partition.leader == preferred:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, _NOT_NEEDED)
    if preferred not in partition.isr or not can_lead(c, partition, preferred):
        raise KafkaError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, _NO_PREFERRED)
    return PartitionChangeRecord(partition_id=index, topic_id=topic.id, leader=preferred)


def _elect_unclean(
    c: "Controller", topic: TopicImage, index: int, partition: PartitionRegistration
) -> PartitionChangeRecord:
    if partition.has_leader:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, _NOT_NEEDED)
    rules = c.election_rules(topic.name, partial(can_lead, c, partition))
    rules = rules._replace(allow_unclean=True)
    record = change_partition(topic.id, index, partition, partition.isr, rules)
    if record is None or record.leader == NO_LEADER_CHANGE:
        raise KafkaError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, _NO_ELIGIBLE)
    return record
