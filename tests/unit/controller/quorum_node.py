"""Three nodes on a scripted quorum: each follows, each has a controller, each asks the active one."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, cast
from uuid import UUID

from odradek.broker.controller_channel import RoutedController
from odradek.controller.quorum import QuorumController
from odradek.controller.registrar import ControllerRegistrar
from odradek.core.configs import NodeConfig
from odradek.metadata.delta import MetadataDelta
from odradek.metadata.image import MetadataImage
from odradek.metadata.loader import MetadataLoader
from odradek.metadata.publisher import MetadataPublisher
from odradek.metadata.versions import SUPPORTED_FEATURES
from odradek.raft.driver import RaftDriver
from odradek.runtime.slices import FEW, Paced, Slices
from odradek.sim.world.world import World
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.unit.controller.harness import log_dir
from tests.unit.metadata.scripted_quorum import ScriptedQuorum, ScriptedReplica

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
T = TypeVar("T")


class QuorumNode:
    def __init__(
        self, cluster: "QuorumCluster", replica: ScriptedReplica, settings: Mapping[str, str]
    ) -> None:
        given = {"node.id": str(replica.node_id), "log.dirs": "/data", **settings}
        config, _ = NodeConfig.from_sources({}, given)
        self.config = config
        self.cluster = cluster
        self.replica = replica
        self.slices = Slices()
        self.publisher = MetadataPublisher(self.slices)
        self.deltas: list[MetadataDelta] = []
        self.publisher.subscribe(self._note)
        self.loader = MetadataLoader(replica.runtime, config, replica, self.publisher, self.slices)
        incarnation_id = UUID(int=(replica.node_id << 64) + 99)
        self.quorum = QuorumController(
            replica.runtime,
            config,
            cast(RaftDriver, replica),
            self.loader,
            cluster_id=CLUSTER_ID,
            incarnation_id=incarnation_id,
            slices=self.slices,
        )
        self.channel = RoutedController(
            config, replica, self.loader, self.quorum, self.ask_remote, self.publisher
        )
        self.registrar = ControllerRegistrar(config, incarnation_id, self.channel, self.publisher)
        self.publisher.subscribe(self.registrar.on_delta)

    @property
    def image(self) -> MetadataImage:
        return self.publisher.image

    def _note(self, delta: MetadataDelta) -> Paced[None]:
        self.deltas.append(delta)
        yield FEW

    async def ask_remote(self, controller_id: int, api_key: ApiKey, request: Any, requester: object) -> Any:
        return await self.cluster.carry(controller_id, api_key, request)

    async def create_topic(self, name: str, partitions: int = 1, channel: Any = None) -> int:
        types = request_types(ApiKey.CREATE_TOPICS)
        topic = types.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        request = types.CreateTopicsRequest(topics=[topic])
        response: Any = await (channel or self.channel).call(ApiKey.CREATE_TOPICS, request)
        code: int = response.topics[0].error_code
        return code

    async def add_broker(self, broker_id: int = 101) -> int:
        """Register a broker and have it unfenced. It sends no further heartbeats."""
        types = request_types(ApiKey.BROKER_REGISTRATION)
        request = types.BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=CLUSTER_ID,
            incarnation_id=UUID(int=broker_id),
            listeners=[types.Listener(name="PLAINTEXT", host="h", port=9092)],
            features=[
                types.Feature(name=name, min_supported_version=levels.min, max_supported_version=levels.max)
                for name, levels in SUPPORTED_FEATURES.items()
            ],
            rack=None,
            log_dirs=[log_dir(broker_id)],
        )
        response = await self.channel.call(ApiKey.BROKER_REGISTRATION, request)
        assert response.error_code == 0
        epoch: int = response.broker_epoch
        assert not (await self.heartbeat(broker_id, epoch)).is_fenced
        return epoch

    async def heartbeat(self, broker_id: int, broker_epoch: int) -> Any:
        types = request_types(ApiKey.BROKER_HEARTBEAT)
        request = types.BrokerHeartbeatRequest(
            broker_id=broker_id, broker_epoch=broker_epoch, current_metadata_offset=self.image.offset
        )
        return await self.channel.call(ApiKey.BROKER_HEARTBEAT, request)

    async def stop(self) -> None:
        self.channel.close()
        await self.registrar.close()
        await self.quorum.stop()


class QuorumCluster:
    """`carry` is the network between them."""

    def __init__(self, world: World, settings: Mapping[str, str] | None = None) -> None:
        self.quorum = ScriptedQuorum(world)
        self.nodes = {n: QuorumNode(self, r, settings or {}) for n, r in self.quorum.replicas.items()}
        self.carry: Callable[[int, ApiKey, Any], Awaitable[Any]] = self._carry

    async def start(self) -> None:
        for node in self.nodes.values():
            await node.loader.load()

    async def stop(self) -> None:
        """Nobody leads any more: what is not committed never will be."""
        for node in self.nodes.values():
            node.replica.resign()
        for node in self.nodes.values():
            await node.stop()

    async def _carry(self, controller_id: int, api_key: ApiKey, request: Any) -> Any:
        await asyncio.sleep(0.001)
        return await self.nodes[controller_id].quorum.call(api_key, request)

    async def lead(self, node_id: int) -> QuorumNode:
        """Elect a node and wait until its controller is active and what it began with is committed."""
        self.quorum.elect(node_id)
        node = self.nodes[node_id]
        await self.committing(until(lambda: node.quorum.is_active))
        await self.settle()
        return node

    async def settle(self) -> None:
        """Commit until nothing more is appended."""
        for _ in range(5):
            self.quorum.commit()
            await asyncio.sleep(0.001)

    async def committing(self, work: Awaitable[T]) -> T:
        """The outcome of something that waits for commits."""
        future = asyncio.ensure_future(work)
        while not future.done():
            self.quorum.commit()
            await asyncio.sleep(0.002)
        return await future


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)
