"""The headers of a segment file's batches, one after the other, without reading what lies between them.

CRCs are not checked here: the reader of the records does.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from odradek.log.files import read_fully
from odradek.records.header import HEADER_BYTES, LEGACY_MIN_SIZE, LOG_OVERHEAD
from odradek.records.scanning import scan
from odradek.runtime.api import Disk

_WINDOW_BYTES: Final = 4096
"""A page: small batches are found in it together, of large ones no more than this is read."""

_MAGIC_AT: Final = 16
_SEARCH_BYTES: Final = 16 << 20

# base_offset int64 0, batch_length int32 8, magic int8 16
_START = Struct(">qi4xb")
# attributes int16 21, last_offset_delta int32 23, (timestamps,) producer_id int64 43, (epoch, sequence,)
# record_count int32 57
_REST = Struct(">hi16xq6xi")
_REST_AT: Final = 21


class Header(NamedTuple):
    position: int
    size: int
    base_offset: int
    last_offset: int
    attributes: int
    producer_id: int
    record_count: int


class Problem(NamedTuple):
    """What stands where a batch must begin. `is_torn`: all of it may be of a write that broke off."""

    position: int
    told: str
    is_torn: bool


class HeaderWalk:
    """Iterate over it, then ask for `problem`: None where the file ends with a whole batch."""

    def __init__(self, disk: Disk, fd: int, size: int) -> None:
        self._disk = disk
        self._fd = fd
        self._size = size
        self.problem: Problem | None = None

    def __iter__(self) -> Iterator[Header]:
        window, start, position, size = b"", 0, 0, self._size
        while position < size:
            at = position - start
            if at + HEADER_BYTES > len(window) and start + len(window) < size:
                window = read_fully(self._disk, self._fd, min(_WINDOW_BYTES, size - position), position)
                start, at = position, 0
            found = self._look(window, at, position)
            if isinstance(found, Problem):
                self.problem = found
                return
            yield found
            position += found.size

    def _look(self, window: bytes, at: int, position: int) -> Header | Problem:
        rest = self._size - position
        if len(window) - at <= _MAGIC_AT:
            return Problem(position, f"{rest} bytes of a batch", True)
        base_offset, length, magic = _START.unpack_from(window, at)
        if not any(window[at : at + HEADER_BYTES]):
            return Problem(position, "zeros instead of a batch", self._is_empty_from(position))
        size = length + LOG_OVERHEAD
        if magic not in (0, 1, 2) or size < (HEADER_BYTES if magic == 2 else LEGACY_MIN_SIZE + LOG_OVERHEAD):
            return Problem(position, f"not a batch: length {length}, magic {magic}", False)
        if size > rest:
            is_torn = magic < 2 or rest < HEADER_BYTES or not self._goes_on_behind(window, at, position)
            return Problem(position, f"{rest} bytes of a batch of {size}", is_torn)
        if magic < 2:
            return Header(position, size, base_offset, base_offset, 0, -1, 1)
        attributes, last_delta, *rest_of_it = _REST.unpack_from(window, at + _REST_AT)
        return Header(position, size, base_offset, base_offset + last_delta, attributes, *rest_of_it)

    def _is_empty_from(self, position: int) -> bool:
        """Whether there are only zeros: room that was made for batches and never used."""
        while position < self._size:
            data = read_fully(self._disk, self._fd, min(1 << 20, self._size - position), position)
            if not data or any(data):
                return False
            position += len(data)
        return True

    def _goes_on_behind(self, window: bytes, at: int, position: int) -> bool:
        """Whether the batch that follows by its offset is there, where one is longer than the file: then it
        is its length that is wrong."""
        base_offset, _, _ = _START.unpack_from(window, at)
        _, last_delta, *_ = _REST.unpack_from(window, at + _REST_AT)
        following = (base_offset + last_delta + 1).to_bytes(8, "big", signed=True)
        data = read_fully(self._disk, self._fd, min(self._size - position, _SEARCH_BYTES), position)
        found = data.find(following, HEADER_BYTES)
        return found >= 0 and bool(scan(memoryview(data)[found:])[0])
