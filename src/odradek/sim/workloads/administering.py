"""The administrator of a simulated workload: creates and deletes topics, and deletes records."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from odradek.core.errors import ErrorCode
from odradek.core.types import TopicPartition
from odradek.sim.checkers.history import History, Presence
from odradek.sim.workloads.caller import Caller, NoAnswer
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

NAMES = tuple(f"topic{number}" for number in range(6))


class Administrator:
    """Changes its own topics all the time, and sometimes advances the log start of the workload's
    partitions."""

    def __init__(
        self,
        caller: Caller,
        history: History,
        partitions: Sequence[TopicPartition],
        rng: random.Random,
        *,
        pace_seconds: float,
    ) -> None:
        self._caller = caller
        self._history = history
        self._partitions = partitions
        self._rng = rng
        self._pace_seconds = pace_seconds

    async def run(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < until:
            await asyncio.sleep(self._rng.expovariate(1 / self._pace_seconds))
            try:
                if self._rng.random() < 0.2:
                    await self._trim(self._rng.choice(self._partitions))
                else:
                    await self._change(self._rng.choice(NAMES))
            except NoAnswer:
                continue
        self._caller.close()

    async def _change(self, name: str) -> None:
        """Delete a topic that exists. Create one that does not exist or whose state is unknown."""
        if self._history.topics.get(name, (Presence.ABSENT,))[0] is Presence.PRESENT:
            await self._delete(name)
        else:
            await self._create(name)

    async def _create(self, name: str) -> None:
        types = request_types(ApiKey.CREATE_TOPICS)
        topic = types.CreatableTopic(name=name, num_partitions=2, replication_factor=1)
        self._history.topic_changes(name)
        response = await self._caller.call(
            ApiKey.CREATE_TOPICS, types.CreateTopicsRequest(topics=[topic], timeout=5_000)
        )
        code = response.topics[0].error_code
        if code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            self._history.topic_changed(name, Presence.PRESENT)
        else:
            self._history.check_retriable(ApiKey.CREATE_TOPICS, code)

    async def _delete(self, name: str) -> None:
        types = request_types(ApiKey.DELETE_TOPICS)
        self._history.topic_changes(name)
        request = types.DeleteTopicsRequest(
            topics=[types.DeleteTopicState(name=name)], topic_names=[name], timeout=5_000
        )
        response = await self._caller.call(ApiKey.DELETE_TOPICS, request)
        code = response.responses[0].error_code
        if code in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            self._history.topic_changed(name, Presence.ABSENT)
        else:
            self._history.check_retriable(ApiKey.DELETE_TOPICS, code)

    async def _trim(self, tp: TopicPartition) -> None:
        """Delete the older half of the acknowledged records."""
        offsets = sorted(self._history.acknowledged.get(tp, {}))
        if not offsets:
            return
        offset = offsets[len(offsets) // 2]
        self._history.trim_sent(tp, offset)
        types = request_types(ApiKey.DELETE_RECORDS)
        partition = types.DeleteRecordsPartition(partition_index=tp.partition, offset=offset)
        topic = types.DeleteRecordsTopic(name=tp.topic, partitions=[partition])
        response = await self._caller.call(
            ApiKey.DELETE_RECORDS, types.DeleteRecordsRequest(topics=[topic], timeout=5_000)
        )
        code = response.topics[0].partitions[0].error_code
        if code not in (ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE):
            self._history.check_retriable(ApiKey.DELETE_RECORDS, code)


async def present_topics(caller: Caller) -> dict[str, UUID]:
    """All topics of the broker, with their ids."""
    types = request_types(ApiKey.METADATA)
    response: Any = await caller.call(
        ApiKey.METADATA, types.MetadataRequest(topics=None, allow_auto_topic_creation=False), version=12
    )
    return {topic.name: topic.topic_id for topic in response.topics if not topic.is_internal}
