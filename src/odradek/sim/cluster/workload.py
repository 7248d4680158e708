"""The clients of a simulated cluster: they create and delete topics, and ask for producer ids.

Each asks one thing at a time, of any broker, and tells the checker what it was answered. Only a success is
held against the cluster: a controller that does not know yet that it is deposed may refuse for old reasons.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import UUID

from odradek.core.errors import ErrorCode
from odradek.core.types import ZERO_UUID
from odradek.sim.cluster.checks import Checker
from odradek.sim.workloads.caller import Caller, NoAnswer
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

NAMES: Final = tuple(f"topic{number}" for number in range(8))
FIRST_VERSIONS: Final = {ApiKey.CREATE_TOPICS: 7, ApiKey.DELETE_TOPICS: 6, ApiKey.METADATA: 12}
"""From these on topics have ids."""
Registered = Callable[[], Sequence[tuple[int, int]]]
"""Gives id and epoch of the registered brokers, as some node shows them."""
_TIMEOUT_MS: Final = 4_000
_MOVES: Final = 0.1


class TopicAdmin:
    """Creates topics under a few names, and deletes them again by their id."""

    def __init__(
        self,
        caller: Caller,
        checker: Checker,
        rng: random.Random,
        names: tuple[str, ...],
        pace_seconds: float,
    ) -> None:
        self._caller = caller
        self._checker = checker
        self._rng = rng
        self._names = names
        self._pace_seconds = pace_seconds
        self._known: dict[str, UUID] = {}

    async def run(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < until:
            await asyncio.sleep(self._rng.expovariate(1 / self._pace_seconds))
            try:
                await self._change(self._rng.choice(self._names))
            except NoAnswer:
                continue
            if self._rng.random() < _MOVES:
                self._caller.move_on()
        self._caller.close()

    async def _change(self, name: str) -> None:
        topic_id = self._known.get(name)
        if topic_id is not None:
            await self._delete(name, topic_id)
        elif await self.create(name) is ErrorCode.TOPIC_ALREADY_EXISTS:
            await self._find(name)

    async def create(self, name: str) -> ErrorCode:
        types = request_types(ApiKey.CREATE_TOPICS)
        topic = types.CreatableTopic(name=name, num_partitions=2, replication_factor=1)
        response = await self._caller.call(
            ApiKey.CREATE_TOPICS, types.CreateTopicsRequest(topics=[topic], timeout=_TIMEOUT_MS)
        )
        answer = response.topics[0]
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            self._known[name] = answer.topic_id
            self._checker.topic_created(answer.topic_id, name)
        elif code is ErrorCode.NOT_CONTROLLER:
            self._caller.move_on()
        return code

    async def _find(self, name: str) -> None:
        """Of a topic that exists although its creation was not answered."""
        types = request_types(ApiKey.METADATA)
        topic = types.MetadataRequestTopic(topic_id=ZERO_UUID, name=name)
        response = await self._caller.call(
            ApiKey.METADATA, types.MetadataRequest(topics=[topic], allow_auto_topic_creation=False)
        )
        found = response.topics[0]
        if not found.error_code:
            self._known[name] = found.topic_id

    async def _delete(self, name: str, topic_id: UUID) -> None:
        types = request_types(ApiKey.DELETE_TOPICS)
        del self._known[name]
        self._checker.topic_deletes(topic_id)
        request = types.DeleteTopicsRequest(
            topics=[types.DeleteTopicState(name=None, topic_id=topic_id)], timeout=_TIMEOUT_MS
        )
        response = await self._caller.call(ApiKey.DELETE_TOPICS, request)
        if response.responses[0].error_code == ErrorCode.NONE:
            self._checker.topic_deleted(topic_id, name)


class ProducerIdTaker:
    """Asks for a producer id again and again, as producers do at their start."""

    def __init__(
        self, name: str, caller: Caller, checker: Checker, rng: random.Random, pace_seconds: float
    ) -> None:
        self._name = name
        self._caller = caller
        self._checker = checker
        self._rng = rng
        self._pace_seconds = pace_seconds

    async def run(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        types = request_types(ApiKey.INIT_PRODUCER_ID)
        asked = 0
        while loop.time() < until:
            await asyncio.sleep(self._rng.expovariate(1 / self._pace_seconds))
            asked += 1
            request = types.InitProducerIdRequest(transactional_id=None, transaction_timeout=1_000)
            try:
                answer = await self._caller.call(ApiKey.INIT_PRODUCER_ID, request)
            except NoAnswer:
                continue
            if not answer.error_code:
                self._checker.producer_ids_given(answer.producer_id, 1, f"{self._name}#{asked}")
            if self._rng.random() < _MOVES:
                self._caller.move_on()
        self._caller.close()


class BlockTaker:
    """Asks controllers for blocks of producer ids, as brokers do: by the epoch of one that is registered."""

    def __init__(
        self,
        name: str,
        caller: Caller,
        checker: Checker,
        rng: random.Random,
        pace_seconds: float,
        registered: Registered,
    ) -> None:
        self._name = name
        self._caller = caller
        self._checker = checker
        self._rng = rng
        self._pace_seconds = pace_seconds
        self._registered = registered

    async def run(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        asked = 0
        while loop.time() < until:
            await asyncio.sleep(self._rng.expovariate(1 / self._pace_seconds))
            asked += 1
            try:
                await self._ask(f"{self._name}#{asked}")
            except NoAnswer:
                continue
        self._caller.close()

    async def _ask(self, label: str) -> None:
        brokers = self._registered()
        if not brokers:
            return
        broker_id, epoch = self._rng.choice(brokers)
        types = request_types(ApiKey.ALLOCATE_PRODUCER_IDS)
        request = types.AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch)
        answer: Any = await self._caller.call(ApiKey.ALLOCATE_PRODUCER_IDS, request)
        if not answer.error_code:
            self._checker.producer_ids_given(answer.producer_id_start, answer.producer_id_len, label)
        elif answer.error_code == ErrorCode.NOT_CONTROLLER:
            self._caller.move_on()
