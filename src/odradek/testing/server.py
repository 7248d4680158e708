"""The broker that a pytest session uses: one of our own in this process, or one that was given by address."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from odradek.client.blocking import BlockingClient
from odradek.client.client import parse_servers
from odradek.core.configs import ConfigError
from odradek.core.errors import KafkaError, ProtocolError
from odradek.core.types import INTERNAL_TOPICS, TopicPartition
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

if TYPE_CHECKING:
    from odradek.testing.broker import Broker
    from odradek.testing.cluster import Cluster

REACH_TIMEOUT_S = 5


class Unavailable(Exception):
    """The broker cannot be used. The message explains why to the person who runs the tests."""


class KafkaServer:
    """A broker, or several, for many tests, and the client that the fixtures use on it.

    `cluster` has the brokers by their ids; None where the address of a Kafka was given.
    """

    def __init__(self, cluster: "Cluster | None", bootstrap_servers: str) -> None:
        self.cluster = cluster
        self.bootstrap_servers = bootstrap_servers
        self.client = BlockingClient(bootstrap_servers, client_id="odradek-testing", api_timeout_ms=10_000)

    def __repr__(self) -> str:
        return f"<KafkaServer at {self.bootstrap_servers}>"

    @property
    def broker(self) -> "Broker | None":
        """The broker, where there is one and it is our own."""
        if self.cluster is None or len(self.cluster.brokers) > 1:
            return None
        return next(iter(self.cluster.brokers.values()))

    @classmethod
    def embedded(cls, config: Mapping[str, str], brokers: int = 1) -> "KafkaServer":
        from odradek.testing.cluster import Cluster

        cluster = Cluster(brokers, config)
        try:
            cluster.start()
        except (ConfigError, KafkaError, OSError) as e:
            what = "broker" if brokers == 1 else "cluster"
            raise Unavailable(f"the {what} did not start: {e}") from e
        return cls(cluster, cluster.bootstrap_servers)

    @classmethod
    def external(cls, bootstrap_servers: str) -> "KafkaServer":
        """Asked once whether it is there: every test would wait for its own timeout otherwise."""
        try:
            parse_servers(bootstrap_servers)
        except ValueError as e:
            raise Unavailable(f"--kafka-bootstrap {bootstrap_servers}: {e}") from e
        server = cls(None, bootstrap_servers)
        try:
            server.client.run(server._reach())
        except (KafkaError, OSError, ProtocolError) as e:
            server.close()
            raise Unavailable(
                f"--kafka-bootstrap {bootstrap_servers}: no Kafka can be reached: {_reason(e)}"
            ) from e
        return server

    async def _reach(self) -> None:
        """Over the given address, and then over those that the brokers say they have."""
        async with asyncio.timeout(REACH_TIMEOUT_S):
            cluster = await self.client.client.refresh()
            for node_id in cluster.brokers:
                await self.client.client.connection(node_id)

    def close(self) -> None:
        self.client.close()
        if self.cluster is not None:
            self.cluster.close()

    def broker_count(self) -> int:
        return len(self.client.run(self.client.client.refresh()).brokers)

    def topics(self) -> list[str]:
        """Every topic but Kafka's own."""
        cluster = self.client.run(self.client.client.refresh(None))
        return [name for name in cluster.topics if name not in INTERNAL_TOPICS]

    def partitions(self, topic: str) -> list[TopicPartition]:
        self.client.run(self.client.client.refresh([topic]))  # it may be another one than a moment ago
        return [TopicPartition(topic, i) for i in self.client.run(self.client.client.partitions(topic))]

    def groups(self) -> list[str]:
        return [str(group.group_id) for group in self.client.call(self.client.admin.list_groups)]

    def delete(self, topics: Sequence[str], groups: Sequence[str]) -> None:
        """One attempt each; what is gone already, or still in use, stays as it is."""
        self.client.run(self._delete(topics, groups))

    async def _delete(self, topics: Sequence[str], groups: Sequence[str]) -> None:
        client = self.client.client
        types: Any
        if topics:
            types = request_types(ApiKey.DELETE_TOPICS)
            states = [types.DeleteTopicState(name=name) for name in topics]
            await client.send(ApiKey.DELETE_TOPICS, types.DeleteTopicsRequest(topics=states, timeout=10_000))
        for name in groups:
            types = request_types(ApiKey.DELETE_GROUPS)
            request = types.DeleteGroupsRequest(groups_names=[name])
            await client.call_coordinator(name, ApiKey.DELETE_GROUPS, request)


def _reason(error: Exception) -> str:
    """In the system's words, where asyncio would only say that a call failed."""
    if isinstance(error, TimeoutError) and not error.errno:
        return f"no answer within {REACH_TIMEOUT_S} s"
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return getattr(error, "strerror", None) or str(error)
