"""AlterPartitionReassignments answers as Apache if nothing has to move, and refuses everything else."""

from odradek.core.errors import ErrorCode
from odradek.metadata.records import PartitionChangeRecord
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.unit.controller.harness import Harness, log_dir, with_one_broker


def reassign(h: Harness, replicas: list[int] | None) -> tuple[int, str | None]:
    types = request_types(ApiKey.ALTER_PARTITION_REASSIGNMENTS)
    row = types.ReassignablePartition(partition_index=0, replicas=replicas)
    topic = types.ReassignableTopic(name="t", partitions=[row])
    answer = h.call(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS, types.AlterPartitionReassignmentsRequest(topics=[topic])
    )
    assert h.records == [], "nothing moves yet"
    (partition,) = answer.responses[0].partitions
    return partition.error_code, partition.error_message


def test_replicas_that_a_partition_has_are_taken_and_others_are_refused() -> None:
    h = with_one_broker()
    h.start_broker(2)
    h.create("t", assignments={0: [1]}, partitions=-1, replication_factor=-1)
    assert reassign(h, [1]) == (0, None)
    assert reassign(h, None) == (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)
    refused = (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "Odradek does not move partitions to other replicas yet.",
    )
    assert reassign(h, [2]) == refused
    assert reassign(h, [1, 2]) == refused


def test_a_reassignment_that_is_on_its_way_is_neither_called_off_nor_ended() -> None:
    h = with_one_broker()
    h.start_broker(2)
    h.create("t", assignments={0: [1]}, partitions=-1, replication_factor=-1)
    topic = h.image.topics_by_name["t"]
    record = PartitionChangeRecord(
        partition_id=0,
        topic_id=topic.id,
        replicas=[1, 2],
        adding_replicas=[2],
        directories=[log_dir(1), log_dir(2)],
    )
    h.apply([record])
    assert reassign(h, None)[0] == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert reassign(h, [1, 2])[0] == ErrorCode.INVALID_REPLICA_ASSIGNMENT
