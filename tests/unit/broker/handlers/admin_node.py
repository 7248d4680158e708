"""A node as the admin handlers see it: image, controller, configuration. No log, no socket.

Requests and answers go through their bytes at the version asked for, as a client's do.
"""

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from odradek.broker.dispatch import handler_of
from odradek.broker.faults import PlantedErrors
from odradek.broker.loggers import LogLevels
from odradek.coordinators.transactions.producer_ids import ProducerIds
from odradek.core.errors import KafkaError
from odradek.core.principals import Requester
from odradek.metadata.image import MetadataImage
from odradek.runtime.slices import Slices
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import (
    request_decoder,
    request_encoder,
    request_types,
    response_decoder,
    response_encoder,
)
from tests.unit.controller.harness import CLUSTER_ID, Harness, with_one_broker

LISTENER = "PLAINTEXT"


class AdminNode:
    """`ask` sends a request to its handler."""

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self.harness: Harness = with_one_broker(settings)
        self.config = self.harness.controller.config
        self.cluster_id = CLUSTER_ID
        self.controller = self
        self.metadata = self
        self.producer_ids = ProducerIds(1, self)
        self.producer_ids.broker_epoch = self.image.brokers[1].epoch
        self.failure: KafkaError | None = None
        self.faults = PlantedErrors()
        self.slices = Slices()
        self.log_levels = LogLevels()
        self.replicas: Any = None
        self.logs: Any = None

    @property
    def image(self) -> MetadataImage:
        return self.harness.image

    async def call(self, api_key: ApiKey, request: Any, requester: Requester | None = None) -> Any:
        if self.failure is not None:
            raise self.failure
        return self.harness.call(api_key, request)

    def ask(self, api_key: ApiKey, request: Any, version: int) -> Any:
        sent = request_encoder(api_key, version)(request)
        received, _ = request_decoder(api_key, version)(sent, 0)
        answer = asyncio.run(self.answer(api_key, received, version))
        self.config.set_dynamic(self.image.config(4, "1"), self.image.config(4, ""))
        read, _ = response_decoder(api_key, version)(response_encoder(api_key, version)(answer), 0)
        return read

    async def answer(self, api_key: ApiKey, request: Any, version: int) -> Any:
        """What the handler makes of a request, in its newest shape."""
        connection = SimpleNamespace(spawn=lambda work, name: asyncio.create_task(work, name=name))
        context: Any = SimpleNamespace(
            services=self,
            api_version=version,
            listener=LISTENER,
            client_id="test",
            connection=connection,
            requester=Requester(client_id="test"),
        )
        return await handler_of(api_key)(context, request)

    def create(self, name: str, partitions: int = 1) -> UUID:
        topic_id: UUID = self.harness.create(name, partitions).topic_id
        return topic_id


def types_of(api_key: ApiKey) -> Any:
    return request_types(api_key)
