"""Following the metadata log: every node does it, with or without a controller of its own.

The loader owns what is committed: it reads the newest snapshot, then the log as far as the high watermark
goes, and publishes one delta for each advance, never inside a metadata transaction. It also writes
snapshots. It decides nothing.
The active controller owns what is staged: the image at the end of the log, ahead of the committed one. While
it leads (`take_over`) it hands over the delta of each batch that it appends (`appended`), so that its node
replays a batch only once. When it resigns (`release`) what is not committed of them is dropped: what others
commit at those offsets is read from the log.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from odradek.core.configs import NodeConfig
from odradek.core.errors import ErrorCode, KafkaError, is_exhausted
from odradek.log.log import Isolation
from odradek.metadata.delta import MetadataDelta, delta_between, full_delta
from odradek.metadata.image import EMPTY_IMAGE, MetadataImage
from odradek.metadata.log_reader import LogReader, stage_snapshot
from odradek.metadata.offset_waiters import OffsetWaiters
from odradek.metadata.publisher import MetadataPublisher
from odradek.metadata.quorum_replica import QuorumReplica
from odradek.metadata.replay import Replayer, StagedDelta
from odradek.metadata.snapshot_writer import SnapshotWriter
from odradek.raft.snapshots import SnapshotId
from odradek.runtime.api import Runtime
from odradek.runtime.reply import Reply
from odradek.runtime.scope import Scope
from odradek.runtime.slices import Paced, Slices

_log = logging.getLogger(__name__)

_READ_BYTES: Final = 1 << 20
_RETRY_SECONDS: Final = 0.2


class _Pending(NamedTuple):
    """A delta that waits for its last offset to be committed."""

    last_offset: int
    staged: StagedDelta


class MetadataLoader:
    """From the quorum's committed batches to the publisher's subscribers. `load`, then start the quorum."""

    def __init__(
        self,
        runtime: Runtime,
        config: NodeConfig,
        raft: QuorumReplica,
        publisher: MetadataPublisher,
        slices: Slices,
    ) -> None:
        self._runtime = runtime
        self._raft = raft
        self._publisher = publisher
        self._slices = slices
        self._replayer = Replayer()
        self._next_offset = 0
        self._high_watermark = 0
        self._published = EMPTY_IMAGE
        self._snapshot: SnapshotId | None = None
        self._work: Reply[None] = Reply(None)
        self._is_reading = False
        self._is_taken_over = False
        self._is_loaded = False
        self._is_known = False
        self._is_counted = False
        self._pending: deque[_Pending] = deque()
        self._committed = OffsetWaiters()
        self._applied = OffsetWaiters()
        self._followed = OffsetWaiters()
        self._snapshots = SnapshotWriter(runtime, config, raft, slices)
        self._is_finishing = False
        self._scope = Scope(
            lambda error: _log.error("A snapshot of the metadata was not written", exc_info=error)
        )
        self.failure: KafkaError | None = None
        self.on_failed: Callable[[KafkaError], None] = lambda failure: None
        raft.on_committed = self._on_committed
        raft.on_snapshot = self._on_snapshot
        publisher.on_applied = self._applied.release

    async def load(self) -> None:
        """Read the newest snapshot. Nothing is published before the high watermark is known.

        Raises OSError, SnapshotError, ReplayError, ProtocolError.
        """
        self._publisher.kraft_version = self._raft.facts.kraft_version
        self._snapshot = self._raft.snapshots.newest
        self._go_on()
        await self._work
        self._is_loaded = True

    @property
    def image(self) -> MetadataImage:
        """What is committed. The publisher's is the same, or behind by what is being applied."""
        return self._replayer.image

    # --- the active controller on this node -----------------------------------------------------------

    def take_over(self) -> Replayer:
        """From now on all deltas come from the controller. It goes on from what this gives."""
        assert not self._is_taken_over and not self._is_reading, "there is one active controller"
        assert self._next_offset > self._raft.epoch_start_offset, "it begins with its epoch's first record"
        self._is_taken_over = True
        return self._replayer.copy()

    def appended(self, last_offset: int, staged: StagedDelta) -> None:
        """The controller appended a batch up to an offset: publish its delta when that is committed."""
        assert self._is_taken_over, "only the active controller appends"
        assert not self._pending or self._pending[-1].last_offset < last_offset, "batches come in order"
        self._pending.append(_Pending(last_offset, staged))
        self._publish_staged()

    def release(self, error: KafkaError) -> None:
        """The controller resigns: drop what it staged and refuse all who wait for it to be committed."""
        assert self._is_taken_over, "the controller resigns once"
        self._is_taken_over = False
        self._pending.clear()
        self._committed.fail(self._high_watermark, error)
        self._applied.fail(self._high_watermark, error)
        self._go_on()

    # --- waiting --------------------------------------------------------------------------------------

    async def when_committed(self, offset: int) -> None:
        """Wait until the quorum has an offset that the controller here appended. Raises what prevents it."""
        if offset >= self._high_watermark:
            await self._committed.wait(offset)

    async def when_applied(self, offset: int) -> None:
        """Wait until every subscriber has applied an offset that the controller here appended."""
        if offset > self._publisher.applied_offset:
            await self._applied.wait(offset)

    async def when_followed(self, offset: int) -> None:
        """Wait until the log is replayed beyond an offset, and to the high watermark."""
        while offset >= self._next_offset or self._is_reading:
            if self.failure is not None:
                raise self.failure
            await self._followed.wait(max(offset, self._next_offset))

    async def finish(self) -> None:
        """Wait until all that was appended is committed and applied. Nothing more is read."""
        self._is_finishing = True
        await self._scope.close()
        if self._is_reading:
            await self._work
        if self._pending and self._raft.failure is None:
            try:
                await self._applied.wait(self._pending[-1].last_offset)
            except KafkaError as e:
                _log.warning("The last decisions are not committed: %s", e)
        await self._publisher.drain()

    # --- following ------------------------------------------------------------------------------------

    def _on_committed(self, high_watermark: int) -> None:
        """Publish before anybody is answered: a client that gets its answer finds what it asked for."""
        assert high_watermark >= self._high_watermark, "what is committed stays so"
        self._high_watermark = high_watermark
        self._is_known = True
        self._publisher.kraft_version = self._raft.facts.kraft_version
        if not self._is_taken_over:
            self._go_on()
            return
        self._publish_staged()
        self._committed.release(high_watermark - 1)
        self._take_snapshot()

    def _publish_staged(self) -> None:
        while self._pending and self._pending[0].last_offset < self._high_watermark:
            last_offset, staged = self._pending.popleft()
            self._next_offset = last_offset + 1
            self._publish(self._replayer.take(staged))

    def _on_snapshot(self, snapshot_id: SnapshotId) -> None:
        """What is being read of the log may be gone from it: `_read_log` looks after each step."""
        assert not self._is_taken_over, "a leader fetches no snapshot"
        self._snapshot = snapshot_id
        self._go_on()

    def _go_on(self) -> None:
        """Read on, at once if it is little, unless that is under way or the controller here does it."""
        if not (self._is_reading or self._is_taken_over or self._is_finishing or self.failure):
            self._is_reading = True
            self._work = self._slices.run(self._read(), own=True)

    def _read(self) -> Paced[None]:
        """All there is. Further advances of the high watermark meanwhile become the next delta."""
        try:
            while not self._is_finishing:
                if self._snapshot is not None:
                    yield from self._read_snapshot(self._snapshot)
                elif self._next_offset < self._high_watermark:
                    yield from self._read_log(self._high_watermark)
                elif self._is_known and self._replayer.image is not self._published:
                    yield from self._publish_snapshot()
                else:
                    break
        except Exception as e:
            if not self._is_loaded:
                raise
            self._failed(e)
        else:
            self._followed.release(self._next_offset - 1)
            self._take_snapshot()
        finally:
            self._is_reading = False

    def _read_snapshot(self, snapshot_id: SnapshotId) -> Paced[None]:
        """All of it, into an image of its own: what it lacks is gone."""
        replayer = Replayer()
        data = self._raft.snapshots.read(snapshot_id)
        replayer.take((yield from stage_snapshot(replayer.begin(), data, snapshot_id)))
        if self._snapshot != snapshot_id:
            return
        self._snapshot = None
        if snapshot_id.end_offset >= self._next_offset:
            self._replayer = replayer
            self._next_offset = snapshot_id.end_offset
            self._high_watermark = max(self._high_watermark, snapshot_id.end_offset)
            self._snapshots.loaded(0, None)

    def _read_log(self, end_offset: int) -> Paced[None]:
        """One advance of the high watermark into one delta."""
        log = self._raft.log
        reader = LogReader(self._replayer.begin(), self._next_offset)
        while reader.next_offset < end_offset:
            found = log.read(reader.next_offset, _READ_BYTES, Isolation.HIGH_WATERMARK).slice
            assert found is not None, f"the metadata log has no batch at {reader.next_offset}"
            for calls in reader.add(found.read(), end_offset):
                yield calls
                if self._snapshot is not None or self._is_finishing:
                    return
        staged = yield from reader.finish()
        if not self._is_counted:
            self._is_counted = True
            self._snapshots.loaded(reader.bytes_read, reader.first_timestamp_ms)
        self._next_offset = reader.next_offset
        delta = self._replayer.take(staged)
        if delta.previous is self._published and delta.previous is not EMPTY_IMAGE:
            self._publish(delta)

    def _publish_snapshot(self) -> Paced[None]:
        """What a snapshot and the log behind it made of the image that is shown."""
        image = self._replayer.image
        if self._published is EMPTY_IMAGE:
            self._publish(full_delta(image))
        else:
            delta = yield from delta_between(self._published, image)
            self._publish(delta)

    def _publish(self, delta: MetadataDelta) -> None:
        if delta.image is not self._published:
            self._published = delta.image
            self._publisher.publish(delta)

    def _take_snapshot(self) -> None:
        """Not inside a transaction, and not before the image is one that the quorum has."""
        if self._is_finishing or self._replayer.in_transaction or self._published is EMPTY_IMAGE:
            return
        if self._snapshots.take_due(self._runtime.clock.now_ms()):
            self._scope.spawn(self._snapshots.write(self._replayer.image), name="metadata-snapshot")

    def _failed(self, error: Exception) -> None:
        """Where only descriptors or memory were lacking, read again later. A log that cannot be replayed is
        followed no further: nothing more is published here, and no controller may go on."""
        if is_exhausted(error):
            _log.warning("Cannot read the metadata log from offset %d on yet: %s", self._next_offset, error)
            asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._go_on)
            return
        _log.critical("Cannot follow the metadata log from offset %d on", self._next_offset, exc_info=error)
        if not isinstance(error, KafkaError):
            error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"cannot follow the metadata log: {error}")
        self.failure = error
        self._followed.fail(0, error)
        self.on_failed(error)
