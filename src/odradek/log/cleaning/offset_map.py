"""OffsetMap: the newest offset of every key in the dirty part of a log, by a keyed hash. It decides which
records are kept."""

import random
from collections.abc import Sequence
from typing import Final

from odradek.core.types import Buffer
from odradek.records import kernel
from odradek.records.batch import Record
from odradek.records.kernel import FULL, SLOT_BYTES

_SECRET_BYTES: Final = 16


class OffsetMap:
    """Limited in size: when it is full, the rest of the log waits for the next cleaning.

    `latest_offset` is the last mapped offset. All records above it are kept.
    """

    __slots__ = ("_most", "_used", "latest_offset", "secret", "slots", "start_offset")

    def __init__(self, secret: bytes, slots: int, load_factor: float, start_offset: int) -> None:
        self.secret = secret
        self.slots = kernel.offset_map(slots)
        self.start_offset = start_offset
        self.latest_offset = -1
        self._used = 0
        self._most = max(1, min(int(slots * load_factor), slots - 1))

    @classmethod
    def for_range(
        cls, secret: bytes, start_offset: int, end_offset: int, max_bytes: int, load_factor: float
    ) -> "OffsetMap":
        """A map for a range of offsets, no larger than needed and within the node's buffer."""
        wanted = int((end_offset - start_offset) / load_factor) + 2
        return cls(secret, max(2, min(wanted, max_bytes // SLOT_BYTES)), load_factor, start_offset)

    def grown_for(self, keys: int) -> "OffsetMap":
        """An empty map for `keys` keys, for a batch that does not fit into a map of normal size."""
        return OffsetMap(self.secret, 2 * keys + 2, 0.5, self.start_offset)

    def put_batches(self, chunk: Buffer, position: int) -> tuple[int, int]:
        """Put the keys of plain batches: (position of the batch at which it stopped, why)."""
        position, finding, self._used, latest = kernel.map_batches(
            chunk, position, self.start_offset, self.slots, self.secret, self._used, self._most
        )
        self.latest_offset = max(self.latest_offset, latest)
        return position, finding

    def put_records(self, records: Buffer, count: int, base_offset: int) -> int:
        """Put the keys of a batch's records. Returns OK or FULL. Raises ValueError if they are malformed."""
        self._used, full = kernel.map_records(
            records, count, base_offset, self.start_offset, self.slots, self.secret, self._used, self._most
        )
        return FULL if full else kernel.OK

    def put_each(self, records: Sequence[Record]) -> int:
        """The same for records of magic 0 or 1."""
        for record in records:
            if record.key is None:
                continue
            encoded = kernel.encode([(0, record.key, None, ())], 0)
            if self.put_records(encoded, 1, record.offset) == FULL:
                return FULL
        return kernel.OK

    def reached(self, offset: int) -> None:
        """All records up to an offset are mapped."""
        self.latest_offset = max(self.latest_offset, offset)

    def newest(self, key: bytes) -> int:
        return kernel.newest_offset(self.slots, self.secret, key)


def new_secret(rng: random.Random) -> bytes:
    return rng.randbytes(_SECRET_BYTES)
