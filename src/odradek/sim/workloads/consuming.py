"""Members of groups in a simulated workload: they join, read, commit, stop sending heartbeats, and return.

classic_member.py and modern_member.py have the two protocols.
"""

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from odradek.core.errors import ErrorCode
from odradek.core.types import TopicPartition
from odradek.records.batch import iter_batches, iter_records
from odradek.sim.checkers.history import History
from odradek.sim.checkers.owners import SESSION_TIMEOUT_MS
from odradek.sim.workloads.caller import Caller, NoAnswer
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

EARLIEST = -2

_REJOIN = frozenset(
    {
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.MEMBER_ID_REQUIRED,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)


class Rejoin(Exception):
    """The membership is over: join again."""


class Member(ABC):
    """One consumer of a group. It reads its assigned partitions and commits its offsets."""

    moves = False
    """Whether the group has members of both protocols: then it may be converted, and its generation
    restarts."""

    def __init__(
        self,
        name: str,
        group: str,
        caller: Caller,
        history: History,
        topic_ids: dict[str, UUID],
        partitions: Sequence[TopicPartition],
        rng: random.Random,
        *,
        broker_s: Callable[[], float],
    ) -> None:
        """`broker_s` reads the clock that the broker uses for sessions."""
        self._name = name
        self._group = group
        self._caller = caller
        self._history = history
        self._topic_ids = topic_ids
        self._names = {topic_id: topic for topic, topic_id in topic_ids.items()}
        self._partitions = partitions
        self._rng = rng
        self._broker_s = broker_s
        self._member_id = ""
        self._generation = -1
        """The group's generation in the classic protocol, the member epoch in the consumer protocol."""
        self._positions: dict[TopicPartition, int] = {}

    async def run(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < until:
            try:
                await self._find_coordinator()
                await self._join()
                while loop.time() < until:
                    await self._read()
                    await self._commit()
                    await self._heartbeat()
                    await self._misbehave()
            except (NoAnswer, Rejoin):
                await asyncio.sleep(self._rng.uniform(0.1, 0.5))
        self._caller.close()

    # -- the protocol's part

    @abstractmethod
    async def _join(self) -> None:
        """Join the group and get the assignment."""

    @abstractmethod
    async def _heartbeat(self) -> None:
        """Send a heartbeat. The answer may end the membership or change the assignment."""

    @abstractmethod
    async def _leave(self) -> None:
        """Leave the group."""

    # -- the same in both

    async def _find_coordinator(self) -> None:
        types = request_types(ApiKey.FIND_COORDINATOR)
        found = await self._caller.call(
            ApiKey.FIND_COORDINATOR, types.FindCoordinatorRequest(key_type=0, coordinator_keys=[self._group])
        )
        self._check(ApiKey.FIND_COORDINATOR, found.coordinators[0].error_code)

    async def _look_up_positions(self, partitions: Sequence[TopicPartition]) -> None:
        found = await fetch_committed(self._caller, self._group, partitions, self._topic_ids)
        self._positions.update({tp: max(found[tp], 0) for tp in partitions})

    async def _read(self) -> None:
        if not self._positions:
            await asyncio.sleep(0.3)
            return
        max_bytes = self._rng.choice((1, 1_000, 64_000))
        request = fetch_request(self._positions, self._topic_ids, max_wait_ms=300, max_bytes=max_bytes)
        response = await self._caller.call(ApiKey.FETCH, request)
        for topic in response.responses:
            name = topic.topic or self._names[topic.topic_id]
            for data in topic.partitions:
                tp = TopicPartition(name, data.partition_index)
                if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    self._positions[tp] = await earliest_offset(self._caller, tp)
                else:
                    self._take(tp, data)

    def _take(self, tp: TopicPartition, data: Any) -> None:
        self._check(ApiKey.FETCH, data.error_code)
        for offset, value in records_from(data.records, self._positions[tp]):
            self._history.record_read(tp, offset, value)
            self._positions[tp] = offset + 1

    async def _commit(self) -> None:
        if not self._positions or self._rng.random() < 0.5:
            return
        await self._caller.connect()
        types = request_types(ApiKey.OFFSET_COMMIT)
        commits = []
        topics = []
        generation = 0 if self.moves else self._generation
        for tp, offset in self._positions.items():
            commits.append(self._history.commit_sent(self._group, generation, tp, offset))
            partition = types.OffsetCommitRequestPartition(
                partition_index=tp.partition, committed_offset=offset, committed_metadata=""
            )
            topics.append(
                types.OffsetCommitRequestTopic(
                    name=tp.topic, topic_id=self._topic_ids[tp.topic], partitions=[partition]
                )
            )
        response = await self._caller.call(
            ApiKey.OFFSET_COMMIT,
            types.OffsetCommitRequest(
                group_id=self._group,
                generation_id_or_member_epoch=self._generation,
                member_id=self._member_id,
                topics=topics,
            ),
        )
        codes = [partition.error_code for topic in response.topics for partition in topic.partitions]
        for commit, code in zip(commits, codes, strict=True):
            if code == ErrorCode.NONE:
                self._history.commit_acknowledged(commit)
        for code in codes:
            self._check(ApiKey.OFFSET_COMMIT, code)

    async def _misbehave(self) -> None:
        """Sometimes leave, or send nothing for longer than a session timeout and then continue."""
        chance = self._rng.random()
        if chance < 0.02:
            await self._leave()
            raise Rejoin
        if chance < 0.04:
            await asyncio.sleep(SESSION_TIMEOUT_MS / 1000 * self._rng.uniform(0.5, 2))
            await self._commit()
        else:
            await asyncio.sleep(self._rng.uniform(0, 0.2))

    def _check(self, api_key: ApiKey, code: int) -> None:
        if code == ErrorCode.NONE:
            return
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = ""
        if code not in _REJOIN:
            self._history.check_retriable(api_key, code)
        raise Rejoin


async def fetch_committed(
    caller: Caller, group: str, partitions: Sequence[TopicPartition], topic_ids: dict[str, UUID]
) -> dict[TopicPartition, int]:
    """The committed offsets of a group; -1 for none. Raises NoAnswer if the broker is not ready."""
    types = request_types(ApiKey.OFFSET_FETCH)
    topics = [
        types.OffsetFetchRequestTopics(
            name=tp.topic, topic_id=topic_ids[tp.topic], partition_indexes=[tp.partition]
        )
        for tp in partitions
    ]
    response = await caller.call(
        ApiKey.OFFSET_FETCH,
        types.OffsetFetchRequest(
            groups=[types.OffsetFetchRequestGroup(group_id=group, topics=topics)], require_stable=True
        ),
    )
    (answer,) = response.groups
    if answer.error_code:
        raise NoAnswer(ErrorCode(answer.error_code).name)
    names = {topic_id: topic for topic, topic_id in topic_ids.items()}
    committed: dict[TopicPartition, int] = {}
    for topic in answer.topics:
        for partition in topic.partitions:
            if partition.error_code:
                raise NoAnswer(ErrorCode(partition.error_code).name)
            tp = TopicPartition(topic.name or names[topic.topic_id], partition.partition_index)
            committed[tp] = partition.committed_offset
    return committed


async def earliest_offset(caller: Caller, tp: TopicPartition) -> int:
    """The log start offset. Raises NoAnswer if the broker is not ready."""
    types = request_types(ApiKey.LIST_OFFSETS)
    partition = types.ListOffsetsPartition(partition_index=tp.partition, timestamp=EARLIEST)
    topic = types.ListOffsetsTopic(name=tp.topic, partitions=[partition])
    response = await caller.call(
        ApiKey.LIST_OFFSETS, types.ListOffsetsRequest(replica_id=-1, topics=[topic], timeout=5_000)
    )
    (answer,) = response.topics[0].partitions
    if answer.error_code:
        raise NoAnswer(ErrorCode(answer.error_code).name)
    offset: int = answer.offset
    return offset


def fetch_request(
    positions: dict[TopicPartition, int], topic_ids: dict[str, UUID], *, max_wait_ms: int, max_bytes: int
) -> Any:
    types = request_types(ApiKey.FETCH)
    topics = [
        types.FetchTopic(
            topic=tp.topic,
            topic_id=topic_ids[tp.topic],
            partitions=[
                types.FetchPartition(
                    partition=tp.partition, fetch_offset=offset, partition_max_bytes=max_bytes
                )
            ],
        )
        for tp, offset in positions.items()
    ]
    return types.FetchRequest(max_wait=max_wait_ms, min_bytes=1, max_bytes=4 * max_bytes, topics=topics)


def records_from(data: Any, first: int) -> list[tuple[int, bytes]]:
    """(offset, value) of the records of a fetch response, from an offset."""
    found: list[tuple[int, bytes]] = []
    if data:
        for batch in iter_batches(data):
            if not batch.is_control:
                found += [(r.offset, r.value or b"") for r in iter_records(data, batch) if r.offset >= first]
    return found
