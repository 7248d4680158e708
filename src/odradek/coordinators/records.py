"""The records of __consumer_offsets and __transaction_state, as Apache Kafka 4.3 writes them.

A key is an int16 type and a body. A value is an int16 version and a body. A null value deletes the key. The
shards replay the records.
"""

import struct
from collections.abc import Sequence
from functools import cache
from typing import ClassVar
from uuid import UUID

from odradek.core.errors import ProtocolError
from odradek.core.types import ZERO_UUID, Buffer
from odradek.runtime.slices import Paced
from odradek.wire.codec import SlicedDecoder, SlicedEncoder
from odradek.wire.layout import Layout, of

_PREFIX = struct.Struct(">h")


class CoordinatorKey(Layout):
    """Base class of the keys. `type` is unique within a topic."""

    type: ClassVar[int]


class CoordinatorValue(Layout):
    """Base class of the values. `written_version` is the version that Apache Kafka 4.3 writes."""

    written_version: ClassVar[int]


class OffsetCommitKey(CoordinatorKey, versions=(0, 1)):
    """Type 0 is the same key as written by very old brokers."""

    type = 1
    group: str = of("string")
    topic: str = of("string")
    partition: int = of("int32")


class OffsetCommitValue(CoordinatorValue, versions=(0, 4), flexible_from=4):
    written_version = 4
    offset: int = of("int64")
    leader_epoch: int = of("int32", since=3, default=-1)
    metadata: str = of("string")
    commit_timestamp: int = of("int64")
    expire_timestamp: int = of("int64", since=1, until=1, default=-1)
    topic_id: UUID = of("uuid", since=4, tag=0, default=ZERO_UUID)


class GroupMetadataKey(CoordinatorKey, versions=(2, 2)):
    type = 2
    group: str = of("string")


class MemberMetadata(Layout):
    member_id: str = of("string")
    group_instance_id: str | None = of("string", since=3, null_from=3, default=None)
    client_id: str = of("string")
    client_host: str = of("string")
    rebalance_timeout: int = of("int32", since=1)
    session_timeout: int = of("int32")
    subscription: bytes = of("bytes")
    assignment: bytes = of("bytes")


class GroupMetadataValue(CoordinatorValue, versions=(0, 4), flexible_from=4):
    written_version = 3
    protocol_type: str = of("string")
    generation: int = of("int32")
    protocol: str | None = of("string", null_from=0)
    leader: str | None = of("string", null_from=0)
    current_state_timestamp: int = of("int64", since=2, default=-1)
    members: Sequence[MemberMetadata] = of(MemberMetadata, array=True)


class ConsumerGroupMetadataKey(CoordinatorKey, versions=(3, 3)):
    type = 3
    group_id: str = of("string")


class ConsumerGroupMetadataValue(CoordinatorValue, versions=(0, 0), flexible_from=0):
    written_version = 0
    epoch: int = of("int32")
    metadata_hash: int = of("int64", tag=0, default=0)


class ConsumerGroupPartitionMetadataKey(CoordinatorKey, versions=(4, 4)):
    type = 4
    group_id: str = of("string")


class PartitionRacks(Layout):
    partition: int = of("int32")
    racks: Sequence[str] = of("string", array=True)


class TopicMetadata(Layout):
    topic_id: UUID = of("uuid")
    topic_name: str = of("string")
    num_partitions: int = of("int32")
    partition_metadata: Sequence[PartitionRacks] = of(PartitionRacks, array=True)


class ConsumerGroupPartitionMetadataValue(CoordinatorValue, versions=(0, 0), flexible_from=0):
    """Written by Kafka 4.0 and before."""

    written_version = 0
    topics: Sequence[TopicMetadata] = of(TopicMetadata, array=True)


class ConsumerGroupMemberMetadataKey(CoordinatorKey, versions=(5, 5)):
    type = 5
    group_id: str = of("string")
    member_id: str = of("string")


class ClassicProtocol(Layout):
    name: str = of("string")
    metadata: bytes = of("bytes")


class ClassicMemberMetadata(Layout):
    session_timeout: int = of("int32")
    supported_protocols: Sequence[ClassicProtocol] = of(ClassicProtocol, array=True)


class ConsumerGroupMemberMetadataValue(CoordinatorValue, versions=(0, 0), flexible_from=0):
    written_version = 0
    instance_id: str | None = of("string", null_from=0, default=None)
    rack_id: str | None = of("string", null_from=0, default=None)
    client_id: str = of("string")
    client_host: str = of("string")
    subscribed_topic_names: Sequence[str] = of("string", array=True)
    subscribed_topic_regex: str | None = of("string", null_from=0, default=None)
    rebalance_timeout: int = of("int32", default=-1)
    server_assignor: str | None = of("string", null_from=0, default=None)
    classic_member_metadata: ClassicMemberMetadata | None = of(
        ClassicMemberMetadata, tag=0, null_from=0, default=None
    )


class ConsumerGroupTargetAssignmentMetadataKey(CoordinatorKey, versions=(6, 6)):
    type = 6
    group_id: str = of("string")


class ConsumerGroupTargetAssignmentMetadataValue(CoordinatorValue, versions=(0, 0), flexible_from=0):
    written_version = 0
    assignment_epoch: int = of("int32")
    assignment_timestamp: int = of("int64", tag=0, default=0)


class ConsumerGroupTargetAssignmentMemberKey(CoordinatorKey, versions=(7, 7)):
    type = 7
    group_id: str = of("string")
    member_id: str = of("string")


class TargetTopicPartitions(Layout):
    topic_id: UUID = of("uuid")
    partitions: Sequence[int] = of("int32", array=True)


class ConsumerGroupTargetAssignmentMemberValue(CoordinatorValue, versions=(0, 0), flexible_from=0):
    written_version = 0
    topic_partitions: Sequence[TargetTopicPartitions] = of(TargetTopicPartitions, array=True)


class ConsumerGroupCurrentMemberAssignmentKey(CoordinatorKey, versions=(8, 8)):
    type = 8
    group_id: str = of("string")
    member_id: str = of("string")


class CurrentTopicPartitions(Layout):
    topic_id: UUID = of("uuid")
    partitions: Sequence[int] = of("int32", array=True)
    assignment_epochs: Sequence[int] | None = of("int32", array=True, tag=0, null_from=0, default=None)


class ConsumerGroupCurrentMemberAssignmentValue(CoordinatorValue, versions=(0, 0), flexible_from=0):
    written_version = 0
    member_epoch: int = of("int32")
    previous_member_epoch: int = of("int32")
    state: int = of("int8")
    assigned_partitions: Sequence[CurrentTopicPartitions] = of(CurrentTopicPartitions, array=True)
    partitions_pending_revocation: Sequence[CurrentTopicPartitions] = of(CurrentTopicPartitions, array=True)


class ConsumerGroupRegularExpressionKey(CoordinatorKey, versions=(16, 16)):
    type = 16
    group_id: str = of("string")
    regular_expression: str = of("string")


class ConsumerGroupRegularExpressionValue(CoordinatorValue, versions=(0, 0), flexible_from=0):
    written_version = 0
    topics: Sequence[str] = of("string", array=True)
    version: int = of("int64")
    timestamp: int = of("int64")


class TransactionLogKey(CoordinatorKey, versions=(0, 0)):
    type = 0
    transactional_id: str = of("string")


class TransactionPartitions(Layout):
    topic: str = of("string")
    partition_ids: Sequence[int] = of("int32", array=True)


class TransactionLogValue(CoordinatorValue, versions=(0, 1), flexible_from=1):
    written_version = 1
    producer_id: int = of("int64")
    producer_epoch: int = of("int16")
    transaction_timeout_ms: int = of("int32")
    transaction_status: int = of("int8")
    transaction_partitions: Sequence[TransactionPartitions] | None = of(
        TransactionPartitions, array=True, null_from=0
    )
    transaction_last_update_timestamp_ms: int = of("int64")
    transaction_start_timestamp_ms: int = of("int64")
    previous_producer_id: int = of("int64", since=1, tag=0, default=-1)
    next_producer_id: int = of("int64", since=1, tag=1, default=-1)
    client_transaction_version: int = of("int16", since=1, tag=2, default=0)
    next_producer_epoch: int = of("int16", since=1, tag=3, default=-1)


Pair = tuple[type[CoordinatorKey], type[CoordinatorValue]]

GROUP_RECORDS: dict[int, Pair] = {
    0: (OffsetCommitKey, OffsetCommitValue),
    1: (OffsetCommitKey, OffsetCommitValue),
    2: (GroupMetadataKey, GroupMetadataValue),
    3: (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    4: (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
    5: (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    6: (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    7: (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    8: (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    16: (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
}
"""The records of __consumer_offsets by their type."""

TRANSACTION_RECORDS: dict[int, Pair] = {0: (TransactionLogKey, TransactionLogValue)}
"""The records of __transaction_state by their type."""


def encode_key(key: CoordinatorKey) -> bytes:
    return _PREFIX.pack(key.type) + key.codec.encoder(key.type)(key)


def encode_value(value: CoordinatorValue, version: int | None = None) -> bytes:
    if version is None:
        version = value.written_version
    return _PREFIX.pack(version) + value.codec.encoder(version)(value)


def encode_value_in_slices(value: CoordinatorValue, version: int) -> Paced[bytes]:
    pieces = yield from _sliced_encoder(type(value), version)(value)
    return b"".join((_PREFIX.pack(version), *pieces))


def decode_value_in_slices(value_type: type[CoordinatorValue], value: Buffer) -> Paced[CoordinatorValue]:
    decoded: CoordinatorValue
    decoded, _ = yield from _sliced_decoder(value_type, _prefix(value))(value, 2)
    return decoded


@cache
def _sliced_encoder(value_type: type[CoordinatorValue], version: int) -> SlicedEncoder:
    return value_type.codec.sliced_encoder(version)


@cache
def _sliced_decoder(value_type: type[CoordinatorValue], version: int) -> SlicedDecoder:
    return value_type.codec.sliced_decoder(version)


def decode_group_record(
    key: Buffer, value: Buffer | None
) -> tuple[CoordinatorKey, CoordinatorValue | None] | None:
    """A record of __consumer_offsets; None for a type of a newer or unsupported kind of group."""
    return _decode(GROUP_RECORDS, key, value)


def decode_transaction_record(
    key: Buffer, value: Buffer | None
) -> tuple[CoordinatorKey, CoordinatorValue | None] | None:
    """A record of __transaction_state; None for an unknown type."""
    return _decode(TRANSACTION_RECORDS, key, value)


def _decode(
    types: dict[int, Pair], key: Buffer, value: Buffer | None
) -> tuple[CoordinatorKey, CoordinatorValue | None] | None:
    type_ = _prefix(key)
    pair = types.get(type_)
    if pair is None:
        return None
    key_type, value_type = pair
    decoded_key, _ = key_type.codec.decoder(type_)(key, 2)
    if value is None:
        return decoded_key, None
    decoded_value, _ = value_type.codec.decoder(_prefix(value))(value, 2)
    return decoded_key, decoded_value


def _prefix(data: Buffer) -> int:
    if len(data) < 2:
        raise ProtocolError("a coordinator record is truncated")
    prefix: int = _PREFIX.unpack_from(data)[0]
    return prefix
