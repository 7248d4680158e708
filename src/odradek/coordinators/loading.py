"""From the bytes of an internal topic's partition to the state of its shard. Decides nothing."""

import asyncio
import logging
from typing import TYPE_CHECKING

from odradek.coordinators.shard import Format, Shard
from odradek.core.errors import ExhaustedError
from odradek.core.types import NO_PRODUCER_ID
from odradek.records.batch import BatchMeta, iter_batches, iter_records
from odradek.records.control import ControlType, parse_control_key
from odradek.runtime.slices import Pacer, Slices

if TYPE_CHECKING:
    from odradek.coordinators.slot import PartitionLog

log = logging.getLogger("odradek.coordinators.loading")

REPLAYED = 30
"""What it takes to replay a record."""
RETRY_S = 0.5
"""Until a read that lacked a descriptor is tried again."""


async def replay_log(
    partition_log: "PartitionLog", shard: Shard, record_format: Format, buffer_bytes: int, slices: Slices
) -> int:
    """Replay the log into the shard, in chunks and slices. Gives the offset after the last record."""
    offset = partition_log.log_start_offset
    pace = slices.pacer()
    while offset < partition_log.log_end_offset:
        try:
            data = partition_log.read(offset, buffer_bytes)
        except ExhaustedError:
            await asyncio.sleep(RETRY_S)
            continue
        start = offset
        for batch in iter_batches(data):
            offset = batch.last_offset + 1
            if batch.last_offset < start:
                continue
            await replay_batch(data, batch, shard, record_format, pace)
        if not data:
            # Compaction may have taken the last records before the end.
            return partition_log.log_end_offset
        if offset == start:
            raise ValueError(f"no whole batch at offset {offset}, before the log end")
    return offset


async def replay_batch(
    data: bytes, batch: BatchMeta, shard: Shard, record_format: Format, pace: Pacer
) -> None:
    """Replay one batch. A record of a kind we do not know is left out."""
    producer_id = batch.producer_id if batch.is_transactional else NO_PRODUCER_ID
    for record in iter_records(data, batch):
        await pace(REPLAYED)
        if batch.is_control:
            control_type = parse_control_key(record.key)
            if control_type in (ControlType.COMMIT, ControlType.ABORT):
                shard.replay_marker(producer_id, control_type is ControlType.COMMIT)
            continue
        decoded = record_format.decode(record.key, record.value)
        if decoded is None:
            log.warning("A record of unknown type at offset %d is ignored", record.offset)
            continue
        shard.replay(*decoded, record.offset, producer_id)
