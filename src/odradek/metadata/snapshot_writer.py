"""SnapshotWriter: decides when a snapshot of the committed image is due, and writes it in slices."""

import logging
from typing import Final

from odradek.core.configs import NodeConfig
from odradek.core.errors import KafkaError
from odradek.metadata.image import MetadataImage
from odradek.metadata.quorum_replica import QuorumReplica
from odradek.metadata.records import encode_record
from odradek.metadata.snapshot import image_records
from odradek.metadata.versions import RecordVersions
from odradek.raft.snapshots import SnapshotBuilder, SnapshotId
from odradek.runtime.api import Runtime
from odradek.runtime.slices import Paced, Slices

_log = logging.getLogger(__name__)

_RECORDS_PER_BATCH: Final = 256
_ENCODED: Final = 25  # calls
_LEAST_BYTES: Final = 64 << 10


class SnapshotWriter:
    """A snapshot is due when the log has grown enough since the last one, or has records that are old enough.

    The configuration sets both limits. A snapshot is also due when the log has grown by the size of the last
    snapshot, because the next start would take too long otherwise.
    """

    def __init__(
        self,
        runtime: Runtime,
        config: NodeConfig,
        raft: QuorumReplica,
        slices: Slices,
    ) -> None:
        self._slices = slices
        self._runtime = runtime
        self._config = config
        self._raft = raft
        self._max_bytes = config.int("metadata.log.max.record.bytes.between.snapshots")
        self._max_interval_ms = config.int("metadata.log.max.snapshot.interval.ms")
        self._size_at_last = 0
        self._snapshot_bytes = 0
        self._oldest_ms: int | None = None
        self._writing = False

    def loaded(self, bytes_since_snapshot: int, first_timestamp_ms: int | None) -> None:
        """Set the size and age of the log after its newest snapshot, when it is loaded."""
        newest = self._raft.snapshots.newest
        self._snapshot_bytes = 0 if newest is None else self._raft.snapshots.size_bytes(newest)
        self._size_at_last = self._raft.log.size_bytes - bytes_since_snapshot
        self._oldest_ms = first_timestamp_ms

    def take_due(self, now_ms: int) -> bool:
        """Whether a snapshot is due. After True the caller must write it."""
        if self._oldest_ms is None:
            self._oldest_ms = now_ms
        too_old = bool(self._max_interval_ms) and now_ms - self._oldest_ms >= self._max_interval_ms
        too_much = self._raft.log.size_bytes - self._size_at_last >= min(
            self._max_bytes, max(_LEAST_BYTES, self._snapshot_bytes)
        )
        if self._writing or not (too_old or too_much):
            return False
        self._writing = True
        return True

    async def write(self, image: MetadataImage) -> None:
        """Write a committed image in slices, then remove old snapshots and log segments."""
        assert self._writing, "a snapshot is written when it is due"
        snapshot_id = SnapshotId(image.offset + 1, image.epoch)
        self._size_at_last = self._raft.log.size_bytes
        self._oldest_ms = None
        try:
            builder = self._raft.new_snapshot(snapshot_id, image.timestamp_ms)
            await self._slices.run(self._add_records(builder, image), own=True)
            data = builder.finish()
            await self._raft.save_snapshot(snapshot_id, data)
            self._snapshot_bytes = len(data)
            self._raft.clean_up(
                self._config.int("metadata.max.retention.bytes"),
                self._config.int("metadata.max.retention.ms"),
            )
        except (OSError, KafkaError) as e:
            _log.error("Cannot write a snapshot of the metadata at offset %d: %s", snapshot_id.end_offset, e)
        finally:
            self._writing = False

    @staticmethod
    def _add_records(builder: SnapshotBuilder, image: MetadataImage) -> Paced[None]:
        versions = RecordVersions.at(image.metadata_version)
        values = []
        for record in image_records(image):
            values.append(encode_record(record, versions.of(record)))
            yield _ENCODED
            if len(values) == _RECORDS_PER_BATCH:
                builder.add(values)
                values = []
        if values:
            builder.add(values)
