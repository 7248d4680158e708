"""The records of the cluster's own topics, as objects that can be shown. Pure: bytes in, dictionaries out."""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from odradek.cli.records.record_format import readable
from odradek.core.errors import ProtocolError
from odradek.core.types import (
    GROUP_METADATA_TOPIC,
    METADATA_TOPIC,
    TRANSACTION_STATE_TOPIC,
    uuid_to_text,
)
from odradek.log.names import parse_partition_dir
from odradek.wire.layout import Layout

Decode = Callable[[bytes | None, bytes | None], tuple[Any, Any]]


def decoder_for(directory: str) -> Decode:
    """How key and value of the records in a partition directory are shown, by the topic's name."""
    found = parse_partition_dir(directory)
    topic = found[0].topic if found else ""
    if topic == METADATA_TOPIC:
        return _metadata
    if topic == GROUP_METADATA_TOPIC:
        return _group
    if topic == TRANSACTION_STATE_TOPIC:
        return _transaction
    return _plain


def _plain(key: bytes | None, value: bytes | None) -> tuple[Any, Any]:
    return readable(key), readable(value)


def _metadata(key: bytes | None, value: bytes | None) -> tuple[Any, Any]:
    from odradek.metadata.records import OpaqueRecord, decode_record

    if value is None:
        return _plain(key, value)
    try:
        record = decode_record(value)
    except ProtocolError:
        return _plain(key, value)
    return _plain(key, value) if isinstance(record, OpaqueRecord) else (readable(key), _object(record))


def _group(key: bytes | None, value: bytes | None) -> tuple[Any, Any]:
    from odradek.coordinators.records import decode_group_record

    return _coordinator(decode_group_record, key, value)


def _transaction(key: bytes | None, value: bytes | None) -> tuple[Any, Any]:
    from odradek.coordinators.records import decode_transaction_record

    return _coordinator(decode_transaction_record, key, value)


def _coordinator(decode: Callable[..., Any], key: bytes | None, value: bytes | None) -> tuple[Any, Any]:
    try:
        found = None if key is None else decode(key, value)
    except ProtocolError:
        found = None
    if found is None:
        return _plain(key, value)
    return _object(found[0]), None if found[1] is None else _object(found[1])


def _object(record: Layout) -> dict[str, Any]:
    shown: dict[str, Any] = {"type": type(record).__name__}
    for field in record.codec.schema.fields:
        shown[field.name] = _shown(getattr(record, field.name))
    return shown


def _shown(value: Any) -> Any:
    if isinstance(value, Layout):
        return {name: item for name, item in _object(value).items() if name != "type"}
    if isinstance(value, UUID):
        return uuid_to_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return readable(bytes(value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_shown(item) for item in value]
    return value
