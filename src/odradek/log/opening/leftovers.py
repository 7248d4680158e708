"""Cleans up after an interrupted deletion, compaction or split: removes its files, or completes it."""

import logging
from typing import NamedTuple

from odradek.log.files import FilePool, unlink_if_exists
from odradek.log.names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    file_name,
    offset_of,
)
from odradek.log.segments.batch_pieces import pieces

_log = logging.getLogger(__name__)

_TEMPORARY = (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX, ".tmp")


def resolve_leftovers(pool: FilePool, path: str, names: list[str]) -> list[str]:
    """Remove temporary files and indexes without a log, and put swapped segments in place. Returns the
    remaining names."""
    if not any(name.endswith(_TEMPORARY) for name in names):
        return _without_orphans(pool, path, names)
    disk = pool.disk
    swaps: list[str] = []
    cleaned: list[int] = []
    kept: list[str] = []
    for name in names:
        if name.endswith((DELETED_SUFFIX, ".tmp")):
            unlink_if_exists(disk, f"{path}/{name}")
        elif name.endswith(CLEANED_SUFFIX):
            cleaned.append(offset_of(name) or 0)
            unlink_if_exists(disk, f"{path}/{name}")
        elif name.endswith(SWAP_SUFFIX):
            swaps.append(name)
        else:
            kept.append(name)
    if swaps:
        kept = _resolve_swaps(pool, path, kept, swaps, min(cleaned, default=None))
    return _without_orphans(pool, path, kept)


class _Swap(NamedTuple):
    """A swapped segment: the range of offsets that it replaces, and the position of its first invalid
    batch."""

    name: str
    start: int
    end: int
    bad_position: int | None


def _resolve_swaps(
    pool: FilePool, path: str, kept: list[str], swaps: list[str], first_cleaned: int | None
) -> list[str]:
    """A swapped segment replaces every segment in its range, if the operation that made it was complete.

    A damaged one replaces nothing while the segments that it was made from still exist.
    """
    disk = pool.disk
    valid = []
    for name in swaps:
        if first_cleaned is not None and (offset_of(name) or 0) >= first_cleaned:
            _log.info("Removing %s/%s: its operation did not complete", path, name)
            unlink_if_exists(disk, f"{path}/{name}")
        else:
            valid.append(name)
    segments = [_measure(pool, path, name) for name in valid if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)]
    start = min((swap.start for swap in segments), default=0)
    end = max((swap.end for swap in segments), default=0)
    damaged = next((swap for swap in segments if swap.bad_position is not None), None)
    if damaged is not None:
        _log.warning(
            "%s/%s has no valid record batch at byte offset %d", path, damaged.name, damaged.bad_position
        )
        if file_name(start, LOG_SUFFIX) in kept:
            for name in valid:
                _log.warning("Removing %s/%s: the segments that it replaces are still there", path, name)
                unlink_if_exists(disk, f"{path}/{name}")
            return kept
    remaining = []
    for name in kept:
        offset = offset_of(name)
        if offset is not None and name.endswith(SEGMENT_SUFFIXES) and start <= offset < end:
            _log.info("Removing %s/%s: a swapped segment replaces it", path, name)
            unlink_if_exists(disk, f"{path}/{name}")
        else:
            remaining.append(name)
    # First make sure that the replaced segments cannot come back after a crash.
    disk.fsync_dir(path)
    for name in valid:
        disk.rename(f"{path}/{name}", f"{path}/{name.removesuffix(SWAP_SUFFIX)}")
        remaining.append(name.removesuffix(SWAP_SUFFIX))
    return sorted(remaining)


def _measure(pool: FilePool, path: str, name: str) -> _Swap:
    start = offset_of(name) or 0
    end = start + 1
    for piece in pieces(pool.disk, f"{path}/{name}"):
        if piece.batches:
            end = max(end, piece.batches[-1].last_offset + 1)
        if piece.bad is not None:
            return _Swap(name, start, end, piece.bad.position)
    return _Swap(name, start, end, None)


def _without_orphans(pool: FilePool, path: str, names: list[str]) -> list[str]:
    logs = {name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX)}
    orphans = [name for name in names if name.endswith(INDEX_SUFFIXES) and name.partition(".")[0] not in logs]
    for name in orphans:
        _log.warning("Removing %s/%s: it is an index without a log file", path, name)
        unlink_if_exists(pool.disk, f"{path}/{name}")
    return [name for name in names if name not in orphans] if orphans else names
