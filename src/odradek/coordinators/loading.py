"""Loads a shard: replays the log of its partition of an internal topic."""

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from odradek.coordinators.shard import RecordFormat, Shard
from odradek.core.errors import ExhaustedError
from odradek.core.types import NO_PRODUCER_ID
from odradek.records.batch import BatchMeta, iter_batches, iter_records
from odradek.records.control import ControlType, parse_control_key
from odradek.runtime.slices import Paced, Slices

if TYPE_CHECKING:
    from odradek.coordinators.slot import PartitionLog

_log = logging.getLogger(__name__)

RECORD_CALLS: Final = 22
"""The cost of decoding and replaying one record."""
RECORDS_AT_ONCE: Final = 16
BATCH_CALLS: Final = 40
"""The cost of opening a batch, including its first record."""
LONG_VALUE_BYTES: Final = 512
"""Longer values are decoded in slices, if their format supports it."""
RETRY_S = 0.5
"""The pause before a read is retried that failed for lack of descriptors or memory."""


async def replay_log(
    partition_log: "PartitionLog",
    shard: Shard,
    record_format: RecordFormat,
    buffer_bytes: int,
    slices: Slices | None = None,
) -> int:
    """Replay the log into the shard, in chunks. Returns the offset after the last record."""
    slices = slices or Slices()
    offset = partition_log.log_start_offset
    while offset < partition_log.log_end_offset:
        try:
            data = partition_log.read(offset, buffer_bytes)
        except ExhaustedError:
            await asyncio.sleep(RETRY_S)
            continue
        if not data:
            # Compaction may have removed the last records before the end.
            return partition_log.log_end_offset
        start = offset
        offset = await slices.run(_replay(data, start, shard, record_format), own=True)
        if offset == start:
            raise ValueError(f"no complete batch at offset {offset}, before the log end")
    return offset


def _replay(data: bytes, start: int, shard: Shard, record_format: RecordFormat) -> Paced[int]:
    """Replay the data that was read from offset `start`. Returns the offset after it."""
    offset = start
    for batch in iter_batches(data):
        offset = batch.last_offset + 1
        yield BATCH_CALLS
        if batch.last_offset >= start:
            yield from _replay_batch(data, batch, shard, record_format)
    return offset


def _replay_batch(data: bytes, batch: BatchMeta, shard: Shard, record_format: RecordFormat) -> Paced[None]:
    """Replay one batch. Records of an unknown type are ignored."""
    producer_id = batch.producer_id if batch.is_transactional else NO_PRODUCER_ID
    decode, decode_long = record_format.decode, record_format.decode_long
    count = 0
    for record in iter_records(data, batch):
        count += 1
        if not count % RECORDS_AT_ONCE:
            yield RECORDS_AT_ONCE * RECORD_CALLS
        if batch.is_control:
            control_type = parse_control_key(record.key)
            if control_type in (ControlType.COMMIT, ControlType.ABORT):
                shard.replay_marker(producer_id, control_type is ControlType.COMMIT)
            continue
        value = record.value
        if decode_long is None or value is None or len(value) <= LONG_VALUE_BYTES:
            decoded = decode(record.key, value)
        else:
            decoded = yield from decode_long(record.key, value)
        if decoded is None:
            _log.warning("Ignoring a record of unknown type at offset %d", record.offset)
            continue
        steps = shard.replay(*decoded, record.offset, producer_id)
        if steps is not None:
            yield 2 * RECORD_CALLS  # a group's record: its value has many fields
            yield from steps
