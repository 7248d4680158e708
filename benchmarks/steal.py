"""What the host took away: cores of a virtual machine are lent, and a sample taken without them is spoilt.

Every sample carries the share of its time that was stolen, and a number is the median of the quieter half of
its samples: the choice looks at the machine, never at the value, and is the same for both brokers.
"""

import pathlib
import statistics
from typing import NamedTuple

LEAST_TICKS = 20
"""Fewer ticks than these since the sample before: both are of one load and share what it lost."""


class Sample(NamedTuple):
    value: float
    stolen: float


Samples = dict[str, list[Sample]]


class Meter:
    """The share of time stolen between one sample and the next."""

    def __init__(self) -> None:
        self._at = self._ticks()
        self._share = 0.0

    def share(self) -> float:
        stolen, total = self._ticks()
        passed = total - self._at[1]
        if passed >= LEAST_TICKS:
            self._share = (stolen - self._at[0]) / passed
            self._at = stolen, total
        return self._share

    @staticmethod
    def _ticks() -> tuple[int, int]:
        """Ticks of all cores so far: those that the host gave to others, and all."""
        ticks = [int(word) for word in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        return ticks[7], sum(ticks)


def quieter(samples: list[Sample]) -> list[Sample]:
    """The half in which the least was stolen, in their order; the larger half of an odd number, and all that
    lost no more than those."""
    most = sorted(sample.stolen for sample in samples)[: (len(samples) + 1) // 2]
    return [sample for sample in samples if most and sample.stolen <= most[-1]]


def median(samples: list[Sample]) -> float:
    return statistics.median(sample.value for sample in quieter(samples))
