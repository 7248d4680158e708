"""The keys of control records, and the values of transaction markers.

Control batches are built and read like any other batch. The values of KRaft's control records are in
metadata/records.py.
"""

from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import Buffer

# key: version int16, type int16
_KEY = Struct(">hh")
_KEY_VERSION = 0

# value of a commit or abort marker: version int16, coordinator_epoch int32
_MARKER = Struct(">hi")
_MARKER_VERSION = 0


class ControlType(IntEnum):
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6
    UNKNOWN = -1


class EndTransactionMarker(NamedTuple):
    committed: bool
    coordinator_epoch: int


def control_key(control_type: ControlType) -> bytes:
    return _KEY.pack(_KEY_VERSION, control_type)


def parse_control_key(key: Buffer | None) -> ControlType:
    """The type of a control record, from its key. A type of a newer Kafka is UNKNOWN, not an error."""
    if key is None or len(key) < _KEY.size:
        raise KafkaError(ErrorCode.INVALID_RECORD, "A control record's key must have at least 4 bytes.")
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"Invalid version {version} of a control record's key.")
    try:
        return ControlType(number)
    except ValueError:
        return ControlType.UNKNOWN


def marker_record(marker: EndTransactionMarker) -> tuple[bytes, bytes]:
    """Key and value of the record that ends a transaction in a partition."""
    key = control_key(ControlType.COMMIT if marker.committed else ControlType.ABORT)
    return key, _MARKER.pack(_MARKER_VERSION, marker.coordinator_epoch)


def parse_marker(key: Buffer | None, value: Buffer | None) -> EndTransactionMarker:
    control_type = parse_control_key(key)
    if control_type not in (ControlType.ABORT, ControlType.COMMIT):
        raise KafkaError(ErrorCode.INVALID_RECORD, f"{control_type.name} does not end a transaction.")
    if value is None or len(value) < _MARKER.size:
        raise KafkaError(ErrorCode.INVALID_RECORD, "A transaction marker's value must have at least 6 bytes.")
    version, coordinator_epoch = _MARKER.unpack_from(value)
    if version < 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"Invalid version {version} of a transaction marker.")
    return EndTransactionMarker(control_type is ControlType.COMMIT, coordinator_epoch)
