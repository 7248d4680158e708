"""The records of `__consumer_offsets` between bytes and what a group shard replays.

Offsets and classic groups are decoded. Records of the newer group protocols stay bytes: their keys all begin
with the group's id, which is all that is needed to keep them apart.
"""

import struct
from typing import NamedTuple

from odradek.coordinators.records import (
    CoordinatorKey,
    CoordinatorValue,
    OffsetCommitValue,
    decode_group_record,
    encode_key,
    encode_value,
)
from odradek.coordinators.shard import Encoded, Record
from odradek.core.errors import ProtocolError

# key of a newer group protocol: record type int16, length of the group id int16, group id, ...
_KEY = struct.Struct(">hh")

_LAST_CLASSIC_TYPE = 2
_VERSION_WITH_EXPIRY = 1
GROUP_TYPES: dict[int, str] = {
    **dict.fromkeys((3, 4, 5, 6, 7, 8, 16), "consumer"),
    **dict.fromkeys((9, 10, 11, 12, 13, 14, 15), "share"),
    **dict.fromkeys((17, 18, 19, 20, 21, 22, 23), "streams"),
}
"""Which kind of group a record type belongs to."""


class ModernKey(NamedTuple):
    """A key of a newer group protocol: its record type, its group, and the whole of it."""

    record_type: int
    group: str
    data: bytes


def encode(record: Record) -> Encoded:
    key, value = record
    if isinstance(key, ModernKey):
        return key.data, value
    assert isinstance(key, CoordinatorKey)
    if value is None:
        return encode_key(key), None
    assert isinstance(value, CoordinatorValue)
    version = None
    if isinstance(value, OffsetCommitValue) and value.expire_timestamp != -1:
        version = _VERSION_WITH_EXPIRY  # the only one with room for it
    return encode_key(key), encode_value(value, version)


def decode(key: bytes | None, value: bytes | None) -> Record | None:
    """None for a record type of a release newer than this one. Raises ProtocolError."""
    if key is None or len(key) < _KEY.size:
        raise ProtocolError("a record of __consumer_offsets without a key")
    record_type, length = _KEY.unpack_from(key)
    if record_type <= _LAST_CLASSIC_TYPE:
        return decode_group_record(key, value)
    if record_type not in GROUP_TYPES:
        return None
    if not 0 <= length <= len(key) - _KEY.size:
        raise ProtocolError(f"a group id of {length} bytes in a key of {len(key)}")
    return ModernKey(record_type, str(key[_KEY.size : _KEY.size + length], "utf-8"), bytes(key)), value
