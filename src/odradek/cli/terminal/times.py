"""Times as people write and read them: `-1h`, `2026-11-15`, epoch seconds or milliseconds, ISO-8601. Pure."""

import re
from datetime import UTC, datetime, timedelta, tzinfo

_UNITS_MS = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
_DURATION = r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h|d|w))+"
_PART = r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d|w)"
# Fewer digits than this are seconds since 1970, as many or more are milliseconds (from the year 1973 on).
_MILLISECOND_DIGITS = 12


def parse_duration_ms(text: str) -> int:
    """`90s`, `1h30m`, `2d` in milliseconds."""
    if not re.fullmatch(_DURATION, text):
        raise ValueError(f"not a duration: {text!r} (for example 90s, 1h30m, 2d)")
    return int(sum(float(number) * _UNITS_MS[unit] for number, unit in re.findall(_PART, text)))


def parse_time_ms(text: str, now_ms: int, zone: tzinfo | None = UTC) -> int:
    """A point in time as milliseconds since 1970. Dates without an offset are in `zone`, None: local."""
    text = text.strip()
    if text == "now":
        return now_ms
    if text.startswith("-") and re.fullmatch(_DURATION, text[1:]):
        return now_ms - parse_duration_ms(text[1:])
    if text.isascii() and text.isdigit():
        return int(text) if len(text) >= _MILLISECOND_DIGITS else int(text) * 1000
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"not a time: {text!r} (for example -1h, 2026-11-15, 2026-11-15T20:42:48Z, 1794775368, now)"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone) if zone else moment.astimezone()
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def format_time(time_ms: int | None, zone: tzinfo | None = UTC) -> str | None:
    """ISO-8601 with milliseconds; None for no time, as Kafka's -1 means."""
    if time_ms is None or time_ms < 0:
        return None
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)
        text = moment.astimezone(zone).isoformat(timespec="milliseconds")
    except OverflowError:
        return str(time_ms)
    return text.replace("+00:00", "Z")


class Seconds(float):
    """A duration: a number for machines, `4m05s` for people."""

    __slots__ = ()

    def __str__(self) -> str:
        return format_duration(float(self) * 1000)


def seconds(duration_ms: float | None) -> Seconds | None:
    """None, unknown, stays None; clocks that differ make no duration negative."""
    return None if duration_ms is None else Seconds(max(0.0, round(duration_ms / 1000, 3)))


def format_duration(duration_ms: float) -> str:
    """`850 ms`, `3.2 s`, `4m05s`, `2h10m`: two figures that a person reads at a glance."""
    if duration_ms < 1000:
        return f"{duration_ms:.0f} ms"
    seconds = duration_ms / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02d}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m"
