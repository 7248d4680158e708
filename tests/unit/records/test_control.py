"""Control records carry what Kafka's schemas say."""

import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.records.control import (
    ControlType,
    EndTransactionMarker,
    control_key,
    marker_record,
    parse_control_key,
    parse_marker,
)


@pytest.mark.parametrize("committed", [True, False])
def test_markers_read_as_written(committed: bool) -> None:
    key, value = marker_record(EndTransactionMarker(committed, 12))
    assert key == (b"\x00\x00\x00\x01" if committed else b"\x00\x00\x00\x00")
    assert value == b"\x00\x00\x00\x00\x00\x0c"
    assert parse_marker(key, value) == EndTransactionMarker(committed, 12)


def test_keys_name_their_type_and_newer_ones_are_unknown() -> None:
    for kind in ControlType:
        if kind is not ControlType.UNKNOWN:
            assert parse_control_key(control_key(kind)) is kind
    assert parse_control_key(b"\x00\x00\x00\x63") is ControlType.UNKNOWN
    assert parse_control_key(b"\x00\x01\x00\x01more") is ControlType.COMMIT


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00", b"\xff\xff\x00\x01"])
def test_a_key_that_is_none_is_refused(key: bytes | None) -> None:
    with pytest.raises(KafkaError) as caught:
        parse_control_key(key)
    assert caught.value.code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (control_key(ControlType.LEADER_CHANGE), bytes(6)),
        (control_key(ControlType.COMMIT), b"\x00"),
        (b"\x00" * 4, None),
    ],
)
def test_what_is_no_marker_is_refused(key: bytes, value: bytes | None) -> None:
    with pytest.raises(KafkaError):
        parse_marker(key, value)
