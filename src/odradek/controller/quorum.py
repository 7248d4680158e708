"""The controller on this node: its decisions go through the quorum's log and are answered when committed.

What is decided is controller.py's, how records become durable raft's. Here is the order between them: stage,
encode, append, take, wait for the commit, answer. What is long of it is done in slices, but for one append:
the records of a request are one batch. Nothing else is decided meanwhile (decisions.py).
The staged image, at the end of the log, is the controller's. What is committed of it is the loader's
(metadata/loader.py), which publishes it and writes snapshots.
"""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import UUID

from odradek.controller.controller import Controller
from odradek.controller.decisions import Decisions, Rank, rank_of
from odradek.controller.quorum_description import describe_quorum
from odradek.core.configs import NodeConfig
from odradek.core.errors import KafkaError
from odradek.metadata.bootstrap import bootstrap_batch, bootstrap_features
from odradek.metadata.delta import full_delta
from odradek.metadata.loader import MetadataLoader
from odradek.metadata.records import (
    AbortTransactionRecord,
    MetadataRecord,
    NoOpRecord,
    encode_record,
)
from odradek.metadata.versions import SUPPORTED_FEATURES
from odradek.raft.driver import RaftDriver
from odradek.runtime.api import Runtime
from odradek.runtime.scope import Scope
from odradek.runtime.slices import Paced, Slices, at_once
from odradek.wire import requests
from odradek.wire.api_keys import ApiKey

_log = logging.getLogger(__name__)

_TICK_SECONDS = 0.5
_STALL_SECONDS = 1.0
_ENCODED = 25
"""What it takes to encode a record."""
_ANSWERED_WHEN_COMMITTED = frozenset((ApiKey.BROKER_HEARTBEAT, ApiKey.ALLOCATE_PRODUCER_IDS))
"""Nobody who asks these looks for partitions afterwards, and sessions end while many are being created."""


class QuorumController:
    """A ControllerChannel to this node's own controller. `start` loads, leads and bootstraps."""

    def __init__(
        self,
        runtime: Runtime,
        config: NodeConfig,
        raft: RaftDriver,
        loader: MetadataLoader,
        *,
        cluster_id: str,
        incarnation_id: UUID,
        slices: Slices | None = None,
    ) -> None:
        self._runtime = runtime
        self._config = config
        self.raft = raft
        self._loader = loader
        self._cluster_id = cluster_id
        self._incarnation_id = incarnation_id
        self._controller: Controller | None = None
        self._slices = slices or Slices()
        self._decisions = Decisions(self._slices)
        self._last_append_time = 0.0
        self._scope = Scope(self._task_failed)

    # --- start and stop -------------------------------------------------------------------------------

    async def start(self, bootstrap: Sequence[MetadataRecord] | None = None) -> None:
        """Load the image, lead, and give a new log its first records. Nothing of it is committed yet.

        `bootstrap` are the records of bootstrap.checkpoint, else those of a cluster of this release.
        """
        replayer = self._loader.load()
        self.raft.start()
        controller = self._controller = Controller(
            config=self._config,
            cluster_id=self._cluster_id,
            kraft_version=self.raft.facts.kraft_version,
            rng=self._runtime.rng,
            replayer=replayer,
        )
        self._begin_epoch(controller)
        if replayer.in_transaction:
            at_once(self._append([AbortTransactionRecord(reason="The controller that began it is gone")]))
        if not controller.image.metadata_version:
            records = bootstrap_features() if bootstrap is None else bootstrap
            at_once(self._append(bootstrap_batch(records, self._config.int("min.insync.replicas"))))
        controller.start_sessions(self._incarnation_id, self._session_ms())
        self._register()
        self._scope.spawn(self._tick(), name="controller-tick")

    def _begin_epoch(self, controller: Controller) -> None:
        """The first thing to publish is all that was loaded, once this epoch's first record is committed."""
        last_offset = self.raft.log_end_offset - 1
        staging = controller.stage(
            [], last_offset=last_offset, epoch=self.raft.epoch, timestamp_ms=self._runtime.clock.now_ms()
        )
        image = controller.take(at_once(staging)).image
        self._loader.appended(last_offset, full_delta(image))

    def _register(self) -> None:
        """Tell the cluster where this controller is and what it supports."""
        types = requests.controller_registration
        protocols = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
        request = types.ControllerRegistrationRequest(
            controller_id=self._config.node_id,
            incarnation_id=self._incarnation_id,
            listeners=[
                types.Listener(
                    name=listener.name,
                    host=listener.host,
                    port=listener.port,
                    security_protocol=protocols[listener.security_protocol],
                )
                for listener in self._config.controller_listeners
            ],
            features=[
                types.Feature(name=name, min_supported_version=levels.min, max_supported_version=levels.max)
                for name, levels in SUPPORTED_FEATURES.items()
            ],
        )
        at_once(self._decide(ApiKey.CONTROLLER_REGISTRATION, request))

    async def finish(self) -> None:
        """Decide nothing more, and wait until all that was decided is committed and applied."""
        await self._scope.close()
        await self._decisions.close()
        await self._loader.finish()

    async def stop(self) -> None:
        """Make durable what was decided and give the log up."""
        await self.finish()
        await self.raft.close()

    @property
    def is_active(self) -> bool:
        """Whether the controller on this node is the one that decides."""
        return self.raft.is_leader and self.raft.failure is None

    # --- commands -------------------------------------------------------------------------------------

    @property
    def controller(self) -> Controller:
        assert self._controller is not None, "the controller has not been started"
        return self._controller

    async def call(self, api_key: ApiKey, request: Any) -> Any:
        """Decide, and answer once everything the answer rests on is committed."""
        if self.raft.failure is not None:
            raise self.raft.failure
        if api_key is ApiKey.DESCRIBE_QUORUM:
            return await self._slices.run(describe_quorum(self.raft, request, self._runtime.clock.now_ms()))
        deciding = self._decisions.run(partial(self._decide, api_key, request), rank_of(api_key, request))
        response, last_offset = await deciding
        if self.raft.failure is not None:
            raise self.raft.failure
        if api_key in _ANSWERED_WHEN_COMMITTED:
            await self._loader.when_committed(last_offset)
        else:
            await self._loader.when_applied(last_offset)
        return response

    def _decide(self, api_key: ApiKey, request: Any) -> Paced[tuple[Any, int]]:
        """The answer, and the last offset of all that it rests on."""
        result = yield from self.controller.handle(
            api_key, request, self._session_ms(), self.raft.log_end_offset
        )
        if result.records:
            yield from self._append(result.records)
        return result.response, self.raft.log_end_offset - 1

    def _append(self, records: Sequence[MetadataRecord]) -> Paced[None]:
        """All or nothing: what the log does not take does not happen. Whether this replica still leads is
        looked at when all is ready to be appended."""
        controller = self.controller
        now_ms = self._runtime.clock.now_ms()
        staged = yield from controller.stage(
            records,
            last_offset=self.raft.log_end_offset + len(records) - 1,
            epoch=self.raft.epoch,
            timestamp_ms=now_ms,
        )
        versions = controller.versions
        values = []
        for record in records:
            values.append(encode_record(record, versions.of(record)))
            yield _ENCODED
        last_offset = self.raft.append(values, now_ms)
        assert last_offset == staged.delta.image.offset
        delta = controller.take(staged)
        self._loader.appended(last_offset, delta)
        self._last_append_time = asyncio.get_running_loop().time()
        yield from controller.note_names(delta)

    # --- over time ------------------------------------------------------------------------------------

    async def _tick(self) -> None:
        """Fence the silent, and keep an idle log moving. After a stall, silence proves nothing yet."""
        loop = asyncio.get_running_loop()
        idle_seconds = self._config.int("metadata.max.idle.interval.ms") / 1000
        period = min(_TICK_SECONDS, idle_seconds) if idle_seconds else _TICK_SECONDS
        while self.raft.failure is None:
            due = loop.time() + period
            await asyncio.sleep(period)
            try:
                if loop.time() - due < _STALL_SECONDS:
                    await self._decisions.run(self._fence_the_silent, Rank.TICK)
                if idle_seconds and loop.time() - self._last_append_time >= idle_seconds:
                    await self._decisions.run(partial(self._append, [NoOpRecord()]), Rank.TICK)
            except KafkaError as e:
                _log.error("The controller cannot go on: %s", e)

    @staticmethod
    def _session_ms() -> int:
        """Time for sessions: a wall clock that is set forward must not end them."""
        return int(asyncio.get_running_loop().time() * 1000)

    def _fence_the_silent(self) -> Paced[None]:
        while True:
            broker, records = yield from self.controller.expire_session(self._session_ms())
            if broker is None:
                return
            _log.info(
                "Fencing broker %d at epoch %d because its session has timed out.", broker.id, broker.epoch
            )
            yield from self._append(records)

    def _task_failed(self, error: BaseException) -> None:
        _log.error("A task of the controller failed", exc_info=error)
