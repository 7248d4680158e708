"""Following the metadata log: every node does it, with or without a controller of its own.

The loader owns what is committed: it reads snapshot and log at the start, publishes each delta once its
offsets are committed, and writes snapshots. It decides nothing.
The active controller owns what is staged: the image at the end of the log, ahead of the committed one. It
hands over the delta of each batch that it appends (`appended`), so that its node replays a batch only once.
"""

import logging
from collections import deque
from typing import NamedTuple

from odradek.core.configs import NodeConfig
from odradek.core.errors import KafkaError
from odradek.metadata.delta import MetadataDelta
from odradek.metadata.log_reader import LogReader
from odradek.metadata.offset_waiters import OffsetWaiters
from odradek.metadata.publisher import MetadataPublisher
from odradek.metadata.replay import Replayer
from odradek.metadata.snapshot_writer import SnapshotWriter
from odradek.raft.driver import RaftDriver
from odradek.runtime.api import Runtime
from odradek.runtime.scope import Scope
from odradek.runtime.slices import Slices

_log = logging.getLogger(__name__)


class _Pending(NamedTuple):
    """A delta that waits for its last offset to be committed."""

    last_offset: int
    delta: MetadataDelta


class MetadataLoader:
    """From raft's committed batches to the publisher's subscribers."""

    def __init__(
        self,
        runtime: Runtime,
        config: NodeConfig,
        raft: RaftDriver,
        publisher: MetadataPublisher,
        slices: Slices,
    ) -> None:
        self._runtime = runtime
        self._raft = raft
        self._publisher = publisher
        self._pending: deque[_Pending] = deque()
        self._committed = OffsetWaiters()
        self._applied = OffsetWaiters()
        self._snapshots = SnapshotWriter(runtime, config, raft, publisher, slices)
        self._is_finishing = False
        self._scope = Scope(
            lambda error: _log.error("A snapshot of the metadata was not written", exc_info=error)
        )
        raft.on_committed = self._on_committed
        raft.on_failed = self._on_failed
        publisher.on_applied = self._applied.release

    def load(self) -> Replayer:
        """Read snapshot and log. The replayer holds all of the log; nothing is published yet.

        A replica that is the only voter commits all of its log as soon as it leads.
        """
        replayer = Replayer()
        reader = LogReader(replayer)
        self._raft.load(lambda i, timestamp_ms: reader.snapshot_end(*i, timestamp_ms), reader.add)
        reader.flush()
        self._snapshots.loaded(reader.bytes_read, reader.first_timestamp_ms)
        self._publisher.kraft_version = self._raft.facts.kraft_version
        return replayer

    def appended(self, last_offset: int, delta: MetadataDelta) -> None:
        """The active controller on this node appended a batch up to an offset: publish its delta then."""
        assert not self._pending or self._pending[-1].last_offset < last_offset, "batches come in order"
        self._pending.append(_Pending(last_offset, delta))

    async def when_committed(self, offset: int) -> None:
        """Wait until the quorum has an offset. Raises what kept the log from taking it."""
        if offset >= self._raft.high_watermark:
            await self._committed.wait(offset)

    async def when_applied(self, offset: int) -> None:
        """Wait until every subscriber has applied an offset."""
        if offset > self._publisher.applied_offset:
            await self._applied.wait(offset)

    async def finish(self) -> None:
        """Wait until all that was appended is committed and applied."""
        self._is_finishing = True
        await self._scope.close()
        if self._pending and self._raft.failure is None:
            try:
                await self._applied.wait(self._pending[-1].last_offset)
            except KafkaError as e:
                _log.error("The last decisions are not committed: %s", e)
        await self._publisher.drain()

    def _on_committed(self, high_watermark: int) -> None:
        """Publish before anybody is answered: a client that gets its answer finds what it asked for."""
        while self._pending and self._pending[0].last_offset < high_watermark:
            self._publisher.publish(self._pending.popleft().delta)
        self._committed.release(high_watermark - 1)
        if not self._is_finishing and self._snapshots.take_due(self._runtime.clock.now_ms()):
            self._scope.spawn(self._snapshots.write(), name="metadata-snapshot")

    def _on_failed(self, failure: KafkaError) -> None:
        """What is committed is still published and applied; those who wait for more are refused."""
        self._committed.fail(self._raft.high_watermark, failure)
        self._applied.fail(self._raft.high_watermark, failure)
