"""The native kernel gives back what it takes: no call leaks, whether it answers or refuses."""

import contextlib
import sys
from collections.abc import Callable
from typing import Any

import pytest

from odradek.records.batch import BatchMeta, RecordTuple, build_batch

native = pytest.importorskip("odradek.records._kernel", reason="the native kernel was not built")

ROWS: list[RecordTuple] = [(i, b"key", None, (("name", b"x"), ("none", None))) for i in range(20)]
BATCH = bytes(build_batch(ROWS))
BODY = BATCH[61:]
SPANS = native.walk(BODY, 20)

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
    references = [sys.getrefcount(thing) for thing in (BATCH, BODY, SPANS, ROWS, BatchMeta, None)]
    repeat(500)
    assert sys.getallocatedblocks() - before < 100
    after = [sys.getrefcount(thing) for thing in (BATCH, BODY, SPANS, ROWS, BatchMeta, None)]
    assert max(b - a for a, b in zip(references, after, strict=True)) < 100
