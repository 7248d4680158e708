"""LogReader: turns batches of the metadata log or of a snapshot into a staged delta, in steps. Pure.

Control batches belong to the quorum. Here they only advance the offset.
"""

from collections.abc import Sequence

from odradek.core.types import Buffer
from odradek.metadata.records import MetadataRecord, NoOpRecord, decode_record, encode_record
from odradek.metadata.replay import StagedDelta, Staging
from odradek.raft.control import SnapshotFooterRecord, SnapshotHeaderRecord, read_control_batch
from odradek.raft.snapshots import SnapshotError, SnapshotId
from odradek.records.batch import HEADER_BYTES, BatchMeta, build_batch, iter_batches, iter_records
from odradek.runtime.slices import STEP, Paced

_DECODED = 5
"""What it takes to decode a record."""

# The log of an idle controller has mostly these batches: one NoOpRecord, constant after the header.
_NO_OP = bytes(build_batch([(0, None, encode_record(NoOpRecord()), ())])[HEADER_BYTES:])
_NO_OP_BYTES = HEADER_BYTES + len(_NO_OP)
_NOTHING: Sequence[MetadataRecord] = ()


def records_of(data: Buffer, batch: BatchMeta) -> Sequence[MetadataRecord]:
    """The records of a batch that may change the image."""
    if batch.is_control:
        return _NOTHING
    if batch.size == _NO_OP_BYTES:
        body = batch.position + HEADER_BYTES
        if data[body : body + len(_NO_OP)] == _NO_OP:
            return _NOTHING
    return [decode_record(record.value or b"") for record in iter_records(data, batch)]


class LogReader:
    """Passes batches of the log to a staging, from an offset. `bytes_read` counts complete batches."""

    __slots__ = ("_staging", "bytes_read", "first_timestamp_ms", "next_offset")

    def __init__(self, staging: Staging, next_offset: int) -> None:
        self._staging = staging
        self.next_offset = next_offset
        self.bytes_read = 0
        self.first_timestamp_ms: int | None = None

    def add(self, data: Buffer, end_offset: int) -> Paced[None]:
        """Batches as they lie in the log. Those from `end_offset` on are left alone."""
        for batch in iter_batches(data):
            if batch.base_offset < self.next_offset:
                continue
            if batch.base_offset >= end_offset:
                return
            assert batch.last_offset < end_offset, "the high watermark lies between batches"
            assert batch.base_offset == self.next_offset, f"the metadata log lacks {self.next_offset}"
            records = records_of(data, batch)
            yield STEP + _DECODED * len(records)
            yield from self._staging.add(
                records,
                last_offset=batch.last_offset,
                epoch=batch.partition_leader_epoch,
                timestamp_ms=batch.max_timestamp,
            )
            if self.first_timestamp_ms is None:
                self.first_timestamp_ms = batch.base_timestamp
            self.bytes_read += batch.size
            self.next_offset = batch.last_offset + 1

    def finish(self) -> Paced[StagedDelta]:
        return self._staging.finish()


def stage_snapshot(staging: Staging, data: Buffer, snapshot_id: SnapshotId) -> Paced[StagedDelta]:
    """What a snapshot holds, which stands for the log up to its end. SnapshotError where it is cut short."""
    timestamp_ms = -1
    is_whole = False
    for batch in iter_batches(data):
        if batch.is_control:
            for control in read_control_batch(data, batch):
                if isinstance(control, SnapshotHeaderRecord):
                    timestamp_ms = control.last_contained_log_timestamp
                is_whole = is_whole or isinstance(control, SnapshotFooterRecord)
        records = records_of(data, batch)
        yield STEP + _DECODED * len(records)
        yield from staging.add(
            records,
            last_offset=snapshot_id.end_offset - 1,
            epoch=snapshot_id.epoch,
            timestamp_ms=timestamp_ms,
        )
    if not is_whole:
        raise SnapshotError(f"snapshot {snapshot_id.file_name} has no footer")
    return (yield from staging.finish())
