"""A member of a classic consumer group: join, sync, heartbeat, leave; the leader shares out partitions.

The consumer reads the partitions.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from odradek.client.assignors import ASSIGNORS
from odradek.client.client import Client, check, may_pass
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import TopicPartition
from odradek.wire import consumer_protocol as protocol
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

OnAssigned = Callable[[list[TopicPartition]], Awaitable[None]]
OnRevoked = Callable[[], Awaitable[None]]

_METADATA_MAX_AGE_S = 30.0
_JOIN_GRACE_MS = 5_000

_MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class GroupMember:
    """`run` keeps the membership alive until cancelled; `on_revoked` is awaited when partitions are given up.

    Every rebalance is eager: all partitions are given up before the group is joined again.
    """

    def __init__(
        self,
        client: Client,
        group_id: str,
        topics: Sequence[str],
        on_assigned: OnAssigned,
        on_revoked: OnRevoked,
        *,
        group_instance_id: str | None = None,
        assignors: Sequence[str] = ("range", "roundrobin"),
        session_timeout_ms: int = 45_000,
        rebalance_timeout_ms: int = 60_000,
        heartbeat_interval_ms: int = 3_000,
    ) -> None:
        self.group_id = group_id
        self.topics = list(topics)
        self.group_instance_id = group_instance_id
        self.member_id = ""
        self.generation_id = -1
        self._client = client
        self._on_assigned = on_assigned
        self._on_revoked = on_revoked
        self._assignors = list(assignors)
        self._session_timeout_ms = session_timeout_ms
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._heartbeat_s = heartbeat_interval_ms / 1000
        self._channel = client.new_channel("group")
        self._assigned = False
        self._counts: dict[str, int] | None = None

    async def run(self) -> None:
        """Join and stay. Raises what a member cannot get over: fenced, refused, inconsistent protocols."""
        tries = 0
        while True:
            try:
                await self._join_and_stay()
            except OSError:
                pass
            except KafkaError as e:
                if e.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
                    self._forget_membership()
                elif e.code in _MOVED:
                    self._client.forget_coordinator(self.group_id)
                elif not may_pass(e) and e.code is not ErrorCode.REBALANCE_IN_PROGRESS:
                    raise
            if self._assigned:
                self._assigned = False
                tries = 0
            else:
                await asyncio.sleep(self._client.backoff_ms(tries) / 1000)
                tries += 1

    async def leave(self) -> None:
        """Tell the coordinator, unless the membership is static and meant to outlive this process."""
        self._client.close_channel(self._channel)
        if not self.member_id or self.group_instance_id is not None:
            return
        types = request_types(ApiKey.LEAVE_GROUP)
        member = types.MemberIdentity(member_id=self.member_id, reason="the consumer is being closed")
        request = types.LeaveGroupRequest(group_id=self.group_id, members=[member])
        self._forget_membership()
        try:
            response = await self._client.call_coordinator(self.group_id, ApiKey.LEAVE_GROUP, request)
            check(response.error_code, place=f"leaving group {self.group_id}")
        except (OSError, KafkaError) as e:
            # Leaving is a courtesy: a member that cannot be reached is dropped when its session ends.
            if not may_pass(e):
                raise

    def _forget_membership(self) -> None:
        self.member_id = ""
        self.generation_id = -1

    async def _join_and_stay(self) -> None:
        joined = await self._join()
        assignments = await self._share_out(joined) if joined.leader == joined.member_id else {}
        types = request_types(ApiKey.SYNC_GROUP)
        request = types.SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            protocol_type=protocol.PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=[
                types.SyncGroupRequestAssignment(member_id=member_id, assignment=data)
                for member_id, data in assignments.items()
            ],
        )
        response = await self._ask(ApiKey.SYNC_GROUP, request, self._rebalance_timeout_ms + _JOIN_GRACE_MS)
        assignment = protocol.decode_assignment(response.assignment)
        partitions = [
            TopicPartition(topic.topic, index)
            for topic in assignment.assigned_partitions
            for index in topic.partitions
        ]
        self._assigned = True
        await self._on_assigned(partitions)
        try:
            await self._stay()
        finally:
            await self._on_revoked()

    async def _join(self) -> Any:
        types = request_types(ApiKey.JOIN_GROUP)
        metadata = protocol.encode_subscription(protocol.Subscription(topics=self.topics))
        while True:
            request = types.JoinGroupRequest(
                group_id=self.group_id,
                session_timeout=self._session_timeout_ms,
                rebalance_timeout=self._rebalance_timeout_ms,
                member_id=self.member_id,
                group_instance_id=self.group_instance_id,
                protocol_type=protocol.PROTOCOL_TYPE,
                protocols=[
                    types.JoinGroupRequestProtocol(name=name, metadata=metadata) for name in self._assignors
                ],
            )
            timeout_ms = self._rebalance_timeout_ms + _JOIN_GRACE_MS
            response = await self._client.call_coordinator(
                self.group_id, ApiKey.JOIN_GROUP, request, channel=self._channel, timeout_ms=timeout_ms
            )
            if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = response.member_id
                continue
            check(response.error_code, place=f"joining group {self.group_id}")
            self.member_id = response.member_id
            self.generation_id = response.generation_id
            return response

    async def _share_out(self, joined: Any) -> dict[str, bytes]:
        """As leader: every member's assignment by the protocol that the group agreed on."""
        subscriptions = {
            member.member_id: list(protocol.decode_subscription(member.metadata).topics)
            for member in joined.members
        }
        topics = sorted({topic for wanted in subscriptions.values() for topic in wanted})
        partitions = await self._partitions(topics)
        self._counts = {topic: len(indexes) for topic, indexes in partitions.items()}
        if joined.skip_assignment:
            return {}
        shares = ASSIGNORS[joined.protocol_name](subscriptions, partitions)
        return {member_id: _encode(share) for member_id, share in shares.items()}

    async def _partitions(self, topics: Sequence[str]) -> dict[str, list[int]]:
        cluster = await self._client.refresh(topics)
        return {name: sorted(cluster.topics[name].partitions) for name in topics if name in cluster.topics}

    async def _stay(self) -> None:
        """Heartbeat until the coordinator calls for a rebalance, or the leader sees partitions come or go."""
        types = request_types(ApiKey.HEARTBEAT)
        loop = asyncio.get_running_loop()
        looked_at = loop.time()
        while True:
            await asyncio.sleep(self._heartbeat_s)
            if self._counts is not None and loop.time() - looked_at > _METADATA_MAX_AGE_S:
                looked_at = loop.time()
                found = await self._partitions(sorted(self._counts))
                if {name: len(indexes) for name, indexes in found.items()} != self._counts:
                    return
            request = types.HeartbeatRequest(
                group_id=self.group_id,
                generation_id=self.generation_id,
                member_id=self.member_id,
                group_instance_id=self.group_instance_id,
            )
            # A coordinator that moves takes the members with it.
            await self._client.retrying(partial(self._heartbeat, request), self._session_timeout_ms)

    async def _heartbeat(self, request: Any) -> None:
        try:
            await self._ask(ApiKey.HEARTBEAT, request)
        except KafkaError as e:
            if e.code in _MOVED:
                self._client.forget_coordinator(self.group_id)
            raise

    async def _ask(self, api_key: ApiKey, request: Any, timeout_ms: int | None = None) -> Any:
        response = await self._client.call_coordinator(
            self.group_id, api_key, request, channel=self._channel, timeout_ms=timeout_ms
        )
        check(response.error_code, place=f"group {self.group_id}")
        return response


def _encode(share: Sequence[TopicPartition]) -> bytes:
    topics: dict[str, list[int]] = {}
    for tp in share:
        topics.setdefault(tp.topic, []).append(tp.partition)
    partitions = [protocol.MemberPartitions(topic=topic, partitions=i) for topic, i in topics.items()]
    return protocol.encode_assignment(protocol.Assignment(assigned_partitions=partitions))
