"""The native kernel gives back what it takes: no call leaks, whether it answers or refuses."""

import contextlib
import mmap
import sys
from array import array
from collections.abc import Callable
from typing import Any

import pytest

from odradek.records.batch import BatchMeta, RecordTuple, build_batch

native = pytest.importorskip("odradek.records._kernel", reason="the native kernel was not built")

ROWS: list[RecordTuple] = [(i, b"key", None, (("name", b"x"), ("none", None))) for i in range(20)]
BATCH = bytes(build_batch(ROWS))
BODY = BATCH[61:]
SPANS = native.walk(BODY, 20)
PART = (BODY, 0, len(BODY), 20, 0, 0, -1)
READ = native.columns([PART], 0, 20, True)
TABLE = (READ[3:6], READ[6:9], READ[9])

CALLS: dict[str, Callable[[], Any]] = {
    "crc32c": lambda: native.crc32c(BATCH, 7),
    "crc32c of text": lambda: native.crc32c("text"),
    "crc32c from a negative": lambda: native.crc32c(BATCH, -1),
    "validate": lambda: native.validate([BATCH] * 12, BatchMeta, 0, 5, True),
    "validate many batches": lambda: native.validate([BATCH * 40, BATCH[:70]], BatchMeta, 0, 5, True),
    "validate text": lambda: native.validate([BATCH, "text"], BatchMeta, 0, 5, True),
    "validate no sequence": lambda: native.validate(7, BatchMeta, 0, 5, True),
    "validate into a list": lambda: native.validate([BATCH], list, 0, 5, True),
    "check_records": lambda: native.check_records(BODY, 20, 0, 0, 5, False),
    "check_records beyond": lambda: native.check_records(BODY, 20, 0, 0, 5, False, 10_000),
    "scan_segment": lambda: native.scan_segment(BATCH * 40 + b"x", BatchMeta),
    "scan_segment beyond": lambda: native.scan_segment(BATCH, BatchMeta, 10_000),
    "walk": lambda: native.walk(BODY, 20),
    "walk malformed": lambda: native.walk(BODY, 19),
    "build": lambda: native.build(SPANS, BODY, BODY, BODY, 61),
    "build from too little": lambda: native.build(SPANS, b"", BODY, BODY, 61),
    "build from text": lambda: native.build(SPANS, BODY, BODY, "text"),
    "build from odd columns": lambda: native.build(SPANS[:-1], BODY, BODY, BODY),
    "encode": lambda: native.encode(ROWS, 0, 61),
    "encode text": lambda: native.encode([*ROWS, (0, None, "text", ())], 0),
    "encode a wrong header": lambda: native.encode([(0, None, None, [("name", None), (b"name", None)])], 0),
    "encode a short tuple": lambda: native.encode([(0, None)], 0),
    "allocate": lambda: native.allocate(100),
    "allocate less than nothing": lambda: native.allocate(-1),
    "columns": lambda: native.columns([PART, (memoryview(BATCH), 61, *PART[2:])] * 9, 0, 20, True),
    "columns without headers": lambda: native.columns([PART, PART], 3, 5, False),
    "columns of lists": lambda: native.columns([list(PART)], 0, 20, True),
    "columns malformed": lambda: native.columns(
        [PART, (BODY[:-1], 0, len(BODY) - 1, *PART[3:])], 0, 20, True
    ),
    "columns beyond": lambda: native.columns([PART, (BODY, 0, 10_000, *PART[3:])], 0, 20, True),
    "columns of text": lambda: native.columns([PART, ("text", *PART[1:])], 0, 20, True),
    "columns of a short tuple": lambda: native.columns([PART, PART[:3]], 0, 20, True),
    "columns of no sequence": lambda: native.columns(7, 0, 20, True),
    "murmur2": lambda: native.murmur2(BODY),
    "murmur2 of text": lambda: native.murmur2("text"),
    "place_keys": lambda: native.place_keys(*READ[3:6], 0, 20, 1_000),
    "place_keys beyond": lambda: native.place_keys(*READ[3:6], 1, 20, 1_000),
    "place_keys of text": lambda: native.place_keys(READ[3], READ[4], "text", 0, 20, 1_000),
    "group_rows": lambda: native.group_rows(bytes(400), 1_000),
    "group_rows elsewhere": lambda: native.group_rows(SPANS, 1),
    "group_rows of text": lambda: native.group_rows("text", 1),
    "build_columns": lambda: native.build_columns(bytes(80), 0, 20, 0, *TABLE, 0, 500, 61),
    "build_columns of nulls": lambda: native.build_columns(None, 0, 20, 0, None, None, None, 0, 500, 61),
    "build_columns beyond": lambda: native.build_columns(None, 0, 21, 0, *TABLE, 0, 50_000, 61),
    "build_columns beyond the order": lambda: native.build_columns(b"", 0, 20, 0, *TABLE, 0, 50, 61),
    "build_columns of text": lambda: native.build_columns(
        None, 0, 20, 0, *TABLE[:2], (*TABLE[2][:6], "text"), 0, 500, 61
    ),
    "build_columns of a short tuple": lambda: native.build_columns(
        None, 0, 20, 0, *TABLE[:2], TABLE[2][:6], 0, 500, 61
    ),
    "no arguments": lambda: native.walk(),
}


@pytest.mark.parametrize("name", CALLS)
def test_no_call_leaks(name: str) -> None:
    call = CALLS[name]

    def repeat(times: int) -> None:
        for _ in range(times):
            with contextlib.suppress(TypeError, ValueError, OverflowError):
                call()

    repeat(2_100)  # the interpreter keeps up to 2,000 freed tuples of a size
    before = sys.getallocatedblocks()
    references = [sys.getrefcount(thing) for thing in (BATCH, BODY, SPANS, READ[4], ROWS, BatchMeta, None)]
    repeat(500)
    assert sys.getallocatedblocks() - before < 100
    after = [sys.getrefcount(thing) for thing in (BATCH, BODY, SPANS, READ[4], ROWS, BatchMeta, None)]
    assert max(b - a for a, b in zip(references, after, strict=True)) < 100


def test_rows_too_large_for_a_record_are_refused() -> None:
    """Only here: the Python kernel would have to copy what the native one measures first."""
    half = 0x40000000
    with mmap.mmap(-1, half) as large, memoryview(large) as data:
        column = (array("i", [0, half]), data, None)
        with pytest.raises(ValueError, match="too large"):
            native.build_columns(None, 0, 1, 0, column, column, None, 0, 100, 0)
