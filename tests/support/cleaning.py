"""Records with keys, and a synchronous cleaning, as the node's cleaner does it."""

from collections.abc import Callable, Sequence
from typing import Any

from odradek.log.cleaning.candidates import LogToClean, examine
from odradek.log.cleaning.job import CleaningJob
from odradek.log.cleaning.planning import prepare
from odradek.log.cleaning.settings import CleanerSettings
from odradek.log.log import Log
from odradek.records.batch import BatchMeta, Record, build_batch, iter_batches, iter_records
from odradek.records.check import CheckedRecords
from tests.unit.log.support import NOW_MS, LogRuntime

SETTINGS = CleanerSettings(
    enabled=True,
    threads=1,
    dedupe_buffer_bytes=1 << 20,
    load_factor=0.9,
    io_buffer_bytes=1 << 16,
    max_bytes_per_second=1e300,
    backoff_ms=15_000,
)
Pairs = Sequence[tuple[bytes | None, bytes | None]]


def keyed(pairs: Pairs, *, timestamp: int = NOW_MS, step_ms: int = 1, **fields: Any) -> CheckedRecords:
    """One batch of (key, value) records, a step apart in time."""
    rows = [(timestamp + i * step_ms, key, value, ()) for i, (key, value) in enumerate(pairs)]
    data = build_batch(rows, **fields)
    return CheckedRecords(data, list(iter_batches(data)))


def clean(
    log: Log,
    runtime: LogRuntime,
    *,
    settings: CleanerSettings = SETTINGS,
    budget_bytes: int = 1 << 30,
    after_flush: Callable[[], None] | None = None,
    after_piece: Callable[[], None] | None = None,
) -> LogToClean:
    """Clean a log by the very parts that the node's cleaner is made of; what it was cleaned as."""
    candidate = examine(log, runtime.clock.now_ms())
    plan = prepare(candidate, settings, runtime.clock.now_ms(), runtime.rng)
    log.flush()
    if after_flush is not None:
        after_flush()
    job = CleaningJob(runtime.disk, plan)
    try:
        while (progress := job.advance(budget_bytes)) is not None:
            if progress.replacement is not None:
                segment = log.compaction.begin_swap(progress.replacement)
                assert segment is not None
                job.taken()
                runtime.disk.fsync_dir(log.path)
                log.compaction.finish_swap(segment)
            if after_piece is not None:
                after_piece()
    except OSError:
        job.discard()
        raise
    log.compaction.cleaned_offset = job.end_offset
    return candidate


def clean_all(log: Log, runtime: LogRuntime) -> None:
    """Clean a log once more, as if all of it were dirty."""
    log.compaction.cleaned_offset = None
    clean(log, runtime)


def batches(log: Log) -> list[tuple[BatchMeta, list[Record]]]:
    """Every batch of a log's files with its records, in order."""
    found = []
    for segment in log.segments.all():
        for meta in segment.scan(0):
            data = segment.read_batch(meta)
            located = BatchMeta(0, *meta[1:])
            found.append((located, list(iter_records(data, located))))
    return found


def pairs(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    """(offset, key, value) of all records of data."""
    return [
        (record.offset, record.key, record.value)
        for meta, records in batches(log)
        if not meta.is_control
        for record in records
    ]
