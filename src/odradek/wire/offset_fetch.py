"""Hand-written encoder of OffsetFetch responses, v8 and above: a group may have thousands of partitions.

Most rows have no metadata and no error. Such a row is one `struct.pack`.
"""

import struct
from collections.abc import Sequence
from typing import Final, Protocol
from uuid import UUID

from odradek.runtime.slices import STEP, Paced, at_once
from odradek.wire.varint import encode_uvarint

FIRST_BY_HAND: Final = 8
ROWS_PER_STEP: Final = 64
_ROW_CALLS: Final = 2
_PARTS_PER_PIECE: Final = 256  # joined into one piece, because every piece has a cost for the connection
_FIRST_WITH_TOPIC_IDS: Final = 10

# partition int32, offset int64, leader epoch int32, length of the metadata plus one, error int16, no tags
_PLAIN_ROW: Final = struct.Struct(">iqiBhx").pack
_ROW_START: Final = struct.Struct(">iqi").pack
_ROW_END: Final = struct.Struct(">hx").pack


class Row(Protocol):
    @property
    def partition_index(self) -> int: ...
    @property
    def committed_offset(self) -> int: ...
    @property
    def committed_leader_epoch(self) -> int: ...
    @property
    def metadata(self) -> str | None: ...
    @property
    def error_code(self) -> int: ...


class Topic(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def topic_id(self) -> UUID: ...
    @property
    def partitions(self) -> Sequence[Row]: ...


class Group(Protocol):
    @property
    def group_id(self) -> str: ...
    @property
    def error_code(self) -> int: ...
    @property
    def topics(self) -> Sequence[Topic]: ...


class Response(Protocol):
    @property
    def throttle_time(self) -> int: ...
    @property
    def groups(self) -> Sequence[Group]: ...


def encode_response(version: int, response: Response) -> bytes:
    """The body of the response."""
    return b"".join(at_once(encode_in_slices(version, response)))


def encode_in_slices(version: int, response: Response) -> Paced[list[bytes]]:
    """The body in pieces."""
    assert version >= FIRST_BY_HAND
    done: list[bytes] = []
    out = [struct.pack(">i", response.throttle_time), encode_uvarint(len(response.groups) + 1)]
    for group in response.groups:
        out += (_text(group.group_id), encode_uvarint(len(group.topics) + 1))
        for topic in group.topics:
            out.append(topic.topic_id.bytes if version >= _FIRST_WITH_TOPIC_IDS else _text(topic.name))
            out.append(encode_uvarint(len(topic.partitions) + 1))
            for start in range(0, len(topic.partitions), ROWS_PER_STEP):
                rows = topic.partitions[start : start + ROWS_PER_STEP]
                out += map(_row, rows)
                if len(out) > _PARTS_PER_PIECE:
                    done.append(b"".join(out))
                    out.clear()
                yield _ROW_CALLS * len(rows)
            out.append(b"\0")
            yield STEP // 2
        out.append(_ROW_END(group.error_code))
        yield STEP
    out.append(b"\0")
    done.append(b"".join(out))
    return done


def _row(row: Row) -> bytes:
    """Most rows are tuples: they start with the first four fields and have no error."""
    metadata: str | None
    if isinstance(row, tuple):
        index, offset, leader_epoch, metadata = row[:4]
        code = 0
    else:
        index, offset, leader_epoch = row.partition_index, row.committed_offset, row.committed_leader_epoch
        metadata, code = row.metadata, row.error_code
    if metadata == "":
        return _PLAIN_ROW(index, offset, leader_epoch, 1, code)
    start = _ROW_START(index, offset, leader_epoch)
    return start + (b"\0" if metadata is None else _text(metadata)) + _ROW_END(code)


def _text(text: str) -> bytes:
    data = text.encode()
    return encode_uvarint(len(data) + 1) + data
