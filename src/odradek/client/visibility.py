"""What a consumer is shown of fetched bytes: no control records, at read_committed no aborted ones. Pure."""

from collections.abc import Iterator, Sequence

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import Buffer
from odradek.records.batch import BatchMeta, Record, iter_records
from odradek.records.control import ControlType, parse_control_key
from odradek.records.kernel import BAD_CRC, BAD_LENGTH, BAD_MAGIC, OK, PARTIAL
from odradek.records.scanning import Scanned, scan

_FINDINGS = {
    BAD_CRC: "the batch at position {} of what was fetched fails its CRC",
    BAD_LENGTH: "the batch at position {} of what was fetched has an impossible length",
    BAD_MAGIC: "the batch at position {} of what was fetched has an unknown magic",
}


def visible_records(
    data: Buffer, from_offset: int, aborted: Sequence[tuple[int, int]] | None
) -> Iterator[tuple[BatchMeta, Record | None]]:
    """Every record from an offset on, with its batch; (batch, None) after the last one of each batch.

    The end of a batch moves the position even where nothing of it is shown.
    """
    for batch, is_shown in visible_batches(data, aborted):
        if is_shown:
            for record in iter_records(data, batch):
                if record.offset >= from_offset:
                    yield batch, record
        yield batch, None


def visible_batches(
    data: Buffer, aborted: Sequence[tuple[int, int]] | None, scanned: Scanned | None = None
) -> Iterator[tuple[BatchMeta, bool]]:
    """Every batch, and whether a consumer sees it. Raises CORRUPT_MESSAGE at an invalid batch.

    `aborted` is the response's list of (producer id, first offset), None for read_uncommitted. `scanned` is
    the result of `scan(data)`, if the caller has it.
    """
    batches, end, finding = scanned or scan(data)
    pending = sorted(aborted or (), key=lambda transaction: transaction[1])
    aborting: set[int] = set()
    at = 0
    for batch in batches:
        while at < len(pending) and pending[at][1] <= batch.last_offset:
            aborting.add(pending[at][0])
            at += 1
        if batch.is_control:
            if batch.producer_id in aborting and _is_abort_marker(data, batch):
                aborting.discard(batch.producer_id)
            yield batch, False
        else:
            yield batch, not (aborting and batch.is_transactional and batch.producer_id in aborting)
    if finding not in (OK, PARTIAL):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, _FINDINGS[finding].format(end))


def _is_abort_marker(data: Buffer, batch: BatchMeta) -> bool:
    record = next(iter_records(data, batch), None)
    return record is not None and parse_control_key(record.key) is ControlType.ABORT
