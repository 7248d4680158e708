"""What is to be read of log directories, decided once, on the driver: which segments, up to where, and what
of them does not count. Reads the headers of batches and the checkpoints, never the records."""

import os
import re
from collections.abc import Iterator, Sequence
from os import O_RDONLY
from typing import NamedTuple

from odradek.client.fetching import READ_COMMITTED
from odradek.core.types import TopicPartition
from odradek.log.checkpoints import CheckpointError, parse_offsets
from odradek.log.files import read_file, read_fully
from odradek.log.names import (
    LOG_START_CHECKPOINT,
    LOG_SUFFIX,
    META_PROPERTIES,
    SWAP_SUFFIX,
    file_name,
    offset_of,
    parse_partition_dir,
)
from odradek.log.verifying.directory import partition_directories
from odradek.records.batch import iter_records
from odradek.records.control import ControlType, parse_control_key
from odradek.records.header import (
    CONTROL_FLAG,
    HEADER_BYTES,
    MAX_INT64,
    TRANSACTIONAL_FLAG,
    crc_matches,
    iter_batches,
)
from odradek.runtime.api import Disk
from odradek.spark.options import OptionError, SegmentOptions
from odradek.spark.segments.headers import Header, HeaderWalk, Problem
from odradek.spark.segments.transactions import Aborted, Transactions

__all__ = ["SegmentError", "SegmentPart", "pack", "plan"]

_PACKED_BYTES = 16 << 20

_OWN_TOPICS = "__"
"""The cluster's own topics begin so. They are read when they are asked for."""


class SegmentError(RuntimeError):
    """A file that cannot be read as it stands; says which, where and why."""


class SegmentPart(NamedTuple):
    """What one task reads: the batches of a file up to a position, and of their records those between two
    offsets, both included."""

    path: str
    tp: TopicPartition
    end_position: int
    first_offset: int
    last_offset: int
    aborted: tuple[Aborted, ...]


class _Folder(NamedTuple):
    path: str
    tp: TopicPartition
    log_start_offset: int


def plan(disk: Disk, options: SegmentOptions) -> list[SegmentPart]:
    """All that is to be read, a part for every segment file that has any of it."""
    found = [folder for path in options.paths for folder in _folders(disk, path, options)]
    _check_twice(found)
    is_committed = options.isolation == READ_COMMITTED
    return [part for folder in found for part in _Partition(disk, folder).parts(is_committed)]


def pack(parts: Sequence[SegmentPart], most_bytes: int = _PACKED_BYTES) -> list[list[SegmentPart]]:
    """The files of each task: one file, or several small ones up to `most_bytes`. A task costs tens of
    milliseconds, as much as reading some megabytes."""
    packs: list[list[SegmentPart]] = []
    room = 0
    for part in parts:
        if part.end_position > room:
            packs.append([])
            room = most_bytes
        packs[-1].append(part)
        room -= part.end_position
    return packs


# --- which partitions ------------------------------------------------------------------------------------


def _folders(disk: Disk, path: str, options: SegmentOptions) -> Iterator[_Folder]:
    path = os.path.abspath(path)
    try:
        names = disk.listdir(path)
    except OSError as e:
        raise OptionError(f"{path}: {e.strerror}") from e
    parsed = parse_partition_dir(os.path.basename(path))
    if parsed is not None and any(name.endswith(LOG_SUFFIX) for name in names):
        tp, set_aside = parsed
        if set_aside:
            raise OptionError(
                f"{path} was set aside by a node ({set_aside[1:]}): it is not a partition any more"
            )
        if _is_chosen(tp.topic, options, named=True):
            yield _Folder(path, tp, _log_starts(disk, os.path.dirname(path)).get(tp, 0))
        return
    partitions = partition_directories(disk, path)
    if not partitions and META_PROPERTIES not in names:
        raise OptionError(f"{path} is neither the directory of a partition nor a log directory")
    starts = _log_starts(disk, path)
    for name, tp in partitions:
        if _is_chosen(tp.topic, options, named=False):
            yield _Folder(f"{path}/{name}", tp, starts.get(tp, 0))


def _is_chosen(topic: str, options: SegmentOptions, *, named: bool) -> bool:
    if options.topics:
        return topic in options.topics
    if options.pattern is not None:
        return re.fullmatch(options.pattern, topic) is not None
    return named or not topic.startswith(_OWN_TOPICS)


def _log_starts(disk: Disk, path: str) -> dict[TopicPartition, int]:
    checkpoint = f"{path}/{LOG_START_CHECKPOINT}"
    try:
        return parse_offsets(read_file(disk, checkpoint))
    except FileNotFoundError:
        return {}
    except CheckpointError as e:
        raise SegmentError(f"{checkpoint}: {e}. Without it deleted records would come back") from e


def _check_twice(found: Sequence[_Folder]) -> None:
    places: dict[TopicPartition, str] = {}
    for folder in found:
        other = places.setdefault(folder.tp, folder.path)
        if other != folder.path:
            raise OptionError(
                f"{folder.tp} is in {other} and in {folder.path}: are these replicas? Its records would be "
                "read twice"
            )


# --- one partition ---------------------------------------------------------------------------------------


class _Partition:
    def __init__(self, disk: Disk, folder: _Folder) -> None:
        self._disk = disk
        self._folder = folder
        names = frozenset(disk.listdir(folder.path))
        self._bases = sorted(
            base for name in names if name.endswith(LOG_SUFFIX) and (base := offset_of(name)) is not None
        )
        for name in sorted(names):
            if name.endswith(LOG_SUFFIX + SWAP_SUFFIX) and name.removesuffix(SWAP_SUFFIX) not in names:
                raise SegmentError(
                    f"{folder.path}/{name}: a compaction is putting this file in place. Try again; "
                    "where no node is running, the next one to start completes it"
                )

    def parts(self, is_committed: bool) -> Iterator[SegmentPart]:
        """In the order of their offsets. Only the last file is looked at for where it ends, and all of them
        where transactions have to be known."""
        transactions = Transactions()
        ends: list[int] = []
        for base in self._bases:
            is_last = base == self._bases[-1]
            if is_last or is_committed:
                ends.append(self._walk(self._path(base), transactions, is_last))
            else:
                ends.append(self._disk.stat(self._path(base)).size)
        open_offset = transactions.first_open_offset if is_committed else None
        stop = MAX_INT64 if open_offset is None else open_offset
        start = self._folder.log_start_offset
        for base, following, end in zip(self._bases, [*self._bases[1:], MAX_INT64], ends, strict=True):
            if not end or following <= start or base >= stop:
                continue
            first, last = max(base, start), min(following, stop) - 1
            aborted = transactions.aborted_between(first, last) if is_committed else ()
            yield SegmentPart(self._path(base), self._folder.tp, end, start, stop - 1, aborted)

    def _path(self, base: int) -> str:
        return f"{self._folder.path}/{file_name(base, LOG_SUFFIX)}"

    def _walk(self, path: str, transactions: Transactions, is_last: bool) -> int:
        """Take the transactions of a file; the position where its whole batches end."""
        fd = self._disk.open(path, O_RDONLY)
        try:
            size = self._disk.size(fd)
            walk = HeaderWalk(self._disk, fd, size)
            held: Header | None = None
            for header in walk:
                if held is not None:
                    self._take(path, fd, held, transactions)
                held = header
            if walk.problem is not None and not (is_last and walk.problem.is_torn):
                raise _damaged(path, walk.problem)
            if held is None:
                return 0
            if is_last and not self._is_whole(fd, held):
                return held.position
            self._take(path, fd, held, transactions)
            return held.position + held.size
        finally:
            self._disk.close(fd)

    def _is_whole(self, fd: int, last: Header) -> bool:
        """Whether the last batch of a log matches its CRC: one that broke off may have its full length."""
        data = read_fully(self._disk, fd, last.size, last.position)
        return all(crc_matches(data, batch) for batch in iter_batches(data))

    def _take(self, path: str, fd: int, header: Header, transactions: Transactions) -> None:
        if header.attributes & CONTROL_FLAG:
            kind = self._control_type(path, fd, header)
            if kind in (ControlType.COMMIT, ControlType.ABORT):
                commit = kind is ControlType.COMMIT
                transactions.end(header.producer_id, header.base_offset, commit=commit)
        elif header.attributes & TRANSACTIONAL_FLAG and header.record_count:
            # What compaction has emptied belongs to a transaction that ended, whatever is left of its marker.
            transactions.write(header.producer_id, header.base_offset)

    def _control_type(self, path: str, fd: int, header: Header) -> ControlType | None:
        """None where compaction has left the batch without its record."""
        if header.size <= HEADER_BYTES:
            return None
        data = read_fully(self._disk, fd, header.size, header.position)
        for batch in iter_batches(data):
            if not crc_matches(data, batch):
                raise _damaged(path, Problem(header.position, "a marker that fails its CRC", False))
            for record in iter_records(data, batch):
                return parse_control_key(record.key)
        return None


def _damaged(path: str, problem: Problem) -> SegmentError:
    return SegmentError(
        f"{path}: position {problem.position}: {problem.told} "
        "(odradek log verify says what a node does about it)"
    )
