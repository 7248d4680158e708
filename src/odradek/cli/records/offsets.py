"""The offset syntax of `-o`: `start end N +N -N a:b @time @t1:t2`. Pure: no requests."""

from collections.abc import Callable
from datetime import UTC, tzinfo
from enum import Enum
from typing import NamedTuple

from odradek.cli.terminal.times import parse_time_ms


class At(Enum):
    """What an offset is counted from."""

    START = "start"
    END = "end"
    OFFSET = "offset"
    TIME = "time"


class Bound(NamedTuple):
    """One end of a range: a number of records after the start or before the end, an offset, or a time."""

    at: At
    value: int = 0

    def resolve(self, start: int, end: int, offset_for_time: Callable[[int], int | None]) -> int:
        """The offset in a log of [start, end). A time after the last record is the end."""
        if self.at is At.START:
            return min(start + self.value, end)
        if self.at is At.END:
            return max(end + self.value, start)
        if self.at is At.TIME:
            found = offset_for_time(self.value)
            return end if found is None else found
        return self.value


class RequestedRange(NamedTuple):
    """From `first` up to but without `stop`; without a stop there is no end to it."""

    first: Bound
    stop: Bound | None = None

    @property
    def is_single(self) -> bool:
        return self.stop is None


_FORMS = "start, end, N, +N, -N, A:B, @TIME, @TIME:TIME"


def parse_offsets(text: str, now_ms: int, zone: tzinfo | None = UTC) -> RequestedRange:
    """A range of offsets; raises ValueError that names the forms there are."""
    found = _parse_times(text[1:], now_ms, zone) if text.startswith("@") else _parse_range(text)
    first, stop = found
    if stop is not None and stop.at is first.at and stop.value < first.value:
        raise ValueError(f"{text!r} ends before it begins")
    return found


def _parse_range(text: str) -> RequestedRange:
    first, colon, stop = text.partition(":")
    if not colon:
        return RequestedRange(_parse_bound(text, text))
    return RequestedRange(
        _parse_bound(first, text) if first else Bound(At.START),
        _parse_bound(stop, text) if stop else None,
    )


def _parse_bound(text: str, whole: str) -> Bound:
    if text == "start":
        return Bound(At.START)
    if text == "end":
        return Bound(At.END)
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"not an offset: {whole!r} (one of {_FORMS})")
    if text[0] == "+":
        return Bound(At.START, int(digits))
    if text[0] == "-":
        return Bound(At.END, -int(digits))
    return Bound(At.OFFSET, int(digits))


def _parse_times(text: str, now_ms: int, zone: tzinfo | None) -> RequestedRange:
    """Times hold colons themselves, so the range is cut at the first colon that leaves two times."""
    try:
        return RequestedRange(Bound(At.TIME, parse_time_ms(text, now_ms, zone)))
    except ValueError as error:
        cuts = [i for i, c in enumerate(text) if c == ":"]
        for cut in cuts:
            first, stop = text[:cut], text[cut + 1 :]
            try:
                return RequestedRange(
                    Bound(At.TIME, parse_time_ms(first, now_ms, zone)) if first else Bound(At.START),
                    Bound(At.TIME, parse_time_ms(stop, now_ms, zone)) if stop else None,
                )
            except ValueError:
                continue
        raise ValueError(str(error)) from None


def parse_partitions(text: str | None) -> list[int] | None:
    """`0,2,5-7` as partition numbers; None for all."""
    if text is None:
        return None
    partitions: list[int] = []
    for item in text.split(","):
        low, dash, high = item.strip().partition("-")
        if not low.isdigit() or (dash and not high.isdigit()):
            raise ValueError(f"not a list of partitions: {text!r} (for example 0,2,5-7)")
        partitions.extend(range(int(low), int(high or low) + 1))
    return sorted(set(partitions))
