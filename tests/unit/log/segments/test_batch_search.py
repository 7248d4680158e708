"""Batches looked up in a file by an index's hint: what is found, and where the hint or the file is wrong."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.log.segments.batch_search import NoBatchError, find_batch, last_offset_at, scan_batches
from odradek.runtime.real import RealDisk
from tests.unit.log.support import batch
from tests.unit.records.produce_cases import legacy_entry


class File:
    def __init__(self, path: Path) -> None:
        self.disk = RealDisk()
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT)
        self.size = 0

    def write(self, *parts: bytes) -> list[int]:
        """Where each of them begins."""
        starts = []
        for part in parts:
            starts.append(self.size)
            self.size += os.pwrite(self.fd, part, self.size)
        return starts

    def find(
        self, offset: int, indexed: tuple[int, int] = (0, 0), base_offset: int = 0, end: int | None = None
    ) -> tuple[int, int, int] | None:
        end = self.size if end is None else end
        return find_batch(self.disk, self.fd, end, base_offset, offset, indexed)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[File]:
    found = File(tmp_path / "segment")
    yield found
    os.close(found.fd)


def of(count: int, base_offset: int, **fields: bytes) -> bytes:
    return bytes(batch(count, base_offset=base_offset, **fields).buffer)


def test_the_first_batch_that_reaches_an_offset_is_found(file: File) -> None:
    parts = [of(3, 0), of(1, 3), of(2, 8)]
    starts = file.write(*parts)
    expected = {0: 0, 2: 0, 3: 1, 4: 2, 8: 2, 9: 2}
    for offset, number in expected.items():
        assert file.find(offset) == ((0, 3, 8)[number], starts[number], len(parts[number]))
    assert file.find(10) is None
    assert file.find(8, (3, starts[1])) == (8, starts[2], len(parts[2]))


def test_batches_are_found_beyond_what_is_read_at_once(file: File) -> None:
    parts = [of(1, i, value=bytes(i * 7 % 300)) for i in range(200)]
    starts = file.write(*parts)
    assert file.size > 3 * 4096
    for offset in range(200):
        assert file.find(offset) == (offset, starts[offset], len(parts[offset]))


def test_the_smallest_entry_of_an_old_format_is_found(file: File) -> None:
    """It is smaller than the head of a batch."""
    entry = legacy_entry(0, b"", offset=7)
    assert len(entry) == 26
    file.write(entry)
    assert file.find(7) == (7, 0, 26)
    assert file.find(8) is None
    (start,) = file.write(legacy_entry(1, b"v", offset=8))
    assert file.find(8) == (8, start, file.size - start)


def test_an_empty_file_has_no_batch(file: File) -> None:
    assert file.find(0) is None


def test_a_hint_beyond_the_file_is_wrong(file: File) -> None:
    file.write(of(1, 0))
    for position in (file.size, file.size + 1):
        with pytest.raises(NoBatchError, match=f"no record batch at byte offset {position}") as wrong:
            file.find(0, (0, position))
        assert wrong.value.position == position


def test_a_hint_that_points_to_a_later_batch_than_it_says_is_wrong(file: File) -> None:
    _, second = file.write(of(3, 0), of(3, 5))
    assert file.find(5, (7, second)) is not None
    assert file.find(5, (5, second)) is not None
    with pytest.raises(NoBatchError):
        file.find(5, (4, second))


@pytest.mark.parametrize(
    ("at", "value"),
    [(16, 3), (16, 0xFF), (11, 13), (8, 0x80), (7, 4)],
    ids=["magic", "negative magic", "length", "negative length", "offset"],
)
def test_what_cannot_be_a_batch_is_told_with_its_place(file: File, at: int, value: int) -> None:
    """The segment begins at offset 5."""
    broken = bytearray(of(1, 6))
    broken[8:11] = bytes(3) if at == 11 else broken[8:11]
    broken[at] = value
    _, second = file.write(of(1, 5), bytes(broken))
    with pytest.raises(NoBatchError) as wrong:
        file.find(6, base_offset=5)
    assert wrong.value.position == second


def test_a_batch_beyond_the_end_is_none(file: File) -> None:
    file.write(of(1, 0))
    assert file.find(0) is not None
    with pytest.raises(NoBatchError):
        file.find(0, end=file.size - 1)


def test_the_last_offset_at_a_position_is_that_of_its_batch(file: File) -> None:
    first, second, third = file.write(of(3, 5), legacy_entry(1, b"v", offset=9), of(1, 10))
    assert last_offset_at(file.disk, file.fd, first) == 7
    assert last_offset_at(file.disk, file.fd, second) == 9
    assert last_offset_at(file.disk, file.fd, third) == 10
    assert last_offset_at(file.disk, file.fd, file.size) is None
    assert last_offset_at(file.disk, file.fd, 1) is None


def test_a_scan_gives_batches_at_their_places_and_ends_before_a_partial_one(file: File) -> None:
    large = of(1, 4, value=bytes(3 << 20))
    starts = file.write(of(3, 0), of(1, 3), large, of(1, 5)[:-1])
    found = list(scan_batches(file.disk, file.fd, 0, file.size))
    assert [(b.position, b.base_offset, b.size) for b in found] == [
        (starts[0], 0, starts[1]),
        (starts[1], 3, starts[2] - starts[1]),
        (starts[2], 4, len(large)),
    ]
    found = list(scan_batches(file.disk, file.fd, starts[1], starts[2]))
    assert [b.base_offset for b in found] == [3]
    assert list(scan_batches(file.disk, file.fd, starts[1], starts[2] - 1)) == []


def test_a_scan_tells_where_something_is_no_batch(file: File) -> None:
    _, second = file.write(of(1, 0), bytes(40))
    scan = scan_batches(file.disk, file.fd, 0, file.size)
    assert next(scan).base_offset == 0
    with pytest.raises(KafkaError, match=f"no record batch at byte offset {second}") as corrupt:
        next(scan)
    assert corrupt.value.code == ErrorCode.CORRUPT_MESSAGE
