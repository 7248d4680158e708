"""The active controller, from its claim to its resignation: its decisions go through the quorum's log.

What is decided is controller.py's, how records become durable raft's. Here is the order between them: stage,
encode, append, hand over, wait for the commit, answer. What is long of it is done in slices, but for one
append: the records of an atomic request are one batch. Nothing else is decided meanwhile (decisions.py).
The staged image, at the end of the log, lives and dies with this object. What is committed of it is the
loader's (metadata/loader.py), which publishes it and writes snapshots.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from odradek.controller.controller import Controller
from odradek.controller.decisions import Decisions, Rank, rank_of
from odradek.controller.electing import MAX_ELECTIONS
from odradek.controller.elections import Election, ElectionKind
from odradek.controller.metrics import ControllerMetrics
from odradek.controller.periodic import PeriodicElections
from odradek.controller.quick_fencer import QuickFencer
from odradek.controller.registrar import is_missing, registration_request
from odradek.controller.result import split
from odradek.core.configs import NodeConfig
from odradek.core.errors import KafkaError
from odradek.metadata.loader import MetadataLoader
from odradek.metadata.quorum_replica import QuorumReplica
from odradek.metadata.records import MetadataRecord, NoOpRecord, encode_record
from odradek.runtime.api import Runtime
from odradek.runtime.slices import Paced, Slices, at_once
from odradek.wire.api_keys import ApiKey

_log = logging.getLogger(__name__)

_TICK_SECONDS = 0.5
_STALL_SECONDS = 1.0
_TO_LAST_LEADER = -1
"""Stands for the connection over which this node followed the last leader."""
_ENCODED = 25
"""What it takes to encode a record."""
_ANSWERED_WHEN_COMMITTED = frozenset(
    (ApiKey.BROKER_HEARTBEAT, ApiKey.ALLOCATE_PRODUCER_IDS, ApiKey.ALTER_PARTITION)
)
"""Nobody who asks these looks for partitions afterwards, and sessions end while many are being created.
Producers wait for an ISR that shrinks."""


class ActiveController:
    """Made when the first record of its epoch is committed and replayed. `begin`, then `call` and `tick`."""

    def __init__(
        self,
        runtime: Runtime,
        config: NodeConfig,
        raft: QuorumReplica,
        loader: MetadataLoader,
        slices: Slices,
        *,
        cluster_id: str,
        metrics: ControllerMetrics | None = None,
    ) -> None:
        self._metrics = metrics or ControllerMetrics()
        self._runtime = runtime
        self._config = config
        self._raft = raft
        self._loader = loader
        self._decisions = Decisions(slices, self._metrics)
        self._last_append_time = 0.0
        self._session_ms = config.int("broker.session.timeout.ms")
        self._refusal: KafkaError | None = None
        self.epoch = raft.epoch
        self.controller = Controller(
            config=config,
            cluster_id=cluster_id,
            kraft_version=raft.facts.kraft_version,
            rng=runtime.rng,
            replayer=loader.take_over(),
        )
        self.quick_fencer = QuickFencer(runtime, config, self._broker_endpoint, self._fence_refusing)

    def begin(self, bootstrap: Sequence[MetadataRecord] | None, incarnation_id: UUID) -> None:
        """End what the last controller left open, give a new log its first records, register.

        `bootstrap` are the records of bootstrap.checkpoint, else those of a cluster of this release.
        """
        for batch in self.controller.activation(bootstrap).batches():
            is_appended = at_once(self._append(batch, self._raft.log_end_offset))
            assert is_appended, "nobody else appends meanwhile"
        self.controller.start_sessions(incarnation_id, _session_ms())
        if is_missing(self.controller.image, self._config.node_id, incarnation_id):
            request = registration_request(self._config, incarnation_id)
            at_once(self._decide(ApiKey.CONTROLLER_REGISTRATION, request))

    def resign(self, refusal: KafkaError) -> None:
        """Write nothing more, answer nobody who was not answered, and drop what is not committed."""
        assert self._refusal is None, "a controller resigns once"
        self._refusal = refusal
        self.quick_fencer.stop()
        self._decisions.refuse(refusal)
        self._loader.release(refusal)

    async def close(self) -> None:
        """Decide nothing more, and let end what has begun."""
        self.quick_fencer.stop()
        await self._decisions.close()

    # --- commands -------------------------------------------------------------------------------------

    async def call(self, api_key: ApiKey, request: Any) -> Any:
        """Decide, and answer once everything the answer rests on is committed."""
        began_ms = _session_ms()
        deciding = self._decisions.run(partial(self._decide, api_key, request), rank_of(api_key, request))
        response, last_offset = await deciding
        self._check()
        if api_key in _ANSWERED_WHEN_COMMITTED:
            await self._loader.when_committed(last_offset)
        else:
            await self._loader.when_applied(last_offset)
        if api_key is ApiKey.BROKER_HEARTBEAT and 2 * (_session_ms() - began_ms) > self._session_ms:
            self._metrics.timed_out_heartbeats += 1
        return response

    def _check(self) -> None:
        """Raise the reason where this controller has resigned."""
        if self._refusal is not None:
            raise self._refusal

    def _decide(self, api_key: ApiKey, request: Any) -> Paced[tuple[Any, int]]:
        """The answer, and the last offset of all that it rests on."""
        controller, facts = self.controller, self._raft.facts
        controller.kraft_version = facts.kraft_version
        controller.voter_ids = () if facts.voters is None else facts.voters.ids
        is_decided = False
        while not is_decided:
            base_offset = self._raft.log_end_offset
            result = yield from controller.handle(api_key, request, _session_ms(), base_offset)
            is_decided = yield from self._append_all(result.batches(), base_offset)
        return result.response, controller.image.offset

    def _append_all(self, batches: Iterator[Sequence[MetadataRecord]], base_offset: int) -> Paced[bool]:
        """One after the other. False where the first did not get the offset for which it was decided."""
        first = next(batches, None)
        if first is not None and not (yield from self._append(first, base_offset)):
            return False
        for batch in batches:
            while not (yield from self._append(batch, self._raft.log_end_offset)):
                pass
        return True

    def _append(self, records: Sequence[MetadataRecord], base_offset: int) -> Paced[bool]:
        """All or nothing: what the log does not take does not happen.

        False where the quorum wrote a record of its own at the offset meanwhile: decide again. Whether this
        controller is still the active one is looked at when all is ready to be appended.
        """
        controller, raft = self.controller, self._raft
        now_ms = self._runtime.clock.now_ms()
        staged = yield from controller.stage(
            records, last_offset=base_offset + len(records) - 1, epoch=self.epoch, timestamp_ms=now_ms
        )
        versions = controller.versions
        values = []
        elections: list[ElectionKind] = []
        for record in records:
            values.append(encode_record(record, versions.of(record)))
            kind = controller.election_of(record)
            if kind is not None:
                elections.append(kind)
            yield _ENCODED
        self._check()
        if raft.log_end_offset != base_offset:
            return False
        last_offset = raft.append(values, now_ms)
        assert (raft.epoch, last_offset) == (self.epoch, base_offset + len(records) - 1)
        delta = controller.take(staged)
        self._loader.appended(last_offset, staged)
        self._count(elections)
        self._last_append_time = asyncio.get_running_loop().time()
        yield from controller.note_names(delta)
        return True

    def _count(self, elections: Sequence[ElectionKind]) -> None:
        for kind in ElectionKind:
            self._metrics.elections[kind] += elections.count(kind)
        unclean = elections.count(ElectionKind.UNCLEAN)
        if unclean:
            _log.warning("Elected %d leader(s) uncleanly: they may lack committed records.", unclean)

    # --- over time ------------------------------------------------------------------------------------

    async def tick(self) -> None:
        """Fence the silent, hold periodic elections, and keep an idle log moving. After a stall, silence
        proves nothing yet."""
        loop = asyncio.get_running_loop()
        idle_seconds = self._config.int("metadata.max.idle.interval.ms") / 1000
        elections = PeriodicElections(self._config, _session_ms())
        period = min(_TICK_SECONDS, elections.shortest_ms / 1000, idle_seconds or _TICK_SECONDS)
        while self._refusal is None:
            due = loop.time() + period
            await asyncio.sleep(period)
            try:
                if loop.time() - due < _STALL_SECONDS:
                    await self._decisions.run(self._fence_the_silent, Rank.TICK)
                for election in elections.take_due(_session_ms()):
                    while await self._decisions.run(partial(self._elect, election), Rank.TICK):
                        pass
                if idle_seconds and loop.time() - self._last_append_time >= idle_seconds:
                    await self._decisions.run(self._write_no_op, Rank.TICK)
            except KafkaError as e:
                if self._refusal is None:
                    _log.error("The controller cannot go on: %s", e)

    def _write_no_op(self) -> Paced[bool]:
        return self._append([NoOpRecord()], self._raft.log_end_offset)

    def _fence_the_silent(self) -> Paced[None]:
        while True:
            base_offset = self._raft.log_end_offset
            broker, records = yield from self.controller.expire_session(_session_ms())
            if broker is None:
                return
            if (yield from self._append_all(split(records), base_offset)):
                _log.info(
                    "Fencing broker %d at epoch %d because its session has timed out.",
                    broker.id,
                    broker.epoch,
                )

    def _elect(self, election: Election) -> Paced[bool]:
        """Whether more may be left to elect."""
        while True:
            base_offset = self._raft.log_end_offset
            records = yield from self.controller.elect(election)
            if (yield from self._append_all(split(records), base_offset)):
                return len(records) == MAX_ELECTIONS

    # --- brokers that nobody hears any more -----------------------------------------------------------

    def lost_leader(self, node_id: int) -> None:
        """The node that led before is gone, as the connection to it is: so is the broker in its process."""
        image = self.controller.image
        broker, controller = image.brokers.get(node_id), image.controllers.get(node_id)
        if broker is None or controller is None or broker.incarnation_id != controller.incarnation_id:
            return
        self.quick_fencer.proved(node_id, broker.epoch, _TO_LAST_LEADER)
        self.quick_fencer.broke(_TO_LAST_LEADER)

    def _broker_endpoint(self, broker_id: int) -> tuple[str, int] | None:
        broker = self.controller.image.brokers.get(broker_id)
        if broker is None or not broker.endpoints:
            return None
        name = self._config.inter_broker_listener_name
        endpoint = broker.endpoints.get(name) or next(iter(broker.endpoints.values()))
        return endpoint.host, endpoint.port

    async def _fence_refusing(self, broker_id: int, broker_epoch: int, since_ms: int) -> None:
        try:
            await self._decisions.run(
                partial(self._fence_unheard, broker_id, broker_epoch, since_ms), Rank.BROKER
            )
        except KafkaError as e:
            if self._refusal is None:
                _log.error("The controller cannot fence broker %d: %s", broker_id, e)

    def _fence_unheard(self, broker_id: int, broker_epoch: int, since_ms: int) -> Paced[None]:
        """Unless a heartbeat was decided meanwhile."""
        session = self.controller.sessions.get(broker_id)
        if session is not None and session.last_contact_ms > since_ms:
            return
        while True:
            base_offset = self._raft.log_end_offset
            records = yield from self.controller.fence(broker_id, broker_epoch)
            if not records:
                return
            if (yield from self._append_all(split(records), base_offset)):
                _log.info(
                    "Fencing broker %d at epoch %d because its connection broke and its address refuses "
                    "others.",
                    broker_id,
                    broker_epoch,
                )
                return


def _session_ms() -> int:
    """Time for sessions: a wall clock that is set forward must not end them."""
    return int(asyncio.get_running_loop().time() * 1000)
