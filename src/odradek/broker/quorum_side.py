"""A node's part in the quorum that has the metadata log, and its way to the active controller.

Every node has a replica of the log and follows it. A controller also votes, serves other nodes on its
controller listeners, and may become the active one.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from odradek.broker.controller_channel import RoutedController
from odradek.broker.controller_services import ControllerServices
from odradek.broker.first_start import FirstStart
from odradek.broker.loggers import LogLevels
from odradek.broker.neighbours import check_neighbours
from odradek.broker.network.server import Server
from odradek.broker.remote_controller import RemoteControllers
from odradek.broker.waiting_services import WaitingServices
from odradek.controller.quorum import QuorumController
from odradek.controller.registrar import ControllerRegistrar
from odradek.core.configs import NodeConfig
from odradek.core.metrics import Metrics
from odradek.log.files import FilePool
from odradek.log.managing.log_dir import LogDir
from odradek.metadata.formatting import NodeIdentity, read_bootstrap
from odradek.metadata.loader import MetadataLoader
from odradek.metadata.publisher import MetadataPublisher
from odradek.raft.asking import Asker
from odradek.raft.driver import Membership, RaftDriver
from odradek.raft.opening import check_quorum_state, open_replica
from odradek.raft.serving import ReplicaService
from odradek.raft.settings import bootstrap_servers, metadata_log_config, raft_times, static_voters
from odradek.raft.voters import VoterEndpoint
from odradek.runtime.api import Runtime
from odradek.runtime.slices import Slices

MAX_CONNECTIONS: Final = 1000
"""Of brokers, other controllers and tools."""
_EVERY_ADDRESS: Final = ("", "0.0.0.0", "::")
"""A host that a listener is bound to, and that nobody can be reached by: the voters keep what they know."""


class QuorumSide:
    """`listen`, `identify`: learn the cluster; then `join`, then `start`. `close` at the end."""

    raft: RaftDriver
    loader: MetadataLoader
    channel: RoutedController
    local: QuorumController | None
    """The controller of this node; None on a node that is only a broker."""

    def __init__(
        self,
        config: NodeConfig,
        runtime: Runtime,
        metrics: Metrics,
        files: FilePool,
        metadata: MetadataPublisher,
        slices: Slices,
        log_levels: LogLevels,
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._metadata = metadata
        self._slices = slices
        self._log_levels = log_levels
        self.server = Server(config, runtime, metrics, files, MAX_CONNECTIONS)
        self._registrar: ControllerRegistrar | None = None
        self._directories: list[LogDir] = []
        self._waiting = WaitingServices(
            slices=slices, metadata=metadata, config=config, log_levels=log_levels
        )

    # --- start ----------------------------------------------------------------------------------------

    def listen(self) -> list[VoterEndpoint]:
        """Bind the controller listeners, and give what others reach them by. Nobody is accepted yet.

        A quorum of one that leaves the port to the system is asked by nobody: nobody could know it.
        """
        endpoints, config = [], self._config
        for listener, known in zip(
            config.controller_listeners, config.advertised_controller_listeners, strict=True
        ):
            port = listener.port
            if port or not config.is_quorum_of_one:
                port = self.server.listen(listener.name, listener.host, listener.port)[1]
            endpoints.append(VoterEndpoint(known.name, known.host, known.port or port))
        return endpoints

    def take_directory(self) -> list[LogDir]:
        """Open and lock metadata.log.dir where it is none of log.dirs. Raises as LogDir.open does."""
        path = self._config.metadata_log_dir.rstrip("/")
        if path not in [directory.rstrip("/") for directory in self._config.log_dirs]:
            self._directories = [LogDir(self._runtime.disk, path)]
            self._directories[0].open()
        return self._directories

    async def identify(
        self, directories: Sequence[LogDir], endpoints: Sequence[VoterEndpoint]
    ) -> NodeIdentity:
        """The ids of this node. Directories that nobody formatted may have to wait for other nodes."""
        if self._config.is_controller:
            await self.server.address_limits.configure(self._config)
        waiting = self._waiting
        return await FirstStart(
            self._config, self._runtime, directories, endpoints, waiting, lambda: self.server.open(waiting)
        ).identify()

    def join(self, identity: NodeIdentity, incarnation: UUID, endpoints: Sequence[VoterEndpoint]) -> None:
        """Open the replica and make what stands on it. Raises OSError, QuorumError, QuorumStateError."""
        config, runtime = self._config, self._runtime
        listener_name = config.controller_listener_names[0]
        opened = open_replica(
            runtime, config.metadata_log_dir, metadata_log_config(config), static_voters(config)
        )
        asker = Asker(
            identity.cluster_id,
            listener_name,
            max_fetch_bytes=config.int("controller.quorum.fetch.max.bytes"),
            max_snapshot_bytes=config.int("controller.quorum.fetch.snapshot.max.bytes"),
        )
        membership = Membership(
            config.node_id,
            identity.metadata_directory_id,
            asker,
            tuple(e for e in endpoints if e.host not in _EVERY_ADDRESS),
            bootstrap_servers(config),
            listener_name,
            auto_join=config.is_controller and config.bool("controller.quorum.auto.join.enable"),
        )
        check_quorum_state(
            runtime.disk, config.metadata_log_dir, opened, config.node_id, identity.metadata_directory_id
        )
        self.raft = raft = RaftDriver(runtime, opened, raft_times(config), membership)
        self.loader = MetadataLoader(runtime, config, raft, self._metadata, self._slices)
        self._remotes = RemoteControllers(
            runtime,
            config.node_id,
            config.int("controller.socket.timeout.ms"),
            lambda controller_id: raft.leader_endpoint if controller_id == raft.leader_id else None,
        )
        self.local = None
        if config.is_controller:
            self.local = QuorumController(
                runtime,
                config,
                raft,
                self.loader,
                cluster_id=identity.cluster_id,
                incarnation_id=incarnation,
                slices=self._slices,
                bootstrap=read_bootstrap(runtime.disk, config.metadata_log_dir),
            )
        self.channel = RoutedController(
            config, raft, self.loader, self.local, self._remotes.call, self._metadata
        )
        if self.local is not None:
            self._registrar = ControllerRegistrar(config, incarnation, self.channel, self._metadata)

    async def start(self, cluster_id: str) -> None:
        """Load what the replica has, accept other nodes, and take part. Raises QuorumError where other nodes
        make that impossible."""
        if not self._config.is_quorum_of_one:
            await check_neighbours(
                self._config, self._runtime, self.raft.facts.voters, cluster_id, self._waiting.asked_by
            )
        await self.loader.load()
        if self._registrar is not None:
            self._metadata.subscribe(self._registrar.on_delta)
        if self.local is not None:
            self.server.open(self._services(self.local, cluster_id))
        self.raft.start()

    def _services(self, local: QuorumController, cluster_id: str) -> ControllerServices:
        return ControllerServices(
            slices=self._slices,
            config=self._config,
            cluster_id=cluster_id,
            log_levels=self._log_levels,
            metadata=self._metadata,
            controller=local,
            raft=self.raft,
            replica=ReplicaService(self.raft, cluster_id),
        )

    # --- how it stands --------------------------------------------------------------------------------

    @property
    def is_active(self) -> bool:
        """Whether the controller on this node is the one that decides."""
        return self.local is not None and self.local.is_active

    # --- stop -----------------------------------------------------------------------------------------

    async def finish(self) -> None:
        """Ask and decide nothing more; what was decided is committed and applied."""
        self.channel.close()
        if self._registrar is not None:
            await self._registrar.close()
        if self.local is not None:
            await self.local.finish()
        else:
            await self.loader.finish()

    async def close(self) -> None:
        """Leave the quorum, make durable what was decided, and give the log up."""
        await self.finish()
        await self.raft.close()
        await self.close_server()
        self._remotes.close()

    async def close_server(self) -> None:
        """Where the node never got to `join`."""
        await self.server.close()
        for directory in self._directories:
            directory.unlock()
