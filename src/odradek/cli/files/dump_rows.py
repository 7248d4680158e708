"""The contents of each kind of file of a log directory, as rows of a table. Pure: bytes in, rows out."""

from collections.abc import Callable, Iterable, Iterator
from datetime import tzinfo
from struct import Struct
from typing import Any, NamedTuple

from odradek.cli.files.dump_decode import Decode
from odradek.cli.records.record_format import readable
from odradek.cli.terminal.output import Column, columns
from odradek.cli.terminal.times import format_time
from odradek.core.configs import parse_properties
from odradek.core.errors import KafkaError
from odradek.log import checkpoints, names
from odradek.log.producers.snapshot import parse_snapshot
from odradek.records.batch import BatchMeta, iter_records
from odradek.records.control import parse_control_key
from odradek.records.header import crc_matches

Row = list[Any]
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

BATCH_COLUMNS = columns(
    "BASE-OFFSET# LAST-OFFSET# COUNT# POSITION# SIZE# TIMESTAMP CODEC FLAGS LEADER-EPOCH# "
    "PRODUCER-ID# PRODUCER-EPOCH# BASE-SEQUENCE# MAGIC#+ CRC#+ VALID"
)
RECORD_COLUMNS = columns("OFFSET# TIMESTAMP CONTROL KEY VALUE HEADERS")

# relative offset uint32, position uint32
_OFFSET_ENTRY = Struct(">II")
# timestamp int64, relative offset uint32
_TIME_ENTRY = Struct(">qI")
# version int16, producer id int64, first offset int64, last offset int64, last stable offset int64
_TXN_ENTRY = Struct(">hqqqq")


def batch_row(data: memoryview, batch: BatchMeta, file_position: int, zone: tzinfo | None) -> Row:
    """One batch; `file_position` is where the data begins in its file."""
    flags = [
        name
        for name, is_set in (
            ("transactional", batch.is_transactional),
            ("control", batch.is_control),
            ("log-append-time", batch.timestamp_type == 1),
            ("delete-horizon", batch.has_delete_horizon),
        )
        if is_set
    ]
    base_offset, count = _extent(data, batch) if batch.is_wrapper else (batch.base_offset, batch.record_count)
    return [
        base_offset,
        batch.last_offset,
        count,
        file_position + batch.position,
        batch.size,
        format_time(batch.max_timestamp, zone),
        _CODECS[batch.compression] if batch.compression < len(_CODECS) else str(batch.compression),
        flags,
        _known(batch.partition_leader_epoch),
        _known(batch.producer_id),
        _known(batch.producer_epoch),
        _known(batch.base_sequence),
        batch.magic,
        batch.crc,
        crc_matches(data, batch),
    ]


def _extent(data: memoryview, batch: BatchMeta) -> tuple[int | None, int | None]:
    """First offset and count of a compressed entry of magic 0 or 1, which only its records tell."""
    try:
        offsets = [record.offset for record in iter_records(data, batch)]
    except KafkaError:
        return None, None
    return offsets[0], len(offsets)


def record_rows(data: memoryview, batch: BatchMeta, decode: Decode, zone: tzinfo | None) -> Iterator[Row]:
    """The records of one batch; control records by the name of what they control."""
    for record in iter_records(data, batch):
        control = parse_control_key(record.key) if batch.is_control else None
        key, value = (None, None) if control is not None else decode(record.key, record.value)
        yield [
            record.offset,
            format_time(record.timestamp, zone),
            None if control is None else control.name.lower().replace("_", "-"),
            key,
            value,
            [[name, readable(value)] for name, value in record.headers],
        ]


class Kind(NamedTuple):
    """A kind of small file: its columns and how its bytes become rows."""

    columns: tuple[Column, ...]
    rows: Callable[[bytes, int, tzinfo | None], Iterable[Row]]


def kind_of(name: str) -> Kind | None:
    """How to read a file other than a segment, by its name; None for a file that holds nothing to show."""
    for suffix, kind in _BY_SUFFIX.items():
        if name.endswith(suffix) and names.offset_of(name) is not None:
            return kind
    return _BY_NAME.get(name)


def is_segment(name: str) -> bool:
    """A file of record batches: a segment, or a snapshot of the metadata log."""
    return name.endswith((names.LOG_SUFFIX, ".checkpoint"))


def _offset_index(data: bytes, base_offset: int, _zone: tzinfo | None) -> Iterator[Row]:
    last = -1
    for relative, position in _entries(_OFFSET_ENTRY, data):
        if relative <= last:
            return  # the pre-allocated rest of an active segment's index
        last = relative
        yield [base_offset + relative, position]


def _time_index(data: bytes, base_offset: int, zone: tzinfo | None) -> Iterator[Row]:
    last = (-1, -1)
    for timestamp, relative in _entries(_TIME_ENTRY, data):
        if (timestamp, relative) <= last or (last != (-1, -1) and timestamp == 0):
            return
        last = (timestamp, relative)
        yield [timestamp, format_time(timestamp, zone), base_offset + relative]


def _txn_index(data: bytes, _base: int, _zone: tzinfo | None) -> Iterator[Row]:
    for _version, *fields in _entries(_TXN_ENTRY, data):
        yield fields


def _producer_snapshot(data: bytes, _base: int, zone: tzinfo | None) -> Iterator[Row]:
    for entry in parse_snapshot(data):
        yield [
            entry.producer_id,
            entry.producer_epoch,
            _known(entry.last_sequence),
            _known(entry.last_offset),
            format_time(entry.last_timestamp, zone),
            _known(entry.coordinator_epoch),
            _known(entry.current_txn_first_offset),
        ]


def _epochs(data: bytes, _base: int, _zone: tzinfo | None) -> Iterable[Row]:
    return ([epoch, start] for epoch, start in checkpoints.parse_epochs(data))


def _offset_checkpoint(data: bytes, _base: int, _zone: tzinfo | None) -> Iterable[Row]:
    return ([tp.topic, tp.partition, offset] for tp, offset in checkpoints.parse_offsets(data).items())


def _pairs(data: bytes, _base: int, _zone: tzinfo | None) -> Iterable[Row]:
    return ([key, value] for key, value in parse_properties(data.decode("latin-1")).items())


def _json(data: bytes, _base: int, _zone: tzinfo | None) -> Iterable[Row]:
    import json

    return ([key, value] for key, value in json.loads(data).items())


def _entries(layout: Struct, data: bytes) -> Iterator[tuple[int, ...]]:
    whole = len(data) - len(data) % layout.size
    return layout.iter_unpack(data[:whole])


def _known(value: int) -> int | None:
    return None if value < 0 else value


_BY_SUFFIX = {
    names.TIME_INDEX_SUFFIX: Kind(columns("TIMESTAMP-MS# TIMESTAMP OFFSET#"), _time_index),
    names.TXN_INDEX_SUFFIX: Kind(
        columns("PRODUCER-ID# FIRST-OFFSET# LAST-OFFSET# LAST-STABLE-OFFSET#"), _txn_index
    ),
    names.INDEX_SUFFIX: Kind(columns("OFFSET# POSITION#"), _offset_index),
    names.SNAPSHOT_SUFFIX: Kind(
        columns(
            "PRODUCER-ID# PRODUCER-EPOCH# LAST-SEQUENCE# LAST-OFFSET# LAST-TIMESTAMP "
            "COORDINATOR-EPOCH# TXN-FIRST-OFFSET#"
        ),
        _producer_snapshot,
    ),
}
_OFFSETS = Kind(columns("TOPIC PARTITION# OFFSET#"), _offset_checkpoint)
_PAIRS = Kind(columns("KEY VALUE"), _pairs)
_JSON = Kind(columns("KEY VALUE"), _json)
_BY_NAME = {
    names.LEADER_EPOCH_CHECKPOINT: Kind(columns("EPOCH# START-OFFSET#"), _epochs),
    names.RECOVERY_POINT_CHECKPOINT: _OFFSETS,
    names.LOG_START_CHECKPOINT: _OFFSETS,
    names.HIGH_WATERMARK_CHECKPOINT: _OFFSETS,
    "cleaner-offset-checkpoint": _OFFSETS,
    names.PARTITION_METADATA: _PAIRS,
    names.META_PROPERTIES: _PAIRS,
    names.CLEAN_SHUTDOWN: _JSON,
    "quorum-state": _JSON,
}
