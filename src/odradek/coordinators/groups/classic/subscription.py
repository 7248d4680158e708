"""The topics a member of the `consumer` protocol type subscribes to, read from what it tells the leader.

    ConsumerProtocolSubscription: int16 version, int32 count, count x (int16 length, topic), ...

Every version begins like this, so that only this much is read. Where it cannot be read the coordinator
does not know the topics and treats the group as subscribed to all of them.
"""

import struct

from odradek.coordinators.groups.commands import MemberProtocol

CONSUMER_PROTOCOL_TYPE = "consumer"

_HEAD = struct.Struct(">hi")
_LENGTH = struct.Struct(">h")


def subscribed_topics(metadata: bytes) -> list[str]:
    """Raises ValueError where the bytes are no subscription."""
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
        raise ValueError(f"subscription cut short: {e}") from e
    return topics


def metadata_of(protocols: tuple[MemberProtocol, ...], name: str | None) -> bytes:
    return next((p.metadata for p in protocols if p.name == name), b"")
