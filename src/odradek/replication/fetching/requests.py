"""The encoder of a Fetch request, versions 13 to 18, as a follower sends it. Pure.

It is written by hand: a follower sends one for every answer. Of all partitions of a session a request names
only those that changed.
"""

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from odradek.core.types import NO_LEADER_EPOCH
from odradek.replication.fetching.responses import PartitionKey
from odradek.wire.varint import encode_uvarint

_REPLICA_STATE_FROM = 15

# max_wait_ms i32, min_bytes i32, max_bytes i32, isolation_level i8, session_id i32, session_epoch i32; before
# v15 replica_id i32 comes first
_HEAD = Struct(">iiibii")
_HEAD_OLD = Struct(">iiiibii")
# partition i32, current_leader_epoch i32, fetch_offset i64, last_fetched_epoch i32, log_start_offset i64,
# partition_max_bytes i32, no tagged fields
_PARTITION = Struct(">iiqiqix")
_INDEX = Struct(">i")
# one tagged field: tag 1 of 13 bytes, replica_id i32, replica_epoch i64, no tagged fields
_REPLICA_STATE = Struct(">BBBiqx")
_NO_TAGS = b"\0"
_EMPTY_RACK = b"\1"


class FetchLimits(NamedTuple):
    """The settings replica.fetch.*."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    partition_max_bytes: int


class Fetching(NamedTuple):
    """The broker that fetches, at its broker epoch."""

    broker_id: int
    broker_epoch: int


def encode_partition(
    index: int, leader_epoch: int, fetch_offset: int, last_epoch: int, log_start: int, max_bytes: int
) -> bytes:
    """One partition of a request."""
    assert fetch_offset >= 0 and last_epoch >= NO_LEADER_EPOCH
    return _PARTITION.pack(index, leader_epoch, fetch_offset, last_epoch, log_start, max_bytes)


def encode_fetch_request(
    version: int,
    fetching: Fetching,
    limits: FetchLimits,
    session: tuple[int, int],
    topics: dict[bytes, list[bytes]],
    forgotten: Iterable[PartitionKey],
) -> bytes:
    """The body of a request. `session` is (id, epoch). `topics` has the encoded partitions of each topic."""
    head = (limits.max_wait_ms, limits.min_bytes, limits.max_bytes, 0, *session)
    if version < _REPLICA_STATE_FROM:
        parts = [_HEAD_OLD.pack(fetching.broker_id, *head)]
    else:
        parts = [_HEAD.pack(*head)]
    parts.append(encode_uvarint(len(topics) + 1))
    for topic_id, partitions in topics.items():
        parts.append(topic_id)
        parts.append(encode_uvarint(len(partitions) + 1))
        parts += partitions
        parts.append(_NO_TAGS)
    indexes: dict[bytes, list[bytes]] = {}
    for topic_id, index in forgotten:
        indexes.setdefault(topic_id, []).append(_INDEX.pack(index))
    parts.append(encode_uvarint(len(indexes) + 1))
    for topic_id, gone in indexes.items():
        parts += [topic_id, encode_uvarint(len(gone) + 1), *gone, _NO_TAGS]
    parts.append(_EMPTY_RACK)
    if version < _REPLICA_STATE_FROM:
        parts.append(_NO_TAGS)
    else:
        parts.append(_REPLICA_STATE.pack(1, 1, _REPLICA_STATE.size - 3, *fetching))
    return b"".join(parts)
