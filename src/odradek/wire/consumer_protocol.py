"""Subscriptions and assignments of the classic consumer protocol: messages between the members of a group.

Each one is an int16 version and a body. A version newer than the newest known one is read as that one.
"""

import struct
from collections.abc import Sequence

from odradek.core.errors import ProtocolError
from odradek.core.types import Buffer
from odradek.wire.layout import Layout, of

PROTOCOL_TYPE = "consumer"
NEWEST_VERSION = 3
_VERSION = struct.Struct(">h")


class MemberPartitions(Layout):
    topic: str = of("string")
    partitions: Sequence[int] = of("int32", array=True)


class Subscription(Layout, versions=(0, NEWEST_VERSION)):
    topics: Sequence[str] = of("string", array=True)
    user_data: bytes | None = of("bytes", null_from=0, default=None)
    owned_partitions: Sequence[MemberPartitions] = of(MemberPartitions, array=True, since=1, default=())
    generation_id: int = of("int32", since=2, default=-1)
    rack_id: str | None = of("string", since=3, null_from=3, default=None)


class Assignment(Layout, versions=(0, NEWEST_VERSION)):
    assigned_partitions: Sequence[MemberPartitions] = of(MemberPartitions, array=True)
    user_data: bytes | None = of("bytes", null_from=0, default=None)


def encode_subscription(subscription: Subscription, version: int = NEWEST_VERSION) -> bytes:
    return _VERSION.pack(version) + Subscription.codec.encoder(version)(subscription)


def decode_subscription(data: Buffer) -> Subscription:
    subscription: Subscription
    subscription, _ = Subscription.codec.decoder(_version(data))(data, 2)
    return subscription


def encode_assignment(assignment: Assignment, version: int = NEWEST_VERSION) -> bytes:
    return _VERSION.pack(version) + Assignment.codec.encoder(version)(assignment)


def decode_assignment(data: Buffer) -> Assignment:
    """Empty bytes are an empty assignment: a coordinator sends them if the leader assigned nothing."""
    if not data:
        return Assignment(assigned_partitions=[])
    assignment: Assignment
    assignment, _ = Assignment.codec.decoder(_version(data))(data, 2)
    return assignment


def _version(data: Buffer) -> int:
    if len(data) < 2:
        raise ProtocolError("a member's metadata is truncated")
    version: int = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise ProtocolError(f"a member's metadata has the unsupported version {version}")
    return min(version, NEWEST_VERSION)
