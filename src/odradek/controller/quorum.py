"""The controller of this node: it claims when this replica leads the quorum, and resigns when it does not.

It claims once the first record of its epoch is committed and replayed: then it knows all that was decided
before. Until then, and after its resignation, every call is answered NOT_CONTROLLER. What it does between
the two is active.py's.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from odradek.controller.active import ActiveController
from odradek.controller.controller import Controller
from odradek.controller.kraft_version import update_features
from odradek.controller.metrics import ControllerMetrics
from odradek.controller.quorum_description import describe_quorum
from odradek.core.configs import NodeConfig
from odradek.core.errors import ErrorCode, ExhaustedError, KafkaError
from odradek.core.types import NO_LEADER
from odradek.metadata.loader import MetadataLoader
from odradek.metadata.records import MetadataRecord
from odradek.raft.driver import RaftDriver
from odradek.raft.serving import ReplicaService
from odradek.runtime.api import Runtime
from odradek.runtime.scope import Scope
from odradek.runtime.slices import Slices
from odradek.wire.api_keys import ApiKey

_log = logging.getLogger(__name__)

_RETRY_SECONDS = 0.2
_CHANGES_OF_VOTERS = frozenset((ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER))
"""The replica decides them: its voters are in records of the quorum, not of the metadata."""


class QuorumController:
    """Goes by what the quorum says: who leads, that the disk failed. `on_changed`: it claimed or resigned,
    or another node leads."""

    def __init__(
        self,
        runtime: Runtime,
        config: NodeConfig,
        raft: RaftDriver,
        loader: MetadataLoader,
        *,
        cluster_id: str,
        incarnation_id: UUID,
        slices: Slices,
        bootstrap: Sequence[MetadataRecord] | None = None,
    ) -> None:
        self._runtime = runtime
        self._config = config
        self.raft = raft
        self._loader = loader
        self._cluster_id = cluster_id
        self.metrics = ControllerMetrics()
        self._replica = ReplicaService(raft, cluster_id)
        self._incarnation_id = incarnation_id
        self._slices = slices
        self._bootstrap = bootstrap
        self._active: ActiveController | None = None
        self._ticking: asyncio.Task[None] | None = None
        self._is_finishing = False
        self._last_leader_id = NO_LEADER
        self._scope = Scope(lambda error: _log.error("A task of the controller failed", exc_info=error))
        self.on_changed: Callable[[], None] = lambda: None
        raft.on_leader_changed = self._on_leader_changed
        raft.on_failed = self._on_failed
        loader.on_failed = self._on_failed

    @property
    def is_active(self) -> bool:
        """Whether the controller on this node is the one that decides."""
        return self._active is not None

    @property
    def controller(self) -> Controller:
        assert self._active is not None, "the controller on this node is not the active one"
        return self._active.controller

    async def call(self, api_key: ApiKey, request: Any) -> Any:
        """Decide, and answer once everything the answer rests on is committed.

        Raises NOT_CONTROLLER where another node decides, and where this one was deposed meanwhile.
        """
        if self.raft.failure is not None:
            raise self.raft.failure
        if self._active is None:
            raise _not_controller()
        if api_key is ApiKey.DESCRIBE_QUORUM:
            return await self._slices.run(describe_quorum(self.raft, request, self._runtime.clock.now_ms()))
        if api_key in _CHANGES_OF_VOTERS:
            return await self._replica.receive(api_key, 0, request)
        if api_key is ApiKey.UPDATE_FEATURES:
            return await update_features(self.raft, self._active, request)
        return await self._active.call(api_key, request)

    def broker_proved(self, broker_id: int, broker_epoch: int, connection: int) -> None:
        """A broker has named its current epoch on a connection to this node."""
        if self._active is not None:
            self._active.quick_fencer.proved(broker_id, broker_epoch, connection)

    def connection_broke(self, connection: int) -> None:
        if self._active is not None:
            self._active.quick_fencer.broke(connection)

    async def finish(self) -> None:
        """Decide nothing more, and wait until all that was decided is committed and applied."""
        self._is_finishing = True
        await self._scope.close()
        if self._active is not None:
            await self._active.close()
        await self._loader.finish()

    async def stop(self) -> None:
        """Make durable what was decided and give the log up."""
        await self.finish()
        await self.raft.close()

    # --- claim and resignation ------------------------------------------------------------------------

    def _on_leader_changed(self, epoch: int, leader_id: int) -> None:
        if self._active is not None and not self._leads(self._active.epoch):
            self._resign(_not_controller())
        if self._active is None and self._leads(epoch) and not self._is_finishing:
            self._scope.spawn(self._claim(epoch, self.raft.epoch_start_offset), name="claim controller")
        if leader_id not in (NO_LEADER, self.raft.node_id):
            self._last_leader_id = leader_id
        self.on_changed()

    def _on_failed(self, failure: KafkaError) -> None:
        if self._active is not None:
            self._resign(failure)
        self.raft.resign()
        self.on_changed()

    def _leads(self, epoch: int) -> bool:
        return self.raft.is_leader and self.raft.epoch == epoch and self.raft.failure is None

    async def _claim(self, epoch: int, epoch_start_offset: int) -> None:
        await self._loader.when_followed(epoch_start_offset)
        while self._active is None and self._leads(epoch):
            active = self._active = ActiveController(
                self._runtime,
                self._config,
                self.raft,
                self._loader,
                self._slices,
                cluster_id=self._cluster_id,
                metrics=self.metrics,
            )
            self.on_changed()  # all who wait go on once it has begun, and share its flush
            try:
                active.begin(self._bootstrap, self._incarnation_id)
            except ExhaustedError as e:
                _log.warning("The controller cannot begin yet: %s", e)
                self._resign(_not_controller())
                await asyncio.sleep(_RETRY_SECONDS)
                await self._loader.when_followed(self.raft.log_end_offset - 1)
            except Exception:
                self.raft.resign()
                raise
            else:
                self._ticking = self._scope.spawn(active.tick(), name="controller-tick")
                if self.raft.is_lost(self._last_leader_id):
                    active.lost_leader(self._last_leader_id)
                level = logging.DEBUG if self.raft.is_alone else logging.INFO
                _log.log(level, "The controller of node %d is active at epoch %d", self.raft.node_id, epoch)

    def _resign(self, refusal: KafkaError) -> None:
        active, self._active = self._active, None
        assert active is not None
        active.resign(refusal)
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None


def _not_controller() -> KafkaError:
    return KafkaError(ErrorCode.NOT_CONTROLLER)
