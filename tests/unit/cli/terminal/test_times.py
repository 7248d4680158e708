"""Times in and out."""

from datetime import UTC, timedelta, timezone

import pytest

from odradek.cli.terminal.times import format_duration, format_time, parse_duration_ms, parse_time_ms

NOW_MS = 1_794_775_368_123


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", NOW_MS),
        ("-1h", NOW_MS - 3_600_000),
        ("-1h30m", NOW_MS - 5_400_000),
        ("-500ms", NOW_MS - 500),
        ("-2d", NOW_MS - 172_800_000),
        ("1794775368", 1_794_775_368_000),
        ("1794775368123", NOW_MS),
        ("0", 0),
        ("1970-01-02", 86_400_000),
        ("1970-01-01T01:00", 3_600_000),
        ("1970-01-01T00:00:01.250Z", 1_250),
        ("1970-01-01T02:00:00+02:00", 0),
    ],
)
def test_every_way_to_write_a_time_is_read(text: str, expected: int) -> None:
    assert parse_time_ms(text, NOW_MS) == expected


def test_dates_without_an_offset_are_in_the_given_zone() -> None:
    assert parse_time_ms("1970-01-01T02:00", NOW_MS, timezone(timedelta(hours=2))) == 0


@pytest.mark.parametrize("text", ["", "yesterday", "1h", "-1y", "2026-13-01", "-"])
def test_what_is_no_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a time: .*for example -1h"):
        parse_time_ms(text, NOW_MS)


def test_times_are_written_in_iso_8601() -> None:
    assert format_time(1_794_775_368_123) == "2026-11-15T20:42:48.123Z"
    assert format_time(0, timezone(timedelta(hours=2))) == "1970-01-01T02:00:00.000+02:00"
    assert format_time(-1) is None
    assert format_time(None) is None
    assert format_time((1 << 63) - 1) == "9223372036854775807"
    assert parse_time_ms(format_time(NOW_MS, UTC) or "", 0) == NOW_MS


def test_durations() -> None:
    assert parse_duration_ms("1h30m") == 5_400_000
    assert parse_duration_ms("1.5s") == 1_500
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration_ms("5")
    shown = [format_duration(ms) for ms in (12, 3_210, 245_000, 7_800_000)]
    assert shown == ["12 ms", "3.2 s", "4m05s", "2h10m"]
