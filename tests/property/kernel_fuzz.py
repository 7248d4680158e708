"""Puts random, sound and damaged bytes to a native kernel given by its path and to its Python twin.

    python -m tests.property.kernel_fuzz PATH_OF_SHARED_OBJECT SECONDS [SEED]

Meant to run under AddressSanitizer (kernel_asan.sh): every buffer is an allocation of exactly its size.
"""

import ctypes
import importlib.util
import random
import sys
import threading
import time
from array import array
from types import ModuleType
from typing import Any

from odradek.records.batch import BatchMeta, build_batch
from odradek.records.header import HEADER_BYTES
from odradek.records.twins import columns as kernel_columns_py
from odradek.records.twins import compaction as kernel_compaction_py
from odradek.records.twins import kernel as kernel_py
from tests.property.strategies import DAMAGES, with_crc

INT64 = (-(1 << 63), -1, 0, 1, 1_700_000_000_000, (1 << 63) - 1)


def load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("odradek.records._kernel", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def exact(data: bytes) -> memoryview:
    """The bytes in an allocation that ends where they end; a bytes object has one more."""
    return memoryview((ctypes.c_ubyte * len(data)).from_buffer_copy(data)).cast("B")


def outcome(function: Any, *args: Any) -> Any:
    try:
        return function(*args)
    except (ValueError, OverflowError):
        return "refused"


def some_bytes(rng: random.Random) -> bytes | None:
    return None if rng.random() < 0.2 else rng.randbytes(rng.choice((0, 1, 5, 63, 64, 65, 200)))


def some_records(rng: random.Random) -> list[Any]:
    return [
        (
            rng.choice(INT64) if rng.random() < 0.1 else 1_700_000_000_000 + rng.randrange(-5000, 5000),
            some_bytes(rng),
            some_bytes(rng),
            [
                (chr(rng.randrange(32, 0x2000)) * rng.randrange(3), some_bytes(rng))
                for _ in range(rng.choice((0, 0, 1, 3)))
            ],
        )
        for _ in range(rng.choice((1, 1, 2, 5, 20)))
    ]


def some_batch(rng: random.Random) -> bytes:
    batch = build_batch(some_records(rng))
    if rng.random() < 0.7:
        for _ in range(rng.randrange(1, 4)):
            if len(batch) > HEADER_BYTES:
                rng.choice(DAMAGES)(batch, rng)
        if len(batch) >= HEADER_BYTES and rng.random() < 0.8:
            return with_crc(batch)
    return bytes(batch)


def one_round(native: ModuleType, rng: random.Random) -> None:
    parts = [some_batch(rng) for _ in range(rng.randrange(1, 5))]
    sets = [exact(b"".join(parts)), *map(exact, parts), exact(rng.randbytes(rng.randrange(100)))]
    low, high = rng.choice(((INT64[0], INT64[-1]), (1_699_999_998_000, 1_700_000_002_000)))
    need_keys = rng.random() < 0.5
    plain_bytes = rng.choice((-1, 70, 100, 1000))
    assert native.validate(sets, BatchMeta, low, high, need_keys, plain_bytes) == kernel_py.validate(
        sets, BatchMeta, low, high, need_keys, plain_bytes
    )
    start = rng.choice((0, 0, rng.randrange(len(sets[0]) + 1)))
    assert native.scan_segment(sets[0], BatchMeta, start) == kernel_py.scan_segment(sets[0], BatchMeta, start)
    assert native.crc32c(sets[0]) == kernel_py.crc32c(sets[0])

    section = exact(parts[0][HEADER_BYTES:])
    count = rng.choice((int.from_bytes(parts[0][57:61], "big", signed=True), 0, 1, 3, -1, 1 << 40))
    if count < 1000:
        args = (section, count, rng.choice(INT64), low, high, need_keys)
        assert native.check_records(*args) == kernel_py.check_records(*args)
        args = (*args, rng.choice((0, 1, 3, 100)))
        assert outcome(native.find_outsiders, *args) == outcome(kernel_py.find_outsiders, *args)
    position = min(len(section), rng.choice((0, 0, 1)))
    spans = outcome(native.walk, section, count, position)
    assert count >= 1000 or spans == outcome(kernel_py.walk, section, count, position)

    if isinstance(spans, bytes):
        columns = bytearray(spans)
        if columns and rng.random() < 0.7:
            at = rng.randrange(len(columns) // 8) * 8
            columns[at : at + 8] = rng.choice((*INT64, 5, 1 << 31)).to_bytes(8, "little", signed=True)
        sources = [
            exact(bytes(section)[: rng.choice((len(section), rng.randrange(len(section) + 1)))])
            for _ in range(3)
        ]
        args = (exact(bytes(columns)), *sources, rng.choice((0, 61)))
        assert outcome(native.build, *args) == outcome(kernel_py.build, *args)
    records = some_records(rng)
    assert native.encode(records, records[0][0], 61) == kernel_py.encode(records, records[0][0], 61)
    if rng.random() < 0.1:  # the twin hashes every key in Python, which takes long
        compact(native, rng, sets[0], section, count)
    read_columns(native, rng, parts)
    write_columns(native, rng)


def compact(
    native: ModuleType, rng: random.Random, chunk: memoryview, section: memoryview, count: int
) -> None:
    """Map and retain batches, in maps and outputs of every size."""
    slots, most, start = rng.choice((0, 1, 3, 64)), rng.choice((0, 2, 50)), rng.choice((0, 0, 2))
    maps = [kernel.offset_map(slots) for kernel in (native, kernel_compaction_py)]
    secret = exact(rng.randbytes(16))
    assert native.map_batches(chunk, 0, start, maps[0], secret, 0, most) == kernel_compaction_py.map_batches(
        chunk, 0, start, maps[1], secret, 0, most
    )
    assert maps[0] == maps[1]
    last_offsets = exact(b"".join(n.to_bytes(8, "little") for n in sorted(rng.sample(range(40), 4))))
    rules = (maps[0], secret, rng.choice((-1, 3, 100)), rng.choice(INT64), rng.choice(INT64), last_offsets)
    size, one = rng.choice((0, 61, 100, len(chunk), 40 * len(chunk))), rng.random() < 0.3
    outs = [bytearray(size), bytearray(size)]
    found = native.retain_batches(chunk, 0, outs[0], 0, rules, one)
    assert found == kernel_compaction_py.retain_batches(chunk, 0, outs[1], 0, rules, one)
    assert outs[0][: found[2]] == outs[1][: found[2]]
    state = (0, rng.choice((0, 200)), 0, -1, 0)
    assert native.index_batches(chunk, *state) == kernel_compaction_py.index_batches(chunk, *state)
    args = (section, count, 0, rng.choice(INT64), rng.choice(INT64), rng.choice((0, 8, 0x40)), rules)
    kept = outcome(native.retain_records, *args)
    assert kept == outcome(kernel_compaction_py.retain_records, *args)


def read_columns(native: ModuleType, rng: random.Random, batches: list[bytes]) -> None:
    """Sections of one buffer or each in its own, mostly where they are and as many as they are said to be."""
    one = exact(b"".join(batches))
    parts, position = [], 0
    for batch in batches:
        count = int.from_bytes(batch[57:61], "big", signed=True)
        shared = rng.random() < 0.5
        start = position + HEADER_BYTES if shared else 0
        end = max(start, start + len(batch) - HEADER_BYTES) + rng.choice((0,) * 9 + (1,))
        bases = (rng.choice((0, 5, *INT64)), rng.choice(INT64), rng.choice((-1, *INT64)))
        own = one if shared else exact(batch[HEADER_BYTES:])
        parts.append((own, start, end, min(count, rng.choice((count, 1000))), *bases))
        position += len(batch)
    for some in (parts, [rng.choice(parts)]):
        bounds = rng.choice(((INT64[0], INT64[-1]), (0, 6), (1, 2), (INT64[-1], INT64[0])))
        args = (some, *bounds, rng.random() < 0.5)
        assert outcome(native.columns, *args) == outcome(kernel_columns_py.columns, *args)


def write_columns(native: ModuleType, rng: random.Random) -> None:
    """Rows of columns whose buffers mostly hold them, in orders that mostly name them."""
    twin = kernel_columns_py
    records = some_records(rng)
    data, rows = kernel_py.encode(records, 0), len(records)
    read = twin.columns([(data, 0, len(data), rows, 0, 0, -1)], 0, rows, True)
    assert read[9] is not None
    buffers = [None if b is None else bytearray(b) for b in (*read[3:9], *read[9])]
    if rng.random() < 0.7:
        damage_columns(buffers, rng)
    held = [None if b is None else exact(bytes(b)) for b in buffers]
    columns = [rng.choice((c, c, c, None)) for c in (tuple(held[:3]), tuple(held[3:6]), tuple(held[6:]))]
    numbers = [rng.randrange(rows) for _ in range(rows)]
    if rng.random() < 0.2:
        numbers[rng.randrange(rows)] = rng.choice((-1, rows, rows + 1, 0x7FFFFFFF, -0x80000000))
    order = rng.choice((None, exact(array("i", numbers).tobytes())))
    first = rng.choice((0, 0, 0, 1, 8, 0x7FFFFFFF))
    stop = rng.choice((rows, rows, max(0, rows - first), rows + 1, rows + 8))
    start = rng.choice((0, 0, rng.randrange(rows)))
    args = (order, start, stop, first, *columns, rng.choice(INT64), rng.choice((0, 300, 1 << 40)))
    assert outcome(native.build_columns, *args, 61) == outcome(twin.build_columns, *args, 61)
    partitions = rng.choice((1, 3, 100))
    keys = (*held[:3], first, stop, partitions)
    places = outcome(native.place_keys, *keys)
    assert places == outcome(twin.place_keys, *keys)
    for some in (places, array("i", numbers).tobytes()):
        if some != "refused":
            asked = (exact(some), rng.choice((partitions, rows)))
            assert outcome(native.group_rows, *asked) == outcome(twin.group_rows, *asked)


def damage_columns(buffers: list[bytearray | None], rng: random.Random) -> None:
    """Cut a buffer, or write an offset or a bit of it over."""
    for _ in range(rng.randrange(1, 3)):
        buffer = rng.choice(buffers)
        if buffer and rng.random() < 0.5:
            del buffer[len(buffer) - rng.choice((1, 4, rng.randrange(len(buffer)))) :]
        elif buffer and len(buffer) >= 4:
            at = rng.randrange(len(buffer) // 4) * 4
            number = rng.choice((-1, 0, 1, 7, 64, 0x7FFFFFFF, -0x80000000))
            buffer[at : at + 4] = number.to_bytes(4, "little", signed=True)
        elif buffer:
            buffer[rng.randrange(len(buffer))] = rng.randrange(256)


def race(native: ModuleType, rng: random.Random) -> None:
    """Change buffers while they are read without the interpreter's lock.

    Back and forth between two states that are both sound, so that what one pass has measured is not what the
    next one finds.
    """
    count = 17_000
    pairs = [rng.choice(((b"abc", bytes(100)), (None, bytes(100)), (bytes(100), None))) for _ in range(count)]
    states: list[list[bytes]] = []
    for way, headers in ((1, [("name", b"content"), ("n", None)]), (-1, [("content", b"as long")])):
        data = native.encode([(0, *pair[::way], headers) for pair in pairs], 0)
        read = native.columns([(data, 0, len(data), count, 0, 0, -1)], 0, count, True)
        numbers = array("i", range(count) if way > 0 else [count - 1] * count)
        states.append([bytes(data), numbers.tobytes(), *(b or b"" for b in (*read[3:9], *read[9]))])
    both = list(zip(*states, strict=True))
    targets = [bytearray(max(map(len, pair))) for pair in both]
    done = threading.Event()

    def disturb() -> None:
        while not done.is_set():
            for state in (0, 1):
                for target, pair in zip(targets, both, strict=True):
                    memoryview(target)[: len(pair[state])] = pair[state]

    thread = threading.Thread(target=disturb)
    thread.start()
    data, numbers, *buffers = targets
    columns = (tuple(buffers[:3]), tuple(buffers[3:6]), (buffers[6], None, *buffers[8:]))
    try:
        for _ in range(8):
            outcome(native.columns, [(data, 0, len(data), count, 0, 0, -1)], 0, count, True)
            outcome(native.build_columns, numbers, 0, count, 0, *columns, 0, 1 << 40, 0)
            outcome(native.build_columns, None, 0, count, 0, *columns, 0, 1 << 40, 0)
            outcome(native.group_rows, numbers, count)
            outcome(native.place_keys, *buffers[:3], 0, count, 7)
    finally:
        done.set()
        thread.join()


def main() -> None:
    native = load(sys.argv[1])
    seconds = float(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    race(native, random.Random(seed))
    end = time.monotonic() + seconds
    rounds = 0
    while time.monotonic() < end:
        rng = random.Random(seed + rounds)
        try:
            one_round(native, rng)
        except BaseException:
            print(f"failed with seed {seed + rounds}", file=sys.stderr)
            raise
        rounds += 1
    print(f"{rounds} rounds, seeds {seed} to {seed + rounds - 1}")


if __name__ == "__main__":
    main()
