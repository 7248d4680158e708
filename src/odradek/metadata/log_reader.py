"""LogReader: decodes batches of the metadata log or of a snapshot and replays their records. Pure."""

from odradek.core.types import Buffer
from odradek.metadata.records import MetadataRecord, NoOpRecord, decode_record, encode_record
from odradek.metadata.replay import Replayer
from odradek.records.batch import HEADER_BYTES, BatchMeta, build_batch, iter_records

_FLUSH_RECORDS = 4096

# The log of an idle controller has mostly these batches: one NoOpRecord, constant after the header.
_NO_OP = bytes(build_batch([(0, None, encode_record(NoOpRecord()), ())])[HEADER_BYTES:])
_NO_OP_BYTES = HEADER_BYTES + len(_NO_OP)


class LogReader:
    """Passes records to a replayer. `bytes_read` and `first_timestamp_ms` count from the last snapshot."""

    __slots__ = ("_records", "_replayer", "_seen", "bytes_read", "first_timestamp_ms")

    def __init__(self, replayer: Replayer) -> None:
        self._replayer = replayer
        self._records: list[MetadataRecord] = []
        self._seen: BatchMeta | None = None
        self.bytes_read = 0
        self.first_timestamp_ms: int | None = None

    def add(self, data: Buffer, batch: BatchMeta) -> None:
        if self.first_timestamp_ms is None:
            self.first_timestamp_ms = batch.base_timestamp
        self.bytes_read += batch.size
        self._seen = batch
        if batch.size == _NO_OP_BYTES:
            body = batch.position + HEADER_BYTES
            if data[body : body + len(_NO_OP)] == _NO_OP:
                return
        self._records += [decode_record(record.value or b"") for record in iter_records(data, batch)]
        if len(self._records) >= _FLUSH_RECORDS:
            self.flush()

    def snapshot_end(self, end_offset: int, epoch: int, last_timestamp_ms: int) -> None:
        """All batches so far were those of a snapshot, which replaces the log up to an offset."""
        if self._seen is not None:
            self._apply(end_offset - 1, epoch, last_timestamp_ms)
        self.bytes_read = 0
        self.first_timestamp_ms = None

    def flush(self) -> None:
        """Replay the collected records."""
        if self._seen is not None:
            self._apply(self._seen.last_offset, self._seen.partition_leader_epoch, self._seen.max_timestamp)

    def _apply(self, last_offset: int, epoch: int, timestamp_ms: int) -> None:
        self._replayer.apply(self._records, last_offset=last_offset, epoch=epoch, timestamp_ms=timestamp_ms)
        self._records = []
        self._seen = None
