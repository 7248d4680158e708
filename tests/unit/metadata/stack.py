"""All of a node that metadata needs: directories, quorum, controller, broker lifecycle."""

import asyncio
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from odradek.broker.controller_channel import RoutedController, nobody_else
from odradek.broker.lifecycle import BrokerLifecycle
from odradek.controller.quorum import QuorumController
from odradek.coordinators.transactions.producer_ids import ProducerIds
from odradek.core.configs import NodeConfig
from odradek.log.manager import LogManager
from odradek.metadata.formatting import NodeIdentity, prepare_directories, read_bootstrap
from odradek.metadata.image import MetadataImage
from odradek.metadata.loader import MetadataLoader
from odradek.metadata.publisher import MetadataPublisher
from odradek.raft.settings import metadata_log_config, raft_times, static_voters
from odradek.raft.voters import VoterEndpoint
from odradek.runtime.api import Runtime
from odradek.runtime.slices import Slices
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.unit.raft.drivers import open_driver


class MetadataStack:
    """Started and stopped as the node does it."""

    def __init__(self, runtime: Runtime, data_dir: str, settings: Mapping[str, str] | None = None) -> None:
        self.runtime = runtime
        self.config, _ = NodeConfig.from_sources({}, {"log.dirs": data_dir, **(settings or {})})
        self.slices = Slices()
        self.publisher = MetadataPublisher(self.slices)
        self.logs = LogManager(runtime, self.config.log_dirs)
        self.identity: NodeIdentity | None = None

    @property
    def image(self) -> MetadataImage:
        return self.publisher.image

    async def start(self) -> None:
        runtime, config = self.runtime, self.config
        self.logs.open()
        endpoints = [VoterEndpoint(e.name, e.host, e.port) for e in config.controller_listeners]
        self.identity = prepare_directories(
            runtime,
            self.logs.directories,
            node_id=config.node_id,
            metadata_log_dir=config.metadata_log_dir,
            controller_endpoints=endpoints,
        )
        incarnation_id = UUID(bytes=runtime.rng.randbytes(16), version=4)
        raft = open_driver(
            runtime,
            config.metadata_log_dir,
            metadata_log_config(config),
            node_id=config.node_id,
            directory_id=self.identity.metadata_directory_id,
            static_voters=static_voters(config),
            times=raft_times(config),
        )
        loader = MetadataLoader(runtime, config, raft, self.publisher, self.slices)
        self.controller = QuorumController(
            runtime,
            config,
            raft,
            loader,
            cluster_id=self.identity.cluster_id,
            incarnation_id=incarnation_id,
            slices=self.slices,
            bootstrap=read_bootstrap(runtime.disk, config.metadata_log_dir),
        )
        channel = RoutedController(config, raft, loader, self.controller, nobody_else, self.publisher)
        await loader.load()
        raft.start()
        self.lifecycle = BrokerLifecycle(
            config,
            channel,
            self.publisher,
            cluster_id=self.identity.cluster_id,
            incarnation_id=incarnation_id,
            directory_ids=list(self.identity.directory_ids.values()),
            previous_broker_epoch=self.logs.directories[0].previous_broker_epoch,
        )
        self.producer_ids = ProducerIds(config.node_id, self.controller)
        self.producer_ids.broker_epoch = await self.lifecycle.register(config.advertised_listeners)
        self.logs.directories[0].take_clean_shutdown()
        await self.lifecycle.unfence()

    async def stop(self) -> None:
        await self.lifecycle.shut_down()
        await self.controller.stop()
        await self.logs.close(broker_epoch=self.lifecycle.broker_epoch)

    async def create_topic(self, name: str, partitions: int = 1) -> int:
        types = request_types(ApiKey.CREATE_TOPICS)
        topic = types.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        request = types.CreateTopicsRequest(topics=[topic])
        response: Any = await self.controller.call(ApiKey.CREATE_TOPICS, request)
        code: int = response.topics[0].error_code
        return code


async def until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0.01)
