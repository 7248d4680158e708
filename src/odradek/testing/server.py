"""The broker that a pytest session uses: one of our own in this process, or one that was given by address."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from odradek.client.blocking import BlockingClient
from odradek.core.errors import KafkaError
from odradek.core.types import INTERNAL_TOPICS
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

if TYPE_CHECKING:
    from odradek.testing.broker import Broker


class KafkaServer:
    """A broker for many tests, and the client that the fixtures use on it."""

    def __init__(self, broker: "Broker | None", bootstrap_servers: str) -> None:
        self.broker = broker
        self.bootstrap_servers = bootstrap_servers
        self.client = BlockingClient(bootstrap_servers, client_id="odradek-testing", api_timeout_ms=10_000)
        self._cleaning: list[asyncio.Task[None]] = []

    @classmethod
    def embedded(cls, config: Mapping[str, str]) -> "KafkaServer":
        from odradek.testing.broker import Broker

        broker = Broker(config)
        try:
            broker.start()
            return cls(broker, broker.bootstrap_servers)
        except BaseException:
            broker.close()
            raise

    @classmethod
    def external(cls, bootstrap_servers: str) -> "KafkaServer":
        return cls(None, bootstrap_servers)

    def close(self) -> None:
        self.client.run(self._cleaned())
        self.client.close()
        if self.broker is not None:
            self.broker.close()

    def topics(self) -> list[str]:
        """Every topic but Kafka's own."""
        cluster = self.client.run(self.client.client.refresh(None))
        return [name for name in cluster.topics if name not in INTERNAL_TOPICS]

    def groups(self) -> list[str]:
        return [str(group.group_id) for group in self.client.call(self.client.admin.list_groups)]

    def clean(self, topics: list[str], groups: list[str]) -> None:
        """Delete what a test made, behind its back: the next test need not wait for it."""
        if topics or groups:
            self.client.run(self._start_cleaning(topics, groups))

    async def _start_cleaning(self, topics: list[str], groups: list[str]) -> None:
        self._cleaning = [task for task in self._cleaning if not task.done()]
        self._cleaning.append(asyncio.get_running_loop().create_task(self._delete(topics, groups)))

    async def _cleaned(self) -> None:
        for task in self._cleaning:
            await task

    async def _delete(self, topics: list[str], groups: list[str]) -> None:
        """One attempt each; what is gone already, or still in use, stays as it is."""
        client = self.client.client
        types: Any
        try:
            if topics:
                types = request_types(ApiKey.DELETE_TOPICS)
                states = [types.DeleteTopicState(name=name) for name in topics]
                await client.send(
                    ApiKey.DELETE_TOPICS, types.DeleteTopicsRequest(topics=states, timeout=10_000)
                )
            for name in groups:
                types = request_types(ApiKey.DELETE_GROUPS)
                request = types.DeleteGroupsRequest(groups_names=[name])
                await client.call_coordinator(name, ApiKey.DELETE_GROUPS, request)
        except (KafkaError, OSError):
            return  # a broker that a test left broken has nothing to be cleaned
