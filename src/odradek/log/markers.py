"""Reading the marker out of a control batch, wherever the batch is."""

from odradek.core.types import Buffer
from odradek.log.producer_state import MarkerReader
from odradek.log.segment import Segment
from odradek.records.batch import iter_records
from odradek.records.control import EndTransactionMarker, parse_marker
from odradek.records.header import BatchMeta


def buffer_markers(buffer: Buffer) -> MarkerReader:
    """For batches located in a buffer."""
    return lambda batch: _read_marker(buffer, batch)


def segment_markers(segment: Segment) -> MarkerReader:
    """For batches located in a segment's file."""
    return lambda batch: _read_marker(segment.read_batch(batch), BatchMeta(0, *batch[1:]))


def _read_marker(buffer: Buffer, batch: BatchMeta) -> tuple[EndTransactionMarker, int] | None:
    for record in iter_records(buffer, batch):
        return parse_marker(record.key, record.value), record.timestamp
    return None
