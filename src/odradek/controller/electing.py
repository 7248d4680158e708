"""Elections that somebody asks for with ElectLeaders, and those of the clock. Pure.

A preferred election looks for the first replica, an unclean one for any. brokers.py elects leaders when
brokers join or leave. elections.py has the rules.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.controller.brokers import RulesByTopic
from odradek.controller.elections import Election, change_partition
from odradek.controller.result import MAX_RECORDS_PER_BATCH, TOO_MANY_RECORDS, ControllerResult
from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.image import PartitionRegistration, TopicImage
from odradek.metadata.records import MetadataRecord, PartitionChangeRecord
from odradek.runtime.slices import FEW, STEP, Paced
from odradek.wire import responses

if TYPE_CHECKING:
    from odradek.controller.controller import Controller
    from odradek.wire.requests.elect_leaders import ElectLeadersRequest

_ELECTIONS = {0: Election.PREFERRED, 1: Election.UNCLEAN}
MAX_ELECTIONS = 1000
"""How many leaders the clock changes at once, as in Kafka: what is left follows in the next decision."""
_ELECTED = 2 * STEP
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
    election = _ELECTIONS.get(request.election_type)
    is_known = election is not None
    if asked_for_all and not is_known:
        asked = ()
    rules = RulesByTopic(c)
    elected: dict[tuple[str, int], PartitionChangeRecord] = {}
    topics = []
    for row in asked:
        rows = []
        for index in row.partitions:
            yield STEP
            try:
                if election is None:
                    raise _unknown_type(request.election_type)
                if (row.topic, index) not in elected:
                    elected[row.topic, index] = _elect(c, rules, row.topic, index, election)
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


def _elect(
    c: "Controller", rules: RulesByTopic, name: str, index: int, election: Election
) -> PartitionChangeRecord:
    """The record with a partition's new leader. Raises KafkaError if there is none."""
    topic = c.image.topics_by_name.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = topic.partitions.get(index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    if not _is_needed(partition, election):
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, _NOT_NEEDED)
    record = _elected(rules, topic, index, partition, election)
    if record is None and election is Election.PREFERRED:
        raise KafkaError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, _NO_PREFERRED)
    if record is None:
        raise KafkaError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, _NO_ELIGIBLE)
    return record


def _is_needed(partition: PartitionRegistration, election: Election) -> bool:
    if election is Election.PREFERRED:
        return partition.leader != partition.replicas[0]
    return not partition.has_leader


def _elected(
    rules: RulesByTopic, topic: TopicImage, index: int, partition: PartitionRegistration, election: Election
) -> PartitionChangeRecord | None:
    asked = rules.of(topic, partition)._replace(election=election)
    return change_partition(topic.id, index, partition, partition.isr, asked)


def preferred_elections(c: "Controller") -> Paced[list[MetadataRecord]]:
    """Leads go back to the first replicas that can have them."""
    rules = RulesByTopic(c)
    records: list[MetadataRecord] = []
    for topic, index, partition in c.partitions():
        if len(records) == MAX_ELECTIONS:
            break
        if not _is_needed(partition, Election.PREFERRED):
            yield FEW
            continue
        record = _elected(rules, topic, index, partition, Election.PREFERRED)
        if record is not None:
            records.append(record)
        yield _ELECTED
    return records


def unclean_elections(c: "Controller") -> Paced[list[MetadataRecord]]:
    """Partitions without a leader get one, where their topic allows any replica to lead."""
    rules = RulesByTopic(c)
    records: list[MetadataRecord] = []
    for topic, index, partition in c.partitions():
        if len(records) == MAX_ELECTIONS:
            break
        if partition.has_leader:
            yield FEW
            continue
        if rules.of(topic, partition).election is Election.UNCLEAN:
            record = _elected(rules, topic, index, partition, Election.UNCLEAN)
            if record is not None:
                records.append(record)
        yield _ELECTED
    return records
