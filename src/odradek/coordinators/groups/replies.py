"""The answers of a group shard. They have the field names of the wire, so that encoders can use them
directly."""

import uuid
from collections.abc import Sequence
from typing import TypeAlias

from odradek.coordinators.groups.offsets.offsets import CommittedOffset
from odradek.coordinators.plain import plain
from odradek.core.errors import ErrorCode
from odradek.core.types import NO_LEADER_EPOCH, NO_OFFSET, ZERO_UUID

NO_GENERATION = -1


@plain()
class JoinGroupResponseMember:
    member_id: str
    group_instance_id: str | None
    metadata: bytes


@plain(kw_only=True)
class JoinGroupResponse:
    error_code: int = ErrorCode.NONE
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: Sequence[JoinGroupResponseMember] = ()
    throttle_time: int = 0


@plain(kw_only=True)
class SyncGroupResponse:
    error_code: int = ErrorCode.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""
    throttle_time: int = 0


@plain()
class HeartbeatResponse:
    error_code: int = ErrorCode.NONE
    throttle_time: int = 0


@plain()
class LeaveGroupResponseMember:
    member_id: str
    group_instance_id: str | None
    error_code: int = ErrorCode.NONE


@plain()
class LeaveGroupResponse:
    error_code: int = ErrorCode.NONE
    members: Sequence[LeaveGroupResponseMember] = ()
    throttle_time: int = 0


@plain()
class FetchedPartition:
    """A partition without a committed offset, or with an error."""

    partition_index: int
    committed_offset: int = NO_OFFSET
    committed_leader_epoch: int = NO_LEADER_EPOCH
    metadata: str = ""
    error_code: int = ErrorCode.NONE


FetchedRow: TypeAlias = FetchedPartition | CommittedOffset


@plain()
class FetchedTopic:
    name: str
    partitions: Sequence[FetchedRow]
    topic_id: uuid.UUID = ZERO_UUID


@plain()
class ListedGroup:
    group_id: str
    protocol_type: str
    group_state: str
    group_type: str


@plain()
class DescribedGroupMember:
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes


@plain(kw_only=True)
class DescribedGroup:
    group_id: str
    error_code: int = ErrorCode.NONE
    error_message: str | None = None
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: Sequence[DescribedGroupMember] = ()
    authorized_operations: int = -(1 << 31)


@plain()
class HeartbeatPartitions:
    topic_id: uuid.UUID
    partitions: Sequence[int]


@plain()
class HeartbeatAssignment:
    topic_partitions: Sequence[HeartbeatPartitions]


@plain(kw_only=True)
class ConsumerGroupHeartbeatResponse:
    error_code: int = ErrorCode.NONE
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval: int = 0
    assignment: HeartbeatAssignment | None = None
    throttle_time: int = 0


@plain()
class DescribedPartitions:
    topic_id: uuid.UUID
    topic_name: str
    partitions: Sequence[int]


@plain()
class DescribedAssignment:
    topic_partitions: Sequence[DescribedPartitions]


@plain(kw_only=True)
class DescribedConsumer:
    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: Sequence[str]
    subscribed_topic_regex: str | None
    assignment: DescribedAssignment
    target_assignment: DescribedAssignment
    member_type: int


@plain(kw_only=True)
class DescribedConsumerGroup:
    group_id: str
    error_code: int = ErrorCode.NONE
    error_message: str | None = None
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: Sequence[DescribedConsumer] = ()
    authorized_operations: int = -(1 << 31)
