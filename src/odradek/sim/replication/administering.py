"""The administrator of replicated topics: creates, deletes, enlarges, trims and configures them."""

import random
from typing import Any, Final
from uuid import UUID

from odradek.core.errors import ErrorCode
from odradek.core.types import TopicPartition
from odradek.sim.replication.clients import Client
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

_TIMEOUT_MS: Final = 4_000
_NAMES: Final = tuple(f"short{number}" for number in range(3))
_SET: Final = 0
_TOPIC: Final = 2
_MOST_PARTITIONS: Final = 3


def draw_configs(rng: random.Random, replication_factor: int) -> dict[str, str]:
    """The configuration of a topic."""
    configs = {"min.insync.replicas": str(min(replication_factor, rng.choice((1, 2, 2))))}
    if rng.random() < 0.25:
        configs["flush.messages"] = "1"
    if rng.random() < 0.25:
        configs["unclean.leader.election.enable"] = "true"
    if rng.random() < 0.3:
        configs["segment.ms"] = "1500"
    return configs


def creatable(name: str, partitions: int, replication_factor: int, configs: dict[str, str]) -> Any:
    types = request_types(ApiKey.CREATE_TOPICS)
    return types.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        configs=[types.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )


class Administering(Client):
    def __init__(self, *args: Any, trimmed: list[TopicPartition]) -> None:
        super().__init__(*args)
        self._trimmed = trimmed
        self._known: dict[str, tuple[UUID, int]] = {}

    async def act(self) -> None:
        name = self._rng.choice(_NAMES)
        chance = self._rng.random()
        if chance < 0.3:
            await self._trim(self._rng.choice(self._trimmed))
        elif name not in self._known:
            await self._create(name)
        elif chance < 0.5:
            await self._enlarge(name)
        elif chance < 0.65:
            await self._configure(name)
        else:
            await self._delete(name)

    async def _create(self, name: str) -> None:
        types = request_types(ApiKey.CREATE_TOPICS)
        factor = self._rng.choice((1, 2, 3, 3))
        topic = creatable(name, 1, factor, draw_configs(self._rng, factor))
        request = types.CreateTopicsRequest(topics=[topic], timeout=_TIMEOUT_MS)
        answer = (await self._router.any().call(ApiKey.CREATE_TOPICS, request)).topics[0]
        if answer.error_code == ErrorCode.NONE:
            self.successes += 1
            self._known[name] = answer.topic_id, 1

    async def _delete(self, name: str) -> None:
        types = request_types(ApiKey.DELETE_TOPICS)
        topic_id, _ = self._known.pop(name)
        request = types.DeleteTopicsRequest(
            topics=[types.DeleteTopicState(name=None, topic_id=topic_id)], timeout=_TIMEOUT_MS
        )
        answer = (await self._router.any().call(ApiKey.DELETE_TOPICS, request)).responses[0]
        self.successes += answer.error_code == ErrorCode.NONE

    async def _enlarge(self, name: str) -> None:
        types = request_types(ApiKey.CREATE_PARTITIONS)
        topic_id, count = self._known[name]
        if count == _MOST_PARTITIONS:
            return
        topic = types.CreatePartitionsTopic(name=name, count=count + 1, assignments=None)
        request = types.CreatePartitionsRequest(topics=[topic], timeout=_TIMEOUT_MS, validate_only=False)
        answer = (await self._router.any().call(ApiKey.CREATE_PARTITIONS, request)).results[0]
        if answer.error_code == ErrorCode.NONE:
            self.successes += 1
            self._known[name] = topic_id, count + 1

    async def _configure(self, name: str) -> None:
        types = request_types(ApiKey.INCREMENTAL_ALTER_CONFIGS)
        config = types.AlterableConfig(
            name="max.message.bytes",
            config_operation=_SET,
            value=str(self._rng.randrange(900_000, 1_000_000)),
        )
        resource = types.AlterConfigsResource(resource_type=_TOPIC, resource_name=name, configs=[config])
        request = types.IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
        await self._router.any().call(ApiKey.INCREMENTAL_ALTER_CONFIGS, request)

    async def _trim(self, tp: TopicPartition) -> None:
        """Delete the older half of what is fixed."""
        led = await self._router.leader(tp)
        truth = self.truth(led, tp)
        if truth is None or not truth.fixed_end:
            return
        types = request_types(ApiKey.DELETE_RECORDS)
        partition = types.DeleteRecordsPartition(partition_index=tp.partition, offset=truth.fixed_end // 2)
        topic = types.DeleteRecordsTopic(name=tp.topic, partitions=[partition])
        request = types.DeleteRecordsRequest(topics=[topic], timeout=_TIMEOUT_MS)
        response = await self._router.of(led.leader).call(ApiKey.DELETE_RECORDS, request)
        if response.topics[0].partitions[0].error_code:
            self._router.forget(tp)
        else:
            self.successes += 1
