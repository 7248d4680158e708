"""Reads the marker that ends a transaction from its control batch. Pure."""

from typing import NamedTuple

from odradek.core.types import Buffer
from odradek.records.batch import iter_records
from odradek.records.control import EndTransactionMarker, parse_marker
from odradek.records.header import BatchMeta


class Marker(NamedTuple):
    end: EndTransactionMarker
    timestamp: int


def read_marker(buffer: Buffer, batch: BatchMeta) -> Marker | None:
    """The marker in a control batch; None if compaction has removed it from the batch."""
    for record in iter_records(buffer, batch):
        return Marker(parse_marker(record.key, record.value), record.timestamp)
    return None
