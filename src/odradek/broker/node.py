"""One node: the only place that knows all the others. It is made of parts and decides nothing itself.

Start: take the data directories, read the metadata log and lead or follow its quorum, open the logs the
image gives this node, register, catch up, be unfenced, and only then accept clients. Stop is the same
backwards. Whoever calls it has an event loop and a Runtime.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from uuid import UUID

from odradek.broker.chores import start_chores
from odradek.broker.directory_assigner import DirectoryAssigner
from odradek.broker.faults import Faults
from odradek.broker.lifecycle import BrokerLifecycle
from odradek.broker.loggers import LogLevels
from odradek.broker.long_requests import LongRequests
from odradek.broker.network.descriptors import share_descriptors
from odradek.broker.network.server import Server
from odradek.broker.no_effect import NoEffect
from odradek.broker.producer_ids import ProducerIds
from odradek.broker.topics import TopicCreation
from odradek.broker.txn_markers import write_markers
from odradek.controller.quorum import QuorumController
from odradek.coordinators.groups.config import GroupConfig
from odradek.coordinators.groups.coordinator import GroupCoordinator
from odradek.coordinators.transactions.commands import WriteMarkers
from odradek.coordinators.transactions.config import TransactionConfig
from odradek.coordinators.transactions.coordinator import TransactionCoordinator
from odradek.coordinators.transactions.markers import Outcomes
from odradek.coordinators.transactions.metadata import EPOCH_PER_TRANSACTION, Identity
from odradek.coordinators.transactions.speakers import Speakers
from odradek.core.configs import ConfigError, Listener, NodeConfig, TopicConfig, check_protection
from odradek.core.errors import ErrorCode, KafkaError, StorageError
from odradek.core.metrics import Metrics
from odradek.core.types import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, TopicPartition
from odradek.log.checkpoints import is_damaged_topic_id
from odradek.log.cleaning.cleaner import Cleaner
from odradek.log.cleaning.settings import CleanerSettings
from odradek.log.manager import LogManager
from odradek.metadata.channel import ControllerChannel
from odradek.metadata.delta import MetadataDelta
from odradek.metadata.formatting import prepare_directories, read_bootstrap
from odradek.metadata.image import RESOURCE_BROKER, RESOURCE_TOPIC, TopicImage
from odradek.metadata.publisher import MetadataPublisher
from odradek.raft.driver import RaftDriver
from odradek.raft.settings import metadata_log_config, static_voters
from odradek.raft.voters import VoterEndpoint
from odradek.replication.fetch_sessions import FetchSessions
from odradek.replication.led_log import LedLog
from odradek.replication.manager import CONFIGURED, ReplicaManager, RoleChanges
from odradek.runtime.api import Runtime
from odradek.runtime.reply import Reply
from odradek.runtime.scope import Scope
from odradek.runtime.slices import FEW, Paced, Slices

_log = logging.getLogger(__name__)

HEAVY_CHECKS = 2
"""Of produced records at a time, each of up to 64 MiB decompressed. Half of the pool's threads are left to
flushes, which wait in the same queue; the controller answers no heartbeat of the broker before its flush."""


def _tell_failure(reply: Reply[None]) -> None:
    if reply.error is not None:
        _log.error("Partitions could not be taken offline", exc_info=reply.error)


class Node:
    """A broker and controller in one process."""

    def __init__(self, config: NodeConfig, runtime: Runtime) -> None:
        self.config = config
        self.runtime = runtime
        self.metrics = Metrics()
        self.faults = Faults()
        self.slices = Slices()
        self.long_requests = LongRequests()
        self.heavy_checks = asyncio.Semaphore(HEAVY_CHECKS)
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
        self.logs.recovery.on_progress = self._tell_recovery
        self.replicas = ReplicaManager(
            config.node_id,
            self.logs,
            self.metrics,
            self._topic_config,
            lambda broker_id: self.metadata.image.alive_broker_epoch(broker_id),
            self.slices,
        )
        self.groups = GroupCoordinator(
            GroupConfig.from_node(config),
            runtime.clock,
            runtime.rng,
            self._group_partitions,
            lambda: self.metadata.image,
            self.slices,
        )
        self.transactions = TransactionCoordinator(
            TransactionConfig.from_node(config),
            runtime.clock,
            partition_count=self._transaction_partitions,
            new_producer_id=lambda: self.producer_ids.take(),
            server_version=self.transaction_version,
            leader_of=self._leader_of,
            deliver=self._deliver_markers,
            slices=self.slices,
        )
        self.verifies_transactions = config.bool("transaction.partition.verification.enable")
        self.offset_speakers = Speakers()
        self.fetch_sessions = FetchSessions(config.int("max.incremental.fetch.session.cache.slots"))
        self.fetch_max_bytes = config.int("fetch.max.bytes")
        self.internal_topics = TopicCreation(self)
        self.cluster_id = ""
        self.is_ready = False
        self.controller: ControllerChannel
        self.lifecycle: BrokerLifecycle
        self.producer_ids: ProducerIds
        self.server: Server
        self._quorum: QuorumController
        self._assigner = DirectoryAssigner(config.node_id, self.logs)
        self._recovery_told_s = 0.0
        self._scope = Scope(lambda error: _log.error("A task of the node failed", exc_info=error))

    # --- life -----------------------------------------------------------------------------------------

    async def start(self, on_taken: Callable[[], None] | None = None) -> None:
        """Be ready to serve clients when this returns; where it raises, nothing is held any more.

        `on_taken` is called once ports and directories are this node's, before it looks at its logs.
        """
        async with AsyncExitStack() as undo:
            await self._start(undo, on_taken)
            undo.pop_all()
        self.is_ready = True

    async def _start(self, undo: AsyncExitStack, on_taken: Callable[[], None] | None) -> None:
        config, runtime = self.config, self.runtime
        self.server = Server(self, runtime, config.max_request_size, config.int("connections.max.idle.ms"))
        undo.push_async_callback(self.server.close)
        bound = [self._bind(listener) for listener in config.broker_listeners]
        incarnation = UUID(bytes=runtime.rng.randbytes(16), version=4)
        undo.push_async_callback(self.logs.close, clean=False)
        self.logs.open()
        identity = prepare_directories(
            runtime,
            self.logs.directories,
            node_id=config.node_id,
            metadata_log_dir=config.metadata_log_dir,
            controller_endpoints=[VoterEndpoint(c.name, c.host, c.port) for c in config.controller_listeners],
        )
        self.cluster_id = identity.cluster_id
        if on_taken is not None:
            on_taken()
        raft = RaftDriver.open(
            runtime,
            config.metadata_log_dir,
            metadata_log_config(config),
            node_id=config.node_id,
            directory_id=identity.metadata_directory_id,
            static_voters=static_voters(config),
        )
        self._quorum = QuorumController(
            runtime,
            config,
            raft,
            self.metadata,
            cluster_id=self.cluster_id,
            incarnation_id=incarnation,
            slices=self.slices,
        )
        self.controller = self._quorum
        undo.push_async_callback(self._quorum.stop)
        self.lifecycle = BrokerLifecycle(
            config,
            self.controller,
            self.metadata,
            cluster_id=self.cluster_id,
            incarnation_id=incarnation,
            directory_ids=list(identity.directory_ids.values()),
            previous_broker_epoch=self._previous_broker_epoch(),
        )
        self.logs.on_offline = self._directory_failed
        undo.push_async_callback(self.lifecycle.close)
        self.producer_ids = ProducerIds(config.node_id, self.controller)
        undo.push_async_callback(self.producer_ids.close)
        await self._quorum.start(read_bootstrap(runtime.disk, config.metadata_log_dir))
        broker_epoch = await self.lifecycle.register(self._advertised(bound))
        self.producer_ids.broker_epoch = broker_epoch
        self._take_dynamic_configs()
        self._check_stored_protection()
        await self.server.address_limits.configure(config)
        self.metadata.subscribe(NoEffect(config).on_delta)
        self._recovery_told_s = asyncio.get_running_loop().time()
        threads = config.int("num.recovery.threads.per.data.dir")
        await self.logs.load_beside(self._topic_config, threads, self._is_stray)
        self.metadata.subscribe(
            self._take_configs,
            self._take_partitions,
            lambda delta: self._assigner.look_at(delta.changed_partitions),
            self._tell_groups,
        )
        await self.lifecycle.unfence()
        undo.push_async_callback(self.groups.close)
        self.groups.start()
        undo.push_async_callback(self.transactions.close)
        self.transactions.start()
        undo.push_async_callback(self._scope.close)
        start_chores(self._scope, config, self.logs, self.metrics.stalls, self._open_waiting)
        undo.push_async_callback(self.cleaner.close)
        self.cleaner.start()
        self._scope.spawn(self._assigner.run(self.controller, broker_epoch), name="assign directories")
        self.server.open()

    async def stop(self) -> None:
        """Leave in order; what was acknowledged is durable when this returns."""
        await self.server.close()
        await self.lifecycle.shut_down()
        self.replicas.is_stopping = True
        await self._quorum.finish()
        await self.groups.close()
        await self.transactions.close()
        await self.producer_ids.close()
        await self.cleaner.close()
        await self._scope.close()
        await self._quorum.stop()
        await self.logs.close(broker_epoch=self.lifecycle.broker_epoch)
        self.log_levels.restore()

    def _bind(self, listener: Listener) -> Listener:
        _, port = self.server.listen(listener.name, listener.host, listener.port)
        return listener._replace(port=port)

    def _advertised(self, bound: list[Listener]) -> list[Listener]:
        """What clients are told: as configured, with the port that the system chose where it was 0."""
        ports = {listener.name: listener.port for listener in bound}
        return [
            listener if listener.port else listener._replace(port=ports[listener.name])
            for listener in self.config.advertised_listeners
        ]

    def _previous_broker_epoch(self) -> int:
        """The epoch at which this broker stopped cleanly, or -1 where any of its directories did not."""
        epochs = {directory.previous_broker_epoch for directory in self.logs.directories}
        return epochs.pop() if len(epochs) == 1 else -1

    # --- metadata -------------------------------------------------------------------------------------

    def _take_partitions(self, delta: MetadataDelta) -> Paced[None]:
        changes = yield from self.replicas.apply_delta(delta)
        self.logs.persist_topic_ids()
        yield from self._take_roles(changes)

    def _take_roles(self, changes: RoleChanges) -> Paced[None]:
        for tp in changes.resigned:
            self._resigned(tp)
            yield FEW
        for partition in changes.elected:
            yield FEW
            if not partition.is_leading:
                continue  # it has gone meanwhile, with its topic or its directory
            topic, index = partition.topic_partition
            if topic == GROUP_METADATA_TOPIC:
                self.groups.on_elected(index, LedLog(partition))
            elif topic == TRANSACTION_STATE_TOPIC:
                self.transactions.on_elected(index, LedLog(partition))

    def _open_waiting(self) -> Reply[None]:
        return self.slices.run(self._open_in_slices(), own=True)

    def _open_in_slices(self) -> Paced[None]:
        waiting = self.replicas.waiting()
        if waiting:
            changes = yield from self.replicas.open_waiting()
            self.logs.persist_topic_ids()
            yield from self._assigner.look_at(waiting)
            yield from self._take_roles(changes)

    def _tell_groups(self, delta: MetadataDelta) -> Paced[None]:
        known, before = delta.image.topics_by_id, delta.previous.topics_by_id
        names = {topic.name for topic in delta.deleted_topics}
        has_new = False
        for topic_id in delta.changed_topics:
            yield FEW
            topic = known.get(topic_id)
            if topic is not None:
                names.add(topic.name)
                has_new = has_new or topic_id not in before
        if names:
            yield from self.groups.on_topics_changed(names, has_new=has_new)
        if delta.deleted_topics:
            self.groups.on_topics_deleted({topic.name: topic.id for topic in delta.deleted_topics})

    def _resigned(self, tp: TopicPartition) -> None:
        if tp.topic == GROUP_METADATA_TOPIC:
            self.groups.on_resigned(tp.partition)
        elif tp.topic == TRANSACTION_STATE_TOPIC:
            self.transactions.on_resigned(tp.partition)

    def _take_configs(self, delta: MetadataDelta) -> Paced[None]:
        """Configs come first, so that new logs open with them."""
        known = delta.image.topics_by_name
        changed: list[TopicImage] = []
        has_defaults = False
        for kind, name in delta.changed_configs:
            yield FEW
            if kind == RESOURCE_TOPIC and name in known:
                changed.append(known[name])
            has_defaults = has_defaults or kind == RESOURCE_BROKER
        if has_defaults:
            self._take_dynamic_configs()
            self._scope.spawn(self._limit_addresses(), name="limit addresses")
            changed = list(known.values())
            yield CONFIGURED
        yield from self.replicas.configs_changed(changed)

    def _take_dynamic_configs(self) -> None:
        image = self.metadata.image
        self.config.set_dynamic(
            image.config(RESOURCE_BROKER, str(self.config.node_id)), image.config(RESOURCE_BROKER, "")
        )
        self.groups.reconfigure(GroupConfig.from_node(self.config))
        self.cleaner.reconfigure(CleanerSettings.from_node(self.config))
        self.server.accept_waiting()
        self.logs.producer_id_expiration_ms = self.config.int("producer.id.expiration.ms")
        self.verifies_transactions = self.config.bool("transaction.partition.verification.enable")

    async def _limit_addresses(self) -> None:
        """Host names have to be resolved, which may take a while."""
        try:
            await self.server.address_limits.configure(self.config)
        except ConfigError as e:
            _log.error("The limits that were in force for addresses stay: %s", e)

    def _check_stored_protection(self) -> None:
        """What was set at run time, here or by Apache Kafka, must not promise more than this node gives."""
        try:
            check_protection(self.config)
        except ConfigError as e:
            raise ConfigError(e.key, e.value, e.reason, f"{e} (it is set in the metadata log)") from e

    def _topic_config(self, topic: str) -> TopicConfig:
        return TopicConfig.resolve(self.config, self.metadata.image.topic_config(topic))

    def _is_stray(self, tp: TopicPartition, topic_id: UUID | None) -> bool:
        """Whether the image gives a log on this disk to somebody else, or knows nothing of it."""
        topic = self.metadata.image.topics_by_name.get(tp.topic)
        if topic is None:
            return True
        if topic_id is not None and topic_id != topic.id and not is_damaged_topic_id(topic_id, topic.id):
            return True
        partition = topic.partitions.get(tp.partition)
        return partition is None or self.config.node_id not in partition.replicas

    def _group_partitions(self) -> int:
        topic = self.metadata.image.topics_by_name.get(GROUP_METADATA_TOPIC)
        return self.config.int("offsets.topic.num.partitions") if topic is None else len(topic.partitions)

    @property
    def serves_consumer_groups(self) -> bool:
        """Whether the cluster's features and this node's settings allow the consumer protocol (KIP-848)."""
        protocols = self.config.list("group.coordinator.rebalance.protocols")
        return self.metadata.image.features.get("group.version", 0) >= 1 and "consumer" in protocols

    def _directory_failed(self, path: str, failure: StorageError) -> None:
        leaving = self.replicas.take_offline(path, failure.message or "", self._resigned)
        self.slices.run(leaving, own=True).when_ready(_tell_failure)
        if all(directory.failure is not None for directory in self.logs.directories):
            return  # nothing is left to go on with
        for directory in self.logs.directories:
            if directory.path == path and directory.meta is not None:
                self.lifecycle.directory_failed(directory.meta.directory_id)

    def _tell_recovery(self) -> None:
        """Say about once a second how far the logs have come."""
        now_s = asyncio.get_running_loop().time()
        if now_s >= self._recovery_told_s + 1:
            self._recovery_told_s = now_s
            _log.info("%s", self.logs.recovery)

    # --- transactions ---------------------------------------------------------------------------------

    def transaction_version(self) -> int:
        """The cluster's: 2 and above give every transaction an epoch of its own."""
        return self.metadata.image.features.get("transaction.version", 0)

    def _transaction_partitions(self) -> int:
        topic = self.metadata.image.topics_by_name.get(TRANSACTION_STATE_TOPIC)
        if topic is None:
            return self.config.int("transaction.state.log.num.partitions")
        return len(topic.partitions)

    def _leader_of(self, tp: TopicPartition) -> int | None:
        topic = self.metadata.image.topics_by_name.get(tp.topic)
        partition = None if topic is None else topic.partitions.get(tp.partition)
        return None if partition is None else partition.leader

    def _deliver_markers(
        self, broker_id: int, markers: WriteMarkers, partitions: list[TopicPartition]
    ) -> Reply[Outcomes]:
        assert broker_id == self.config.node_id, "another broker's partitions are reached by its connection"
        return write_markers(self, markers, partitions, own=True)

    async def adding_partitions(
        self, transactional_id: str, producer: Identity, partitions: list[TopicPartition]
    ) -> None:
        """Make partitions part of a transaction; while the producer's last one is being ended, ask again."""
        pause_ms = self.config.int("add.partitions.to.txn.retry.backoff.ms")
        left_ms = self.config.int("add.partitions.to.txn.retry.backoff.max.ms")
        while True:
            try:
                await self.transactions.add_partitions(
                    transactional_id, producer, partitions, EPOCH_PER_TRANSACTION
                )
                return
            except KafkaError as e:
                if e.code is not ErrorCode.CONCURRENT_TRANSACTIONS or left_ms <= 0:
                    raise
            await asyncio.sleep(pause_ms / 1000)
            left_ms -= pause_ms

    # --- questions ------------------------------------------------------------------------------------

    @property
    def address(self) -> tuple[str, int]:
        """Where clients reach this node: its first broker listener."""
        return next(iter(self.server.addresses.values()))

    @property
    def is_active_controller(self) -> bool:
        return self._quorum.raft.failure is None

    @property
    def raft(self) -> RaftDriver:
        """This node's part in the quorum of the metadata log."""
        return self._quorum.raft

    def endpoint(self, node_id: int, listener: str) -> tuple[str, int, str | None] | None:
        """Host, port and rack of a broker on a listener."""
        broker = self.metadata.image.brokers.get(node_id)
        if broker is None or listener not in broker.endpoints:
            return None
        endpoint = broker.endpoints[listener]
        return endpoint.host, endpoint.port, broker.rack

    def new_session_id(self) -> int:
        return self.runtime.rng.randrange(1, 1 << 31)

    def trouble(self) -> str | None:
        """Why this node is not healthy, or None."""
        if not self.is_ready:
            return f"starting: {self.logs.recovery}" if self.logs.recovery.logs else "starting"
        for directory in self.logs.directories:
            if directory.failure is not None:
                return str(directory.failure)
        if self._quorum.raft.failure is not None:
            return str(self._quorum.raft.failure)
        return None
