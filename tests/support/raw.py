"""A Kafka connection with nothing between the test and the bytes: one socket, kio's schemas, no retries.

Requests are given as plain nested dicts in a superset of all versions' fields; `build` takes what the asked
version knows. Nothing of the package under test is used here.
"""

import dataclasses
import datetime
import functools
import io
import socket
import struct
import types
import typing
import uuid
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.schema.describe_transactions.v0.response import TransactionState
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i64

ZERO_UUID = uuid.UUID(int=0)
EPOCH = datetime.datetime.fromtimestamp(0, datetime.UTC)


def entity_of(annotation: Any) -> type | None:
    """The nested dataclass inside `X`, `X | None`, `tuple[X, ...]` or `tuple[X, ...] | None`."""
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        return annotation
    for arg in typing.get_args(annotation):
        found = entity_of(arg)
        if found is not None:
            return found
    return None


def _is_array(annotation: Any) -> bool:
    if typing.get_origin(annotation) is tuple:
        return True
    return isinstance(annotation, types.UnionType) and any(map(_is_array, typing.get_args(annotation)))


_ZERO: dict[str, Any] = {
    "string": "",
    "bytes": b"",
    "bool": False,
    "uuid": ZERO_UUID,
    "records": None,
    "float64": 0.0,
}


def _plain(kafka_type: str, value: Any) -> Any:
    """From the test's plain value to the one that kio writes."""
    if value is None:
        return None
    if kafka_type.startswith("timedelta"):
        return datetime.timedelta(milliseconds=value)
    if kafka_type.startswith("datetime"):
        return EPOCH + datetime.timedelta(milliseconds=value)
    return value


def _take_as_number(cls: Any, name: str) -> None:
    """kio refuses the -1 that stands for a time that is not."""
    field = cls.__dataclass_fields__[name]
    field.metadata = types.MappingProxyType({**field.metadata, "kafka_type": "int64"})
    cls.__annotations__[name] = i64


def _take_missing_times() -> None:
    """Of a transaction that is not open, and of a delegation token that is not given."""
    _take_as_number(TransactionState, "transaction_start_time")
    for version in (1, 2, 3):
        for name in ("issue_timestamp", "expiry_timestamp", "max_timestamp"):
            _take_as_number(load_response_schema(38, version), name)
    for api_key in (39, 40):
        for version in (1, 2):
            _take_as_number(load_response_schema(api_key, version), "expiry_timestamp")


_take_missing_times()


@functools.cache
def fields_of(cls: type) -> list[tuple[dataclasses.Field[Any], Any]]:
    hints = typing.get_type_hints(cls)
    return [(f, hints[f.name]) for f in dataclasses.fields(cls)]


def build(cls: type, values: dict[str, Any]) -> Any:
    """An entity of one version from a dict that may hold more fields than this version has."""
    out: dict[str, Any] = {}
    for field, annotation in fields_of(cls):
        nested, array = entity_of(annotation), _is_array(annotation)
        kafka_type = field.metadata.get("kafka_type", "")
        if field.name in values:
            value = values[field.name]
            if value is not None and nested and array:
                value = tuple(build(nested, item) for item in value)
            elif value is not None and nested:
                value = build(nested, value)
            elif value is not None and array:
                value = tuple(_plain(kafka_type, item) for item in value)
            else:
                value = _plain(kafka_type, value)
        elif field.default is not dataclasses.MISSING:
            value = field.default
        elif array:
            value = ()
        elif nested:
            value = build(nested, {})
        else:
            value = _plain(kafka_type, _ZERO.get(kafka_type, 0))
        out[field.name] = value
    return cls(**out)


def request_bytes(
    api_key: int, version: int, values: dict[str, Any], *, correlation_id: int = 1, client_id: str = "raw"
) -> bytes:
    """A whole frame, with its length."""
    cls = load_request_schema(api_key, version)
    header = build(
        cls.__header_schema__,
        {
            "request_api_key": api_key,
            "request_api_version": version,
            "correlation_id": correlation_id,
            "client_id": client_id,
        },
    )
    out = io.BytesIO()
    entity_writer(type(header))(out, header)
    entity_writer(cls)(out, build(cls, values))
    return struct.pack(">i", out.tell()) + out.getvalue()


def decode_response(api_key: int, version: int, frame: bytes) -> tuple[int, Any]:
    """(correlation id, entity) of a reply; every byte must belong to it."""
    cls = load_response_schema(api_key, version)
    header, header_size = entity_reader(cls.__header_schema__)(frame, 0)
    body, size = entity_reader(cls)(frame, header_size)
    assert header_size + size == len(frame), f"{len(frame) - header_size - size} bytes left over"
    return header.correlation_id, body


class Connection:
    """A blocking socket to a broker. `call` checks the correlation id and decodes the whole answer."""

    def __init__(self, bootstrap: str, timeout_s: float = 30) -> None:
        host, port = bootstrap.split(",")[0].rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def send(self, api_key: int, version: int, values: dict[str, Any], **header: Any) -> int:
        self._correlation_id += 1
        self.socket.sendall(
            request_bytes(api_key, version, values, correlation_id=self._correlation_id, **header)
        )
        return self._correlation_id

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def receive(self, api_key: int, version: int) -> Any:
        correlation_id, body = decode_response(api_key, version, self.receive_frame())
        self.received_correlation_id = correlation_id
        return body

    def call(self, api_key: int, version: int, values: dict[str, Any], **header: Any) -> Any:
        sent = self.send(api_key, version, values, **header)
        body = self.receive(api_key, version)
        assert self.received_correlation_id == sent
        return body

    def closed_by_peer(self, timeout_s: float = 10) -> bool:
        """Whether the broker hangs up without a word within the time."""
        self.socket.settimeout(timeout_s)
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            piece = self.socket.recv(min(count - len(data), 1 << 20))
            if not piece:
                raise ConnectionError(f"closed after {len(data)} of {count} bytes")
            data += piece
        return bytes(data)
