"""CreatePartitions, and the checks and records of new partitions. Pure."""

from collections import Counter
from typing import TYPE_CHECKING, Any
from uuid import UUID

from odradek.controller.placement import place_replicas
from odradek.controller.result import ControllerResult
from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.image import DIR_UNASSIGNED
from odradek.metadata.records import MetadataRecord, PartitionRecord
from odradek.runtime.slices import FEW, STEP, Paced
from odradek.wire import responses

if TYPE_CHECKING:
    from odradek.controller.controller import Controller
    from odradek.wire.requests.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic

MAX_PARTITIONS_PER_REQUEST = 10_000


def create_partitions(
    c: "Controller", request: "CreatePartitionsRequest", now_ms: int, next_offset: int
) -> Paced[ControllerResult]:
    types = responses.create_partitions
    times: Counter[str] = Counter()
    for topic in request.topics:
        times[topic.name] += 1
        yield FEW
    results: list[Any] = []
    records: list[MetadataRecord] = []
    total = 0
    for topic in request.topics:
        yield STEP
        if times[topic.name] > 1:
            continue
        try:
            new = yield from _create_partitions(c, topic)
            check_partition_total(total + len(new))
        except KafkaError as e:
            results.append(
                types.CreatePartitionsTopicResult(name=topic.name, error_code=e.code, error_message=e.message)
            )
            continue
        total += len(new)
        records += new
        results.append(types.CreatePartitionsTopicResult(name=topic.name))
    for name, count in times.items():
        yield STEP
        if count > 1:
            results.append(
                types.CreatePartitionsTopicResult(
                    name=name, error_code=ErrorCode.INVALID_REQUEST, error_message="Duplicate topic name."
                )
            )
    response = types.CreatePartitionsResponse(results=results)
    return ControllerResult([] if request.validate_only else records, response, is_atomic=True)


def _create_partitions(c: "Controller", request: "CreatePartitionsTopic") -> Paced[list[PartitionRecord]]:
    topic = c.image.topics_by_name.get(request.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    current = len(topic.partitions)
    if request.count == current:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {current} partition(s).")
    if request.count < current:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {current} partition(s); "
            f"{request.count} would not be an increase.",
        )
    additional = request.count - current
    check_partition_total(additional)
    replication_factor = len(topic.partitions[0].replicas)
    if request.assignments is None:
        rows = yield from place_replicas(c.image.brokers.values(), additional, replication_factor, c.rng)
    else:
        rows = []
        for assignment in request.assignments:
            rows.append(tuple(assignment.broker_ids))
            yield FEW
        if len(rows) != additional:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Attempted to add {additional} additional partition(s), but only {len(rows)} "
                "assignment(s) were specified.",
            )
        for i, row in enumerate(rows):
            yield STEP + FEW * len(row)
            check_assignment(c, current + i, row, replication_factor)
    records = []
    for i, row in enumerate(rows):
        records.append(partition_record(c, topic.id, current + i, row))
        yield STEP
    return records


def check_partition_total(count: int) -> None:
    """A request becomes one atomic batch, so its size is limited."""
    if count > MAX_PARTITIONS_PER_REQUEST:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def check_assignment(
    c: "Controller", index: int, replicas: tuple[int, ...], replication_factor: int | None
) -> None:
    """Raise INVALID_REPLICA_ASSIGNMENT for an invalid list of replicas."""
    problem = _assignment_problem(c, index, replicas, replication_factor)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)


def _assignment_problem(
    c: "Controller", index: int, replicas: tuple[int, ...], replication_factor: int | None
) -> str | None:
    if not replicas:
        return "The manual partition assignment includes an empty replica list."
    ordered = sorted(replicas)
    for i, broker_id in enumerate(ordered):
        if broker_id not in c.image.brokers:
            return (
                f"The manual partition assignment includes broker {broker_id}, but no such broker is "
                "registered."
            )
        if i and ordered[i - 1] == broker_id:
            return f"The manual partition assignment includes the broker {broker_id} more than once."
    if replication_factor is not None and len(replicas) != replication_factor:
        return (
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this "
            f"is not consistent with previous partitions, which have {replication_factor} replica(s)."
        )
    if not any(c.image.brokers[n].is_active for n in replicas):
        return (
            f"All brokers specified in the manual partition assignment for partition {index} are fenced or "
            "in controlled shutdown."
        )
    return None


def partition_record(
    c: "Controller", topic_id: UUID, index: int, replicas: tuple[int, ...]
) -> PartitionRecord:
    """A new partition. Its active replicas are the ISR, and the first of them leads."""
    isr = tuple(n for n in replicas if c.image.brokers[n].is_active)
    if not isr:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {len(replicas)} time(s): All brokers are currently fenced or "
            "in controlled shutdown.",
        )
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=replicas,
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=tuple(_default_directory(c, n) for n in replicas) if c.versions.has_directories else (),
    )


def _default_directory(c: "Controller", broker_id: int) -> UUID:
    """The directory of a broker that has only one. A broker with several chooses one and reports it later."""
    log_dirs = c.image.brokers[broker_id].log_dirs
    return log_dirs[0] if len(log_dirs) == 1 else DIR_UNASSIGNED
