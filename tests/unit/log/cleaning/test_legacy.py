"""Batches of magic 0 and 1 in a compacted log: kept records are written as magic 2, at the same offsets."""

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from odradek.log.log import Log
from odradek.records import compression
from tests.support.cleaning import batches, clean, clean_all, keyed, pairs
from tests.unit.log.support import NOW_MS, TP, LogRuntime, append, open_log

COMPACT: dict[str, Any] = {"cleanup_policy": ("compact",), "delete_retention_ms": 1000}
Entry = tuple[int, bytes | None, bytes | None]


def entry(
    magic: int, offset: int, key: bytes | None, value: bytes | None, attributes: int = 0, first: int = 0
) -> bytes:
    """One message as the clients of that time wrote it; inside another one, offsets count from `first`."""
    body = struct.pack(">bb", magic, attributes)
    if magic == 1:
        body += struct.pack(">q", NOW_MS + offset)
    offset -= first
    for field in (key, value):
        body += struct.pack(">i", -1 if field is None else len(field)) + (field or b"")
    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", offset, len(message)) + message


def wrapped(magic: int, entries: Sequence[Entry], codec: int) -> bytes:
    """Messages in a compressed one: magic 1 counts from 0 inside, magic 0 does not."""
    first = entries[0][0] if magic == 1 else 0
    inner = b"".join(entry(magic, offset, key, value, first=first) for offset, key, value in entries)
    return entry(magic, entries[-1][0], None, compression.compress(codec, inner), codec)


def begun(runtime: LogRuntime, path: Path, data: bytes) -> Log:
    """A log whose first segment was written by an old broker."""
    directory = path / str(TP)
    directory.mkdir()
    (directory / f"{0:020d}.log").write_bytes(data)
    log = open_log(runtime, path, changes=COMPACT)
    log.advance_high_watermark(log.log_end_offset)
    log.roll()
    return log


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [compression.NONE, compression.GZIP, compression.SNAPPY])
def test_old_batches_are_compacted_and_keep_their_offsets(
    runtime: LogRuntime, tmp_path: Path, magic: int, codec: int
) -> None:
    sets: list[list[Entry]] = [
        [(0, b"a", b"1"), (1, b"b", b"2"), (2, b"c", b"3")],
        [(3, b"a", b"4"), (4, None, b"keyless"), (5, b"d", b"5")],
    ]
    if codec:
        data = b"".join(wrapped(magic, entries, codec) for entries in sets)
    else:
        data = b"".join(entry(magic, *one) for entries in sets for one in entries)
    log = begun(runtime, tmp_path, data)
    append(log, keyed([(b"c", b"6")]), keyed([(b"y", b"1")]))
    log.roll()
    append(log, keyed([(b"z", b"1")]))
    clean(log, runtime)
    kept = [(1, b"b", b"2"), (3, b"a", b"4"), (5, b"d", b"5"), (6, b"c", b"6"), (7, b"y", b"1")]
    assert pairs(log) == [*kept, (8, b"z", b"1")]
    assert {meta.magic for meta, _ in batches(log)} == {2}
    stamps = {r.offset: r.timestamp for _, found in batches(log) for r in found if r.offset < 6}
    assert stamps == {offset: NOW_MS + offset if magic else -1 for offset in (1, 3, 5)}
    if codec:
        assert {meta.compression for meta, _ in batches(log)[:2]} == {codec}


def test_old_tombstones_are_given_a_horizon(runtime: LogRuntime, tmp_path: Path) -> None:
    log = begun(runtime, tmp_path, entry(1, 0, b"a", b"1") + entry(1, 1, b"a", None))
    append(log, keyed([(b"z", b"1")]))
    log.roll()
    clean(log, runtime)
    (meta, found), _ = batches(log)
    assert [(r.offset, r.key, r.value, r.timestamp) for r in found] == [(1, b"a", None, NOW_MS + 1)]
    assert (meta.has_delete_horizon, meta.base_timestamp) == (True, NOW_MS + 1000)
    runtime.clock.ms += 1000
    clean_all(log, runtime)
    assert pairs(log) == [(2, b"z", b"1")]


def test_an_old_batch_at_the_end_of_a_cleaning_leaves_its_offset(runtime: LogRuntime, tmp_path: Path) -> None:
    """Apache fails here: it knows no empty batch of magic 0 or 1."""
    log = begun(runtime, tmp_path, entry(1, 0, b"a", b"1") + entry(1, 1, None, b"keyless"))
    clean(log, runtime)
    assert pairs(log) == [(0, b"a", b"1")]
    assert [(meta.base_offset, meta.record_count) for meta, _ in batches(log)] == [(0, 1), (1, 0)]
