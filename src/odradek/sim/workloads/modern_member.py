"""A member with the consumer protocol (KIP-848): only heartbeats, and the broker assigns."""

from typing import Any
from uuid import UUID

from odradek.core.errors import ErrorCode
from odradek.core.types import GROUP_METADATA_TOPIC, TopicPartition
from odradek.sim.checkers.owners import SESSION_TIMEOUT_MS
from odradek.sim.workloads.consuming import Member, Rejoin
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

REBALANCE_TIMEOUT_MS = SESSION_TIMEOUT_MS + 1_000
"""Longer than a session, so that only the end of a session removes a partition: see owners.py."""
FIRST_VERSIONS = {ApiKey.OFFSET_COMMIT: 9}
"""Older versions have no member epoch."""
_OVER = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)
_JOINING, _LEAVING = 0, -1


class ModernMember(Member):
    """See Member. Without an answer it repeats the heartbeat with the same epoch and all fields."""

    _era = 0
    """The era in which it joined."""
    _said_all = False
    """Whether the broker has received all fields: only then may a heartbeat omit some."""

    async def _join(self) -> None:
        if not self._member_id or self._generation <= _JOINING:
            self._history.owners.gone(self._group, self._name)
            self._positions.clear()
            self._member_id = self._member_id or str(UUID(int=self._rng.getrandbits(128)))
            self._generation, self._era = _JOINING, self._history.era
        self._said_all = False
        await self._heartbeat()

    async def _heartbeat(self) -> None:
        owners, era, asked = self._history.owners, self._history.era, self._broker_s()
        owners.keeps(self._group, self._name, set(self._positions))
        answer = await self._send(self._generation)
        if answer.error_code in _OVER or self._is_group_lost(answer.error_code):
            owners.gone(self._group, self._name)
            self._generation = _JOINING
            raise Rejoin
        self._check(ApiKey.CONSUMER_GROUP_HEARTBEAT, answer.error_code)
        self._generation = answer.member_epoch
        gained: set[TopicPartition] = set()
        if answer.assignment is not None:
            assigned = {
                TopicPartition(self._names[topic.topic_id], index)
                for topic in answer.assignment.topic_partitions
                for index in topic.partitions
            }
            gained = assigned - self._positions.keys()
            self._positions = {tp: offset for tp, offset in self._positions.items() if tp in assigned}
        if era == self._history.era:
            has, now = gained | self._positions.keys(), self._broker_s()
            self._history.oddities += owners.given(self._group, self._name, has, asked=asked, now=now)
        if gained:
            await self._look_up_positions(sorted(gained))
        self._said_all = True

    def _is_group_lost(self, code: int) -> bool:
        """Whether the group may be lost: only by a power loss before a flush, or by a conversion."""
        unflushed = GROUP_METADATA_TOPIC not in self._history.flushed_topics
        lost = self.moves or (unflushed and self._era != self._history.era)
        return lost and code == ErrorCode.GROUP_ID_NOT_FOUND

    async def _leave(self) -> None:
        self._history.owners.gone(self._group, self._name)
        await self._send(_LEAVING)
        self._generation = _JOINING

    async def _send(self, epoch: int) -> Any:
        types = request_types(ApiKey.CONSUMER_GROUP_HEARTBEAT)
        all_of_it = not self._said_all
        by_topic: dict[str, list[int]] = {}
        for tp in self._positions:
            by_topic.setdefault(tp.topic, []).append(tp.partition)
        return await self._caller.call(
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            types.ConsumerGroupHeartbeatRequest(
                group_id=self._group,
                member_id=self._member_id,
                member_epoch=epoch,
                rebalance_timeout=REBALANCE_TIMEOUT_MS if all_of_it else -1,
                subscribed_topic_names=sorted({tp.topic for tp in self._partitions}) if all_of_it else None,
                topic_partitions=[
                    types.TopicPartitions(topic_id=self._topic_ids[topic], partitions=indexes)
                    for topic, indexes in by_topic.items()
                ],
            ),
        )
