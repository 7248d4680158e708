"""Node: creates, starts and stops the parts of a node. The only file that knows all of them.

The start locks the data directories, reads the metadata log, follows its quorum, registers the broker, opens
the logs, waits until the broker is unfenced, and only then accepts clients. The stop begins with the
controlled shutdown. The caller provides an event loop and a Runtime.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from uuid import UUID

from odradek.broker.apis import BROKER_APIS
from odradek.broker.chores import start_chores
from odradek.broker.controller_channel import RoutedController
from odradek.broker.coordinator_roles import CoordinatorRoles
from odradek.broker.directory_assigner import DirectoryAssigner
from odradek.broker.dynamic_configs import DynamicConfigs
from odradek.broker.faults import PlantedErrors
from odradek.broker.health import Health
from odradek.broker.isr_sender import IsrSender
from odradek.broker.lifecycle import BrokerLifecycle, advertised_listeners, previous_broker_epoch
from odradek.broker.log_dir_failures import LogDirFailures
from odradek.broker.loggers import LogLevels
from odradek.broker.long_requests import LongRequests
from odradek.broker.metadata_applier import MetadataApplier
from odradek.broker.network.descriptors import share_descriptors
from odradek.broker.network.server import Server
from odradek.broker.no_effect import NoEffect
from odradek.broker.quorum_side import QuorumSide
from odradek.broker.recovery_lines import RecoveryLines
from odradek.broker.replica_fetchers import ReplicaFetchers, fetcher_settings
from odradek.broker.services import Services
from odradek.broker.topics import TopicCreation
from odradek.client.broker_connections import BrokerConnections, Endpoint
from odradek.coordinators.groups.config import GroupConfig
from odradek.coordinators.groups.coordinator import GroupCoordinator
from odradek.coordinators.transactions.add_partitions import AddPartitionsToTxnManager
from odradek.coordinators.transactions.config import TransactionConfig
from odradek.coordinators.transactions.coordinator import TransactionCoordinator
from odradek.coordinators.transactions.marker_writer import BrokerMarkers, MarkerWriter
from odradek.coordinators.transactions.producer_ids import ProducerIds
from odradek.coordinators.transactions.remote_coordinators import TransactionCoordinators
from odradek.coordinators.transactions.remote_markers import RemoteMarkers
from odradek.coordinators.transactions.speakers import Speakers
from odradek.core.configs import NodeConfig, TopicConfig
from odradek.core.metrics import Metrics
from odradek.core.types import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from odradek.log.cleaning.cleaner import Cleaner
from odradek.log.cleaning.settings import CleanerSettings
from odradek.log.manager import LogManager
from odradek.metadata.formatting import NodeIdentity
from odradek.metadata.internal_topics import partition_count
from odradek.metadata.publisher import MetadataPublisher
from odradek.metadata.strays import is_stray
from odradek.replication.context import LeaderContext
from odradek.replication.fetch_sessions import FetchSessions
from odradek.replication.fetching.manager import FetcherManager
from odradek.replication.manager import ReplicaManager
from odradek.runtime.api import Runtime
from odradek.runtime.patience import Patience
from odradek.runtime.reply import Reply
from odradek.runtime.scope import Scope
from odradek.runtime.slices import Slices

_log = logging.getLogger(__name__)

HEAVY_CHECKS = 2
"""How many heavy checks of produced records run at a time, each with up to 64 MiB decompressed. The other
half of the pool's threads is for flushes, which use the same queue. A heartbeat is answered only after a
flush of the metadata log."""


class Node:
    """A broker and controller in one process."""

    def __init__(self, config: NodeConfig, runtime: Runtime) -> None:
        self.config = config
        self.runtime = runtime
        self.metrics = Metrics()
        self.faults = PlantedErrors()
        self.slices = Slices()
        self.metadata = MetadataPublisher(self.slices)
        self.log_levels = LogLevels()
        self.descriptors = share_descriptors(runtime.descriptor_limit())
        self.logs = LogManager(
            runtime,
            config.log_dirs,
            producer_id_expiration_ms=config.int("producer.id.expiration.ms"),
            max_descriptors=self.descriptors.files,
            max_held_descriptors=self.descriptors.replies,
            slices=self.slices,
        )
        self.cleaner = Cleaner(runtime, self.logs, CleanerSettings.from_node(config))
        self._leading = LeaderContext(
            runtime.clock,
            lambda: self.metadata.image,
            config.int("replica.lag.time.max.ms"),
            self.metrics.isr,
        )
        self._replica_fetchers = ReplicaFetchers(
            config,
            runtime,
            self.slices,
            self._broker_endpoint,
            metadata_version=lambda: self.metadata.image.metadata_version,
            broker_epoch=lambda: self.lifecycle.broker_epoch,
        )
        self.replicas = ReplicaManager(
            config.node_id,
            self.logs,
            self.metrics,
            self._topic_config,
            self._leading,
            self.slices,
            FetcherManager(fetcher_settings(config), self._replica_fetchers.start),
        )
        self.groups = GroupCoordinator(
            GroupConfig.from_node(config),
            runtime.clock,
            runtime.rng,
            lambda: partition_count(config, self.metadata.image, GROUP_METADATA_TOPIC),
            lambda: self.metadata.image,
            self.slices,
        )
        self._marker_writer = MarkerWriter(
            self.replicas, self.groups.host, runtime.clock, config.int("request.timeout.ms")
        )
        self._remote_markers = RemoteMarkers(self._connections("txn-marker-sender"))
        self.transactions = TransactionCoordinator(
            TransactionConfig.from_node(config),
            runtime.clock,
            partition_count=lambda: partition_count(config, self.metadata.image, TRANSACTION_STATE_TOPIC),
            new_producer_id=lambda: self.producer_ids.take(),
            server_version=lambda: self.metadata.image.transaction_version,
            leader_of=lambda tp: self.metadata.image.leader_of(tp),
            marker_channel=BrokerMarkers(config.node_id, self._marker_writer, self._remote_markers),
            slices=self.slices,
        )
        self._coordinators = TransactionCoordinators(
            config.node_id,
            self.transactions,
            lambda tp: self.metadata.image.leader_of(tp),
            self._connections("add-partitions-to-txn"),
        )
        self.txn_partitions = AddPartitionsToTxnManager(
            self._coordinators,
            verifies=config.bool("transaction.partition.verification.enable"),
            retry_backoff_ms=config.int("add.partitions.to.txn.retry.backoff.ms"),
            max_backoff_ms=config.int("add.partitions.to.txn.retry.backoff.max.ms"),
        )
        self.cluster_id = ""
        self.health = Health(self.logs)
        self.controller: RoutedController
        self.internal_topics: TopicCreation
        self.lifecycle: BrokerLifecycle
        self.producer_ids: ProducerIds
        self.server: Server
        self.quorum: QuorumSide
        self.patience = Patience()
        """With other nodes during the start: giving up makes `start` raise CancelledError where it waits."""
        self._roles = CoordinatorRoles(self.groups, self.transactions)
        self._assigner = DirectoryAssigner(config.node_id, self.logs)
        self._applier = MetadataApplier(
            self.replicas, self.logs, self._assigner, self._roles, self.groups, self.slices
        )
        self._scope = Scope(lambda error: _log.error("A background task of the node failed", exc_info=error))

    def _topic_config(self, topic: str) -> TopicConfig:
        """The current configuration of a topic."""
        return TopicConfig.resolve(self.config, self.metadata.image.topic_config(topic))

    def _connections(self, purpose: str) -> BrokerConnections:
        """To other brokers. Answers come in order, so what must not wait for other answers has its own."""
        return BrokerConnections(
            self.runtime,
            f"broker-{self.config.node_id}-{purpose}",
            self.config.int("request.timeout.ms"),
            self._broker_endpoint,
        )

    def _broker_endpoint(self, broker_id: int) -> Endpoint | None:
        """Where this node reaches a broker that is registered and not fenced."""
        broker = self.metadata.image.brokers.get(broker_id)
        if broker is None or broker.fenced:
            return None
        endpoint = broker.endpoints.get(self.config.inter_broker_listener_name)
        return None if endpoint is None else (endpoint.host, endpoint.port)

    async def start(self, on_taken: Callable[[], None] | None = None) -> None:
        """Start the node. When this returns, it serves clients. If it raises, everything is released.

        `on_taken` is called when ports and directories are locked, before the logs are opened.
        """
        async with AsyncExitStack() as undo:
            await self._start(undo, on_taken)
            undo.pop_all()
        self.health.started(self.quorum.raft, self.quorum.loader)

    async def _start(self, undo: AsyncExitStack, on_taken: Callable[[], None] | None) -> None:
        config, runtime = self.config, self.runtime
        self.server = Server(config, runtime, self.metrics, self.logs.files, self.descriptors.connections)
        undo.push_async_callback(self.server.close)
        for listener in config.broker_listeners:
            self.server.listen(listener.name, listener.host, listener.port)
        self.quorum = QuorumSide(
            config, runtime, self.metrics, self.logs.files, self.metadata, self.slices, self.log_levels
        )
        undo.push_async_callback(self.quorum.close_server)
        endpoints = self.quorum.listen()
        incarnation = UUID(bytes=runtime.rng.randbytes(16), version=4)
        undo.push_async_callback(self.logs.close, clean=False)
        self.logs.open()
        directories = [*self.logs.directories, *self.quorum.take_directory()]
        if on_taken is not None:
            on_taken()
        identity = await self.patience.wait(self.quorum.identify(directories, endpoints))
        self.cluster_id = identity.cluster_id
        self.quorum.join(identity, incarnation, endpoints)
        undo.push_async_callback(self.quorum.close)
        await self.quorum.start(self.cluster_id)
        if config.is_broker:
            await self._start_broker(undo, identity, incarnation)

    async def _start_broker(self, undo: AsyncExitStack, identity: NodeIdentity, incarnation: UUID) -> None:
        config = self.config
        self._make_broker(identity, incarnation)
        undo.push_async_callback(self.lifecycle.close)
        undo.push_async_callback(self.producer_ids.close)
        listeners = advertised_listeners(config, self.server.addresses)
        broker_epoch = await self.patience.wait(self.lifecycle.register(listeners))
        self.producer_ids.broker_epoch = broker_epoch
        configs = self._dynamic_configs()
        await configs.load()
        self.metadata.subscribe(NoEffect(config).on_delta)
        await self._open_logs()
        configs.subscribe()
        undo.push_async_callback(self._stop_fetchers)
        self._applier.subscribe(self.metadata)
        undo.push_async_callback(self.groups.close)
        self.groups.start()
        undo.push_async_callback(self._coordinators.close)
        undo.push_async_callback(self._remote_markers.close)
        undo.push_async_callback(self.transactions.close)
        self.transactions.start()
        undo.push_async_callback(self._scope.close)
        start_chores(self._scope, config, self.logs, self.metrics.stalls, self._applier, self.replicas)
        undo.push_async_callback(self.cleaner.close)
        self.cleaner.start()
        self._scope.spawn(self._assigner.run(self.controller, broker_epoch), name="assign directories")
        sender = IsrSender(config.node_id, self._leading.proposals, self.slices)
        self._scope.spawn(sender.run(self.controller, broker_epoch), name="propose ISRs")
        self.server.open(self._services())
        await self.patience.wait(self.lifecycle.unfence())

    def _make_broker(self, identity: NodeIdentity, incarnation: UUID) -> None:
        """Make the parts of the broker that need the cluster id."""
        config = self.config
        self.controller = self.quorum.channel
        self.internal_topics = TopicCreation(config, self.metadata, self.controller)
        self.lifecycle = BrokerLifecycle(
            config,
            self.controller,
            self.metadata,
            cluster_id=self.cluster_id,
            incarnation_id=incarnation,
            directory_ids=[identity.directory_ids[d.path] for d in self.logs.dirs.online()],
            previous_broker_epoch=previous_broker_epoch(self.logs.directories),
        )
        failures = LogDirFailures(self.logs, self.replicas, self._roles, self.lifecycle, self.slices)
        self.logs.on_offline = failures.on_offline
        self.producer_ids = ProducerIds(config.node_id, self.controller)

    def _dynamic_configs(self) -> DynamicConfigs:
        def expire_producers(config: NodeConfig) -> None:
            self.logs.producer_id_expiration_ms = config.int("producer.id.expiration.ms")

        def resize_fetchers(config: NodeConfig) -> None:
            resizing = self.replicas.fetchers.resize(config.int("num.replica.fetchers"))
            self.slices.run(resizing, own=True).when_ready(_report)

        def verify_partitions(config: NodeConfig) -> None:
            self.txn_partitions.verifies = config.bool("transaction.partition.verification.enable")

        return DynamicConfigs(
            self.config,
            self.metadata,
            self.replicas,
            self.server.address_limits,
            self._scope,
            (
                lambda config: self.groups.reconfigure(GroupConfig.from_node(config)),
                lambda config: self.cleaner.reconfigure(CleanerSettings.from_node(config)),
                lambda config: self.server.accept_waiting(),
                expire_producers,
                resize_fetchers,
                verify_partitions,
            ),
        )

    async def _open_logs(self) -> None:
        self.logs.recovery.on_progress = RecoveryLines(self.logs.recovery).write
        await self.logs.load_beside(
            self._topic_config,
            self.config.int("num.recovery.threads.per.data.dir"),
            lambda tp, topic_id: is_stray(self.metadata.image, self.config.node_id, tp, topic_id),
        )

    def _services(self) -> Services:
        return Services(
            runtime=self.runtime,
            slices=self.slices,
            config=self.config,
            cluster_id=self.cluster_id,
            faults=self.faults,
            log_levels=self.log_levels,
            apis=BROKER_APIS,
            server=self.server,
            long_requests=LongRequests(),
            heavy_checks=asyncio.Semaphore(HEAVY_CHECKS),
            metadata=self.metadata,
            controller=self.controller,
            internal_topics=self.internal_topics,
            logs=self.logs,
            replicas=self.replicas,
            fetch_sessions=FetchSessions(self.config.int("max.incremental.fetch.session.cache.slots")),
            fetch_max_bytes=self.config.int("fetch.max.bytes"),
            groups=self.groups,
            transactions=self.transactions,
            txn_partitions=self.txn_partitions,
            marker_writer=self._marker_writer,
            offset_speakers=Speakers(),
            producer_ids=self.producer_ids,
        )

    async def stop(self) -> None:
        """Stop the node. It serves clients until the controlled shutdown is done.

        When this returns, all acknowledged records are durable.
        """
        if self.config.is_broker:
            await self._stop_broker()
        else:
            await self.quorum.close()
            await self.logs.close()
        self.log_levels.restore()

    async def _stop_broker(self) -> None:
        await self.lifecycle.shut_down()
        await self.server.close()
        self.replicas.is_stopping = True
        await self._stop_fetchers()
        await self.quorum.finish()
        await self.cleaner.close()
        await self._scope.close()
        await self.transactions.close()
        await self._remote_markers.close()
        await self._coordinators.close()
        await self.groups.close()
        await self.producer_ids.close()
        await self.quorum.close()
        await self.logs.close(broker_epoch=self.lifecycle.broker_epoch)

    async def _stop_fetchers(self) -> None:
        """Fetch nothing more, before the logs are closed."""
        self.replicas.fetchers.close()
        await self._replica_fetchers.close()

    @property
    def address(self) -> tuple[str, int]:
        """The address of the first broker listener; on a controller, of its first listener."""
        server = self.server if self.config.is_broker else self.quorum.server
        return next(iter(server.addresses.values()))


def _report(reply: Reply[None]) -> None:
    if reply.error is not None:
        _log.error("Cannot apply num.replica.fetchers", exc_info=reply.error)
