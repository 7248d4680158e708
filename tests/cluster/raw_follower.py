"""A broker that a test plays: it is registered and alive, and fetches only when the test says so."""

from typing import TYPE_CHECKING
from uuid import UUID

from odradek.broker.lifecycle import BrokerLifecycle
from odradek.broker.node import Node
from odradek.client.connection import BrokerConnection
from odradek.core.config.listeners import Listener
from odradek.runtime.real import RealRuntime
from odradek.wire import requests
from odradek.wire.api_keys import ApiKey
from tests.cluster.nodes import config_of

if TYPE_CHECKING:
    from odradek.wire.responses.fetch import PartitionData

FETCH_VERSION = 17


class RawFollower:
    """Of the first partition of a topic that `leader` leads."""

    def __init__(self, node_id: int, leader: Node, topic: str) -> None:
        self.node_id = node_id
        self._leader = leader
        self._topic = topic
        self.lifecycle = BrokerLifecycle(
            config_of({"node.id": str(node_id), "broker.heartbeat.interval.ms": "500"}),
            leader.controller,
            leader.metadata,
            cluster_id=leader.cluster_id,
            incarnation_id=UUID(int=node_id, version=4),
            directory_ids=[UUID(int=1_000 + node_id, version=4)],
        )
        self.connection: BrokerConnection
        """To the leader, once it has joined."""

    async def join(self) -> None:
        """Be registered, unfenced, and seen so by the leader. Nobody listens at its address."""
        await self.lifecycle.register([Listener("PLAINTEXT", "127.0.0.1", 1, "PLAINTEXT")])
        await self.lifecycle.unfence()
        self.connection = await BrokerConnection.open(
            RealRuntime(), *self._leader.address, client_id="raw-follower"
        )
        await self._leader.metadata.until(lambda image: image.brokers[self.node_id].is_active)

    async def close(self) -> None:
        await self.lifecycle.close()
        if hasattr(self, "connection"):
            self.connection.close()

    async def fetch(
        self, offset: int, *, log_start_offset: int = 0, epoch: int | None = None
    ) -> "PartitionData":
        """What the leader answers at once."""
        types = requests.fetch
        partition = types.FetchPartition(
            partition=0,
            current_leader_epoch=-1,
            fetch_offset=offset,
            last_fetched_epoch=-1,
            log_start_offset=log_start_offset,
            partition_max_bytes=1 << 20,
        )
        topic_id = self._leader.metadata.image.topics_by_name[self._topic].id
        request = types.FetchRequest(
            replica_state=types.ReplicaState(
                replica_id=self.node_id,
                replica_epoch=self.lifecycle.broker_epoch if epoch is None else epoch,
            ),
            max_wait=0,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=0,
            session_id=0,
            session_epoch=-1,
            topics=[types.FetchTopic(topic_id=topic_id, partitions=[partition])],
            forgotten_topics_data=[],
            rack_id="",
        )
        response = await self.connection.send(ApiKey.FETCH, request, FETCH_VERSION)
        assert response.error_code == 0
        row: PartitionData = response.responses[0].partitions[0]
        return row
