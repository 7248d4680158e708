"""Finds the valid batches of a buffer, of any magic, and checks the CRC of each. Pure.

The kernel scans batches of magic 2. Entries of magic 0 and 1, from old segments, are scanned one by one here.
"""

from typing import TypeAlias

from odradek.core.errors import KafkaError
from odradek.core.types import Buffer
from odradek.records.header import BatchMeta, crc_matches, iter_batches
from odradek.records.kernel import BAD_CRC, BAD_LENGTH, LEGACY, PARTIAL, scan_segment

__all__ = ["Scanned", "scan"]

Scanned: TypeAlias = tuple[list[BatchMeta], int, int]


def scan(data: Buffer, position: int = 0) -> Scanned:
    """(the batches from a position, the position after the last one, why the scan ended).

    The reasons are those of the kernel's `scan_segment`, without LEGACY.
    """
    batches, end, finding = scan_segment(data, BatchMeta, position)
    while finding == LEGACY:
        try:
            entry = next(iter_batches(data, end), None)
        except KafkaError:
            return batches, end, BAD_LENGTH
        if entry is None:
            return batches, end, PARTIAL
        if not crc_matches(data, entry):
            return batches, end, BAD_CRC
        batches.append(entry)
        more, end, finding = scan_segment(data, BatchMeta, end + entry.size)
        batches += more
    return batches, end, finding
