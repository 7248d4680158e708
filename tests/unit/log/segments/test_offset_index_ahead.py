"""Lookups below the entries in memory, near each other and far apart, answer like a plain search."""

import random
from bisect import bisect_right

from odradek.log.files import FilePool
from odradek.log.segments.offset_index import OffsetIndex
from odradek.runtime.real import RealDisk


def test_lookups_in_any_order_find_the_last_entry_at_or_before(tmp_path):
    index = OffsetIndex(FilePool(RealDisk()), str(tmp_path / "0.index"), 1000, 1 << 20, fresh=True)
    rng = random.Random(7)
    entries, offset = [], 1000
    for number in range(6000):
        offset += rng.randrange(1, 9)
        entries.append((offset, (number + 1) * 4097))
        index.append(*entries[-1])
    offsets = [entry[0] for entry in entries]
    asked = [*range(1000, offset + 5, 13), *(rng.randrange(1000, offset + 5) for _ in range(3000))]
    for wanted in asked:
        slot = bisect_right(offsets, wanted) - 1
        assert index.lookup(wanted) == (entries[slot] if slot >= 0 else (1000, 0))
    index.truncate_to(offsets[3000])
    for wanted in asked:
        slot = bisect_right(offsets, wanted, hi=3000) - 1
        assert index.lookup(wanted) == (entries[slot] if slot >= 0 else (1000, 0))
