"""A member with the classic protocol: JoinGroup, SyncGroup with the leader's assignment, Heartbeat."""

import struct
from collections.abc import Sequence
from typing import Any

from odradek.core.errors import ErrorCode
from odradek.core.types import TopicPartition
from odradek.sim.checkers.owners import SESSION_TIMEOUT_MS
from odradek.sim.workloads.consuming import Member
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

REBALANCE_TIMEOUT_MS = 5_000


class ClassicMember(Member):
    """See Member."""

    async def _join(self) -> None:
        types = request_types(ApiKey.JOIN_GROUP)
        subscription = encode_subscription([tp.topic for tp in self._partitions])
        joined = await self._caller.call(
            ApiKey.JOIN_GROUP,
            types.JoinGroupRequest(
                group_id=self._group,
                session_timeout=SESSION_TIMEOUT_MS,
                rebalance_timeout=REBALANCE_TIMEOUT_MS,
                member_id=self._member_id,
                protocol_type="consumer",
                protocols=[types.JoinGroupRequestProtocol(name="range", metadata=subscription)],
            ),
        )
        if joined.error_code in (ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.UNKNOWN_MEMBER_ID):
            self._member_id = joined.member_id if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED else ""
        self._check(ApiKey.JOIN_GROUP, joined.error_code)
        self._member_id = joined.member_id
        self._generation = joined.generation_id
        await self._sync(joined)

    async def _sync(self, joined: Any) -> None:
        types = request_types(ApiKey.SYNC_GROUP)
        assignments = []
        if joined.leader == self._member_id:
            members = [member.member_id for member in joined.members]
            for index, member_id in enumerate(members):
                share = [tp for i, tp in enumerate(self._partitions) if i % len(members) == index]
                assignments.append(
                    types.SyncGroupRequestAssignment(member_id=member_id, assignment=encode_assignment(share))
                )
        synced = await self._caller.call(
            ApiKey.SYNC_GROUP,
            types.SyncGroupRequest(
                group_id=self._group,
                generation_id=self._generation,
                member_id=self._member_id,
                protocol_type="consumer",
                protocol_name="range",
                assignments=assignments,
            ),
        )
        self._check(ApiKey.SYNC_GROUP, synced.error_code)
        self._positions.clear()
        await self._look_up_positions(decode_assignment(bytes(synced.assignment)))

    async def _heartbeat(self) -> None:
        types = request_types(ApiKey.HEARTBEAT)
        request = types.HeartbeatRequest(
            group_id=self._group, generation_id=self._generation, member_id=self._member_id
        )
        answer = await self._caller.call(ApiKey.HEARTBEAT, request)
        self._check(ApiKey.HEARTBEAT, answer.error_code)

    async def _leave(self) -> None:
        types = request_types(ApiKey.LEAVE_GROUP)
        identity = types.MemberIdentity(member_id=self._member_id, group_instance_id=None)
        request = types.LeaveGroupRequest(group_id=self._group, member_id=self._member_id, members=[identity])
        await self._caller.call(ApiKey.LEAVE_GROUP, request)
        self._member_id = ""


# ConsumerProtocolSubscription v0: version int16 | topics int32 of (int16 length, text) | user data int32 (-1)
# ConsumerProtocolAssignment v0: the same, with partitions int32 of int32 after each topic's text
def encode_subscription(topics: Sequence[str]) -> bytes:
    names = sorted(set(topics))
    return struct.pack(">hi", 0, len(names)) + b"".join(map(_text, names)) + struct.pack(">i", -1)


def encode_assignment(partitions: Sequence[TopicPartition]) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for tp in partitions:
        by_topic.setdefault(tp.topic, []).append(tp.partition)
    body = b"".join(
        _text(topic) + struct.pack(f">i{len(indexes)}i", len(indexes), *indexes)
        for topic, indexes in by_topic.items()
    )
    return struct.pack(">hi", 0, len(by_topic)) + body + struct.pack(">i", -1)


def decode_assignment(data: bytes) -> list[TopicPartition]:
    if not data:
        return []
    _, count = struct.unpack_from(">hi", data)
    position = 6
    partitions = []
    for _ in range(count):
        (length,) = struct.unpack_from(">h", data, position)
        topic = data[position + 2 : position + 2 + length].decode()
        position += 2 + length
        (indexes,) = struct.unpack_from(">i", data, position)
        partitions += [
            TopicPartition(topic, i) for i in struct.unpack_from(f">{indexes}i", data, position + 4)
        ]
        position += 4 + 4 * indexes
    return partitions


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">h", len(data)) + data
