"""Batches of the metadata log as bytes: those that the machine appends, and those that others fetch."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from odradek.core.errors import ProtocolError
from odradek.core.types import Buffer
from odradek.log.log import Isolation, Log
from odradek.raft.control import control_batch, read_control_batch
from odradek.raft.messages import BatchInfo
from odradek.raft.quorum_records import from_control, to_control
from odradek.raft.ready import Append
from odradek.records import kernel
from odradek.records.batch import build_batch, iter_batches
from odradek.records.header import BatchMeta

MAX_FETCH_BYTES: Final = 8 << 20
"""Of one answer; Apache Kafka asks for 1 MiB (controller.quorum.fetch.max.bytes)."""


class Proposal(NamedTuple):
    """The values of a batch that the controller wants in the log, and when it decided."""

    values: Sequence[bytes]
    now_ms: int


def append_bytes(appends: Sequence[Append], now_ms: int) -> Buffer:
    """One buffer for one write."""
    pieces = [_bytes_of(append, now_ms) for append in appends]
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _bytes_of(append: Append, now_ms: int) -> Buffer:
    if append.batch is not None:
        data = append.batch.data
        assert isinstance(data, bytes | bytearray | memoryview), "fetched batches carry their bytes"
        return data
    if append.control:
        return control_batch(
            to_control(append.control),
            base_offset=append.base_offset,
            epoch=append.epoch,
            timestamp_ms=now_ms,
        )
    proposal = append.tag
    assert isinstance(proposal, Proposal)
    return build_batch(
        [(proposal.now_ms, None, value, ()) for value in proposal.values],
        base_offset=append.base_offset,
        leader_epoch=append.epoch,
    )


def read_records(log: Log, offset: int, end_offset: int, max_bytes: int) -> bytes:
    """Whole batches from an offset on, none of which ends beyond `end_offset`."""
    if offset >= end_offset:
        return b""
    found = log.read(offset, min(max_bytes, MAX_FETCH_BYTES), Isolation.LOG_END).slice
    if found is None:
        return b""
    data = found.read()
    size = 0
    for batch in iter_batches(data):
        if batch.last_offset >= end_offset:
            break
        size = batch.position + batch.size
    return bytes(data[:size])


def batch_infos(data: Buffer) -> tuple[BatchInfo, ...]:
    """The whole batches that a leader sent, in order. ProtocolError where one is damaged."""
    metas, position, finding = kernel.scan_segment(data, BatchMeta)
    if finding not in (kernel.OK, kernel.PARTIAL):
        raise ProtocolError(f"the leader sent a damaged batch at byte {position} of {len(data)}")
    view = memoryview(data)
    return tuple(
        BatchInfo(
            batch.base_offset,
            batch.last_offset + 1,
            batch.partition_leader_epoch,
            from_control(read_control_batch(view, batch)) if batch.is_control else (),
            bytes(view[batch.position : batch.position + batch.size]),
        )
        for batch in metas
    )
