"""What an interrupted deletion, compaction or split leaves in a log directory, and how it is resolved."""

import logging
from typing import TYPE_CHECKING

from odradek.log.files import FilePool, PooledFile, unlink_if_exists
from odradek.log.names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    offset_of,
)
from odradek.log.segment import Segment

if TYPE_CHECKING:
    from odradek.core.configs import TopicConfig

_log = logging.getLogger(__name__)

_TEMPORARY = (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX, ".tmp")


def resolve_leftovers(pool: FilePool, path: str, names: list[str], config: "TopicConfig") -> list[str]:
    """Remove temporary files and indexes without a log, put swapped segments in place; what remains."""
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
        kept = _resolve_swaps(pool, path, kept, swaps, min(cleaned, default=None), config)
    return _without_orphans(pool, path, kept)


def _resolve_swaps(
    pool: FilePool,
    path: str,
    kept: list[str],
    swaps: list[str],
    first_cleaned: int | None,
    config: "TopicConfig",
) -> list[str]:
    """A swap file replaces every segment in its range, unless what made it did not come to its end."""
    disk = pool.disk
    valid = []
    for name in swaps:
        if first_cleaned is not None and (offset_of(name) or 0) >= first_cleaned:
            _log.info("Removing %s/%s of an operation that did not complete", path, name)
            unlink_if_exists(disk, f"{path}/{name}")
        else:
            valid.append(name)
    ranges = [_range(pool, path, name, config) for name in valid if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)]
    start = min((first for first, _ in ranges), default=0)
    end = max((end for _, end in ranges), default=0)
    remaining = []
    for name in kept:
        offset = offset_of(name)
        if offset is not None and name.endswith(SEGMENT_SUFFIXES) and start <= offset < end:
            _log.info("Removing %s/%s, replaced by a swapped segment", path, name)
            unlink_if_exists(disk, f"{path}/{name}")
        else:
            remaining.append(name)
    # Only once it is sure that they do not come back beside what replaces them.
    disk.fsync_dir(path)
    for name in valid:
        disk.rename(f"{path}/{name}", f"{path}/{name.removesuffix(SWAP_SUFFIX)}")
        remaining.append(name.removesuffix(SWAP_SUFFIX))
    return sorted(remaining)


def _range(pool: FilePool, path: str, name: str, config: "TopicConfig") -> tuple[int, int]:
    base_offset = offset_of(name) or 0
    swap_path = f"{path}/{name}"
    segment = Segment(pool, path, base_offset, config, 0, size=pool.disk.stat(swap_path).size)
    segment.file = PooledFile(pool, swap_path)
    end = base_offset
    for batch in segment.scan(0):
        end = batch.last_offset + 1
    segment.close()
    return base_offset, max(end, base_offset + 1)


def _without_orphans(pool: FilePool, path: str, names: list[str]) -> list[str]:
    logs = {name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX)}
    orphans = [name for name in names if name.endswith(INDEX_SUFFIXES) and name.partition(".")[0] not in logs]
    for name in orphans:
        _log.warning("Removing %s/%s: it is an index without a log file", path, name)
        unlink_if_exists(pool.disk, f"{path}/{name}")
    return [name for name in names if name not in orphans] if orphans else names
