"""AlterPartitionReassignments. Pure. Moving partitions is not supported yet."""

from typing import TYPE_CHECKING, Any

from odradek.controller.partitions import check_assignment
from odradek.controller.result import ControllerResult
from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.image import PartitionRegistration
from odradek.runtime.slices import FEW, STEP, Paced
from odradek.wire import responses

if TYPE_CHECKING:
    from odradek.controller.controller import Controller
    from odradek.wire.requests.alter_partition_reassignments import AlterPartitionReassignmentsRequest

_NOT_MOVED = "Odradek does not move partitions to other replicas yet."


def alter_partition_reassignments(
    c: "Controller", request: "AlterPartitionReassignmentsRequest", now_ms: int, next_offset: int
) -> Paced[ControllerResult]:
    types = responses.alter_partition_reassignments
    if not request.topics:
        return ControllerResult([], types.AlterPartitionReassignmentsResponse(error_message=""))
    topics = []
    for topic in request.topics:
        partitions = []
        for asked in topic.partitions:
            yield STEP + FEW * len(asked.replicas or ())
            code, message = ErrorCode.NONE, None
            try:
                _check(c, topic.name, asked.partition_index, asked.replicas)
            except KafkaError as e:
                code, message = e.code, e.message
            partitions.append(
                types.ReassignablePartitionResponse(
                    partition_index=asked.partition_index, error_code=code, error_message=message
                )
            )
        topics.append(types.ReassignableTopicResponse(name=topic.name, partitions=partitions))
        yield STEP
    response = types.AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, responses=topics
    )
    return ControllerResult([], response, is_atomic=True)


def _check(c: "Controller", name: str, index: int, replicas: Any) -> None:
    """Raise the error to answer, unless the partition already has these replicas."""
    topic = c.image.topics_by_name.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    partition = topic.partitions.get(index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
    if replicas is None:
        if not _is_reassigning(partition):
            raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    else:
        check_assignment(c, index, tuple(replicas), None)
        if tuple(replicas) == partition.replicas and not _is_reassigning(partition):
            return
    raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, _NOT_MOVED)


def _is_reassigning(partition: PartitionRegistration) -> bool:
    return bool(partition.adding or partition.removing)
