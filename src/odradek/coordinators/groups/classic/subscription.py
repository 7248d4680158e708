"""Reads the subscribed topics from the metadata of a member with protocol type `consumer`.

    ConsumerProtocolSubscription: int16 version, int32 count, count x (int16 length, topic), ...

Every version starts like this, and only this part is read. If it cannot be read, the coordinator treats the
group as subscribed to all topics.
"""

import struct

from odradek.coordinators.groups.commands import MemberProtocol

CONSUMER_PROTOCOL_TYPE = "consumer"

_HEAD = struct.Struct(">hi")
_LENGTH = struct.Struct(">h")


def subscribed_topics(metadata: bytes) -> list[str]:
    """Raises ValueError if the bytes are not a subscription."""
    try:
        version, count = _HEAD.unpack_from(metadata)
        if version < 0 or count < 0:
            raise ValueError(f"subscription of version {version} with {count} topics")
        position = _HEAD.size
        topics = []
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(metadata, position)
            position += _LENGTH.size
            if length < 0 or position + length > len(metadata):
                raise ValueError(f"topic of {length} bytes at {position} of {len(metadata)}")
            topics.append(str(metadata[position : position + length], "utf-8"))
            position += length
    except struct.error as e:
        raise ValueError(f"subscription is truncated: {e}") from e
    return topics


def metadata_of(protocols: tuple[MemberProtocol, ...], name: str | None) -> bytes:
    return next((p.metadata for p in protocols if p.name == name), b"")
