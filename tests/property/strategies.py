"""Hypothesis strategies for records and batches, sound and damaged, and what the property tests share."""

import random
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from odradek.records import compression
from odradek.records.batch import RecordTuple, build_batch
from odradek.records.header import CRC_START, HEADER_BYTES
from odradek.records.twins.kernel import crc32c

TIMESTAMPS = st.one_of(
    st.integers(1_699_999_990_000, 1_700_000_010_000),
    st.sampled_from([-1, 0, 1, (1 << 63) - 1, -(1 << 63)]),
)
BYTES = st.one_of(st.none(), st.binary(max_size=40), st.builds(bytes, st.integers(0, 300)))
HEADERS = st.lists(st.tuples(st.text(max_size=8), BYTES), max_size=3).map(tuple)
RECORDS: st.SearchStrategy[list[RecordTuple]] = st.lists(
    st.tuples(TIMESTAMPS, BYTES, BYTES, HEADERS), min_size=1, max_size=12
)


@st.composite
def batches(draw: st.DrawFn, codecs: tuple[int, ...] = (0, 1, 2, 3, 4)) -> bytes:
    """A batch as a well-behaved producer builds it."""
    idempotent = draw(st.booleans())
    return bytes(
        build_batch(
            draw(RECORDS),
            codec=draw(st.sampled_from(codecs)),
            producer_id=7 if idempotent else -1,
            producer_epoch=1 if idempotent else -1,
            base_sequence=draw(st.integers(0, 0x7FFFFFFF)) if idempotent else -1,
            transactional=draw(st.booleans()),
        )
    )


def with_crc(batch: bytearray) -> bytes:
    """A damaged batch whose length and CRC fit again, so that the damage is found further inside."""
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[17:21] = crc32c(memoryview(batch)[CRC_START:]).to_bytes(4, "big")
    return bytes(batch)


def _flip(batch: bytearray, rng: random.Random) -> None:
    batch[rng.randrange(len(batch))] ^= 1 << rng.randrange(8)


def _overwrite(batch: bytearray, rng: random.Random) -> None:
    batch[rng.randrange(len(batch))] = rng.choice((0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF))


def _cut(batch: bytearray, rng: random.Random) -> None:
    del batch[rng.randrange(len(batch)) :]


def _drop(batch: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(batch))
    del batch[at : at + rng.randrange(1, 9)]


def _insert(batch: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(batch) + 1)
    batch[at:at] = rng.randbytes(rng.randrange(1, 9))


def _change_count(batch: bytearray, rng: random.Random) -> None:
    batch[57:61] = (rng.choice((0, 1, 5, -1, 0x7FFFFFFF)) & 0xFFFFFFFF).to_bytes(4, "big")
    batch[23:27] = ((int.from_bytes(batch[57:61], "big") - 1) & 0xFFFFFFFF).to_bytes(4, "big")


DAMAGES: tuple[Callable[[bytearray, random.Random], None], ...] = (
    _flip,
    _overwrite,
    _cut,
    _drop,
    _insert,
    _change_count,
)


@st.composite
def damaged_batches(draw: st.DrawFn, codecs: tuple[int, ...] = (0, 1, 2, 3, 4)) -> bytes:
    """A batch with a few bytes changed; mostly with its length and CRC made right again."""
    batch = bytearray(draw(batches(codecs)))
    rng = random.Random(draw(st.integers(0, 1 << 32)))
    for _ in range(draw(st.integers(1, 3))):
        if len(batch) > HEADER_BYTES:
            rng.choice(DAMAGES)(batch, rng)
    if len(batch) >= HEADER_BYTES and draw(st.integers(0, 3)):
        return with_crc(batch)
    return bytes(batch)


@st.composite
def record_sections(draw: st.DrawFn) -> tuple[bytes, int]:
    """Bytes that are, or nearly are, the records of a batch, with their count."""
    batch = draw(st.one_of(batches((compression.NONE,)), damaged_batches((compression.NONE,))))
    count = int.from_bytes(batch[57:61], "big", signed=True) if len(batch) >= HEADER_BYTES else 1
    return batch[HEADER_BYTES:], draw(st.sampled_from([count, count, count, 0, 1, count + 1]))


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    """What a function gives, or that it refuses: the kernels need not say so in the same words."""
    try:
        return function(*args)
    except ValueError:
        return ValueError
