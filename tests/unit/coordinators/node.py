"""As much of a node as the group handlers need: two topics, a coordinator over logs in memory."""

import asyncio
import random
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from odradek.broker.dispatch import RequestContext, handler_of
from odradek.coordinators.groups.config import GroupConfig
from odradek.coordinators.groups.coordinator import GroupCoordinator
from odradek.core.errors import KafkaError
from odradek.core.types import GROUP_METADATA_TOPIC
from odradek.metadata.image import EMPTY_IMAGE, MetadataImage, PartitionRegistration, TopicImage
from odradek.runtime.reply import Reply
from odradek.runtime.slices import Slices
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import (
    request_decoder,
    request_encoder,
    request_types,
    response_decoder,
    response_encoder,
)
from tests.unit.coordinators.fake_log import FakeLog

PARTITIONS = 3
T_ID, U_ID, OFFSETS_ID = UUID(int=101), UUID(int=102), UUID(int=103)


def topic_image(name: str, topic_id: UUID, partitions: int, leader: int = 1) -> TopicImage:
    registration = PartitionRegistration((1,), (1,), leader, 0, 0)
    return TopicImage(name, topic_id, dict.fromkeys(range(partitions), registration))


class InternalTopics:
    """Creates `__consumer_offsets` when asked for, or fails."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self.error: KafkaError | None = None

    async def ensure(self, name: str) -> None:
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        assert name == GROUP_METADATA_TOPIC
        self._node.add_offsets_topic()


class Clock:
    def now_ms(self) -> int:
        return 1_700_000_000_000


class Node:
    def __init__(self, *, elected: bool = True, held: bool = False, **config: Any) -> None:
        config.setdefault("initial_rebalance_delay_ms", 0)
        self.slices = Slices()
        self.features = {"group.version": 1}
        self.groups = GroupCoordinator(
            GroupConfig(**config), Clock(), random.Random(7), lambda: PARTITIONS, self._image
        )
        broker = SimpleNamespace(id=1, fenced=False, endpoints={"PLAINTEXT": ("localhost", 9092, 0)})
        topics = [topic_image("t", T_ID, 2), topic_image("u", U_ID, 1)]
        image = SimpleNamespace(
            topics_by_name={t.name: t for t in topics},
            topics_by_id={t.id: t for t in topics},
            brokers={1: broker},
        )
        self.metadata = SimpleNamespace(image=image)
        self.internal_topics = InternalTopics(self)
        self.logs = [FakeLog(held=held) for _ in range(PARTITIONS)]
        if elected:
            self.add_offsets_topic()
            for index, log in enumerate(self.logs):
                self.groups.on_elected(index, log)

    def _image(self) -> MetadataImage:
        """What the coordinator sees of the cluster."""
        return EMPTY_IMAGE._replace(features=self.features)

    def add_offsets_topic(self, leader: int = 1) -> None:
        topic = topic_image(GROUP_METADATA_TOPIC, OFFSETS_ID, PARTITIONS, leader)
        self.metadata.image.topics_by_name[topic.name] = topic

    def send(self, api_key: ApiKey, version: int, client_id: str | None = "probe", **fields: Any) -> Any:
        """A coroutine that gives the response as a client of this version would decode it."""
        types = request_types(api_key)
        request_class = next(t for name, t in vars(types).items() if name.endswith("Request"))
        encoded = request_encoder(api_key, version)(request_class(**_nested(types, fields)))
        request, position = request_decoder(api_key, version)(encoded, 0)
        assert position == len(encoded)
        connection: Any = SimpleNamespace(
            peer=("127.0.0.1", 50_000),
            listener="PLAINTEXT",
            spawn=lambda work, name: asyncio.create_task(work, name=name),
        )
        node: Any = self
        context = RequestContext(node, connection, version, client_id)
        return _decoded(api_key, version, handler_of(api_key)(context, request))

    async def call(self, api_key: ApiKey, version: int, **fields: Any) -> Any:
        return await self.send(api_key, version, **fields)


async def _decoded(api_key: ApiKey, version: int, reply: Reply[Any]) -> Any:
    encoded = response_encoder(api_key, version)(await reply)
    return response_decoder(api_key, version)(encoded, 0)[0]


def _nested(types: Any, fields: dict[str, Any]) -> dict[str, Any]:
    """Lists of (struct name, fields) become lists of structs."""

    def build(value: Any) -> Any:
        if isinstance(value, tuple) and value and isinstance(value[0], str) and isinstance(value[1], dict):
            return getattr(types, value[0])(**_nested(types, value[1]))
        return [build(item) for item in value] if isinstance(value, list) else value

    return {name: build(value) for name, value in fields.items()}
