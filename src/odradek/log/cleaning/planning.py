"""Prepares the plan of a cleaning from the current state of the log. Runs on the event loop."""

import random
from typing import Final

from odradek.core.types import NO_OFFSET, TRANSACTION_STATE_TOPIC
from odradek.log.cleaning.candidates import LogToClean
from odradek.log.cleaning.grouping import Source
from odradek.log.cleaning.job import CleaningPlan, Limits
from odradek.log.cleaning.offset_map import new_secret
from odradek.log.cleaning.rewriting import Keeping
from odradek.log.cleaning.settings import CleanerSettings
from odradek.log.log import Log

LEAST_TRANSACTION_STATE_RETENTION_MS: Final = 86_400_000
"""The minimum retention of tombstones in __transaction_state. A coordinator that loads, or a replica that was
away, may have read the state of a transactional id but not yet its tombstone. If the tombstone were removed
then, it would keep an old producer epoch as the newest, and a fenced producer would no longer be fenced."""


def delete_retention_ms(log: Log) -> int:
    """delete.retention.ms, with a minimum for __transaction_state."""
    configured_ms = log.config.delete_retention_ms
    if log.topic_partition.topic == TRANSACTION_STATE_TOPIC:
        return max(configured_ms, LEAST_TRANSACTION_STATE_RETENTION_MS)
    return configured_ms


def prepare(
    candidate: LogToClean, settings: CleanerSettings, now_ms: int, rng: random.Random
) -> CleaningPlan:
    """Raises OSError, and CorruptIndexError if a transaction index is invalid."""
    log, config = candidate.log, candidate.log.config
    segments = log.segments.all()
    aborted = [txn for segment in segments if segment.has_txn_index for txn in segment.txn_index.entries]
    ends = [segment.base_offset for segment in segments[1:]]
    return CleaningPlan(
        log.path,
        tuple(
            Source(segment.base_offset, end, segment.file.path, segment.size)
            for segment, end in zip(segments, ends, strict=False)
            if end <= candidate.first_uncleanable_offset
        ),
        candidate.first_dirty_offset,
        candidate.first_uncleanable_offset,
        tuple(aborted),
        _keeping(candidate, now_ms),
        Limits(
            config.segment_bytes,
            config.segment_index_bytes,
            config.index_interval_bytes,
            settings.map_bytes,
            settings.load_factor,
            settings.chunk_bytes,
        ),
        new_secret(rng),
    )


def _keeping(candidate: LogToClean, now_ms: int) -> Keeping:
    """Batches that are kept even without records: the last one of every producer, and the last one of all."""
    producers = candidate.log.producers.entries.values()
    return Keeping(
        now_ms,
        delete_retention_ms(candidate.log),
        frozenset(
            [
                candidate.first_uncleanable_offset - 1,
                *(entry.last_offset for entry in producers if entry.last_offset != NO_OFFSET),
            ]
        ),
        {entry.producer_id: entry.producer_epoch for entry in producers if entry.last_offset == NO_OFFSET},
    )
