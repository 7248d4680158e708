"""Encodes and decodes the records of `__consumer_offsets`.

Records of offsets, classic groups and consumer groups are decoded. Records of share and streams groups stay
bytes: only the group id at the start of their keys is read.
"""

import struct
from typing import NamedTuple

from odradek.coordinators.records import (
    GROUP_RECORDS,
    CoordinatorKey,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_group_record,
    decode_value_in_slices,
    encode_key,
    encode_value,
    encode_value_in_slices,
)
from odradek.coordinators.shard import Encoded, Record
from odradek.core.errors import ProtocolError
from odradek.core.types import ZERO_UUID
from odradek.runtime.slices import Paced, gathered

# key of a share or streams group: record type int16, length of the group id int16, group id, ...
_KEY = struct.Struct(">hh")

# key of an offset commit: record type int16, group, topic, partition int32; strings with an int16 length
_COMMIT_KEY_HEAD = struct.Struct(">hh")
_COMMIT_KEY_TOPIC = struct.Struct(">h")
_COMMIT_KEY_TAIL = struct.Struct(">i")
# value of an offset commit, version 4: version int16, offset int64, leader_epoch int32, metadata (its length
# plus one as a varint before it), commit_timestamp int64, number of tagged fields, [tag 0, size 16, topic id]
_COMMIT_VALUE_HEAD = struct.Struct(">hqiB")
_COMMIT_VALUE_TAIL = struct.Struct(">qB")
_COMMIT_VERSION = 4
_TOPIC_ID_TAG = b"\0\x10"
_LONGEST_SHORT_METADATA = 126

_VERSION_WITH_EXPIRY = 1
GROUP_TYPES: dict[int, str] = {
    **dict.fromkeys((9, 10, 11, 12, 13, 14, 15), "share"),
    **dict.fromkeys((17, 18, 19, 20, 21, 22, 23), "streams"),
}
"""The kind of group for the record types that stay bytes."""


class ModernKey(NamedTuple):
    """A key of a share or streams group: record type, group, and all its bytes."""

    record_type: int
    group: str
    data: bytes


def encode(record: Record) -> Encoded:
    key, value = record
    if isinstance(key, ModernKey):
        return key.data, value
    if isinstance(key, OffsetCommitKey):
        return _encode_commit_key(key), None if value is None else _encode_commit_value(value)
    assert isinstance(key, CoordinatorKey)
    return encode_key(key), None if value is None else encode_value(value)


def encode_in_slices(record: Record) -> Paced[Encoded]:
    """`encode` in slices. A group's record may have thousands of members, a member's thousands of topics."""
    key, value = record
    if value is None or isinstance(key, ModernKey | OffsetCommitKey):
        return encode(record)
    encoded = yield from gathered(encode_value_in_slices(value, value.written_version))
    return encode_key(key), encoded


def _encode_commit_key(key: OffsetCommitKey) -> bytes:
    """Packed by hand, like the values: these are by far the most frequent records."""
    group, topic = key.group.encode(), key.topic.encode()
    return b"".join(
        (
            _COMMIT_KEY_HEAD.pack(key.type, len(group)),
            group,
            _COMMIT_KEY_TOPIC.pack(len(topic)),
            topic,
            _COMMIT_KEY_TAIL.pack(key.partition),
        )
    )


def _encode_commit_value(value: OffsetCommitValue) -> bytes:
    if value.expire_timestamp != -1:
        return encode_value(value, _VERSION_WITH_EXPIRY)  # the only version with this field
    metadata = value.metadata.encode()
    if len(metadata) > _LONGEST_SHORT_METADATA:
        return encode_value(value)
    has_topic_id = value.topic_id != ZERO_UUID
    encoded = b"".join(
        (
            _COMMIT_VALUE_HEAD.pack(_COMMIT_VERSION, value.offset, value.leader_epoch, len(metadata) + 1),
            metadata,
            _COMMIT_VALUE_TAIL.pack(value.commit_timestamp, has_topic_id),
        )
    )
    return encoded + _TOPIC_ID_TAG + value.topic_id.bytes if has_topic_id else encoded


def decode(key: bytes | None, value: bytes | None) -> Record | None:
    """None for a record type of a newer release. Raises ProtocolError."""
    if key is None or len(key) < _KEY.size:
        raise ProtocolError("a record of __consumer_offsets has no key")
    record_type, length = _KEY.unpack_from(key)
    if record_type not in GROUP_TYPES:
        return decode_group_record(key, value)
    if not 0 <= length <= len(key) - _KEY.size:
        raise ProtocolError(f"a key of {len(key)} bytes claims a group id of {length} bytes")
    return ModernKey(record_type, str(key[_KEY.size : _KEY.size + length], "utf-8"), bytes(key)), value


def decode_in_slices(key: bytes | None, value: bytes) -> Paced[Record | None]:
    """`decode` in slices, for a long value."""
    named = decode(key, None)
    if named is None or isinstance(named[0], ModernKey):
        return None if named is None else (named[0], value)
    _, value_type = GROUP_RECORDS[named[0].type]
    return named[0], (yield from gathered(decode_value_in_slices(value_type, value)))
