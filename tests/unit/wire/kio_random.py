"""Random messages of any kio class, and their plain values as our classes hold them."""

import datetime
import random
from dataclasses import MISSING, fields
from types import NoneType, UnionType
from typing import Any, get_args, get_origin
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.serial._introspect import EntityField, EntityTupleField, classify_field
from kio.serial.readers import tz_aware_from_i64

from odradek.core.types import ZERO_UUID

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def random_message(cls: Any, rng: random.Random) -> Any:
    return cls(**{f.name: random_field(f, rng) for f in fields(cls)})


def random_field(field: Any, rng: random.Random) -> Any:
    shape = classify_field(field)
    optional = get_origin(field.type) is UnionType and NoneType in get_args(field.type)
    tagged = "tag" in field.metadata
    if optional and rng.random() < 0.2 and (not tagged or field.default is None):
        return None
    if tagged and rng.random() < 0.3 and field.default not in (None, MISSING):
        return field.default
    if isinstance(shape, EntityField):
        return random_message(shape.type_, rng)
    if isinstance(shape, EntityTupleField):
        return tuple(random_message(shape.type_, rng) for _ in range(rng.choice((0, 1, 2, 3))))
    kafka_type = field.metadata["kafka_type"]
    if shape.is_array:
        return tuple(random_value(kafka_type, rng) for _ in range(rng.choice((0, 1, 2, 150))))
    return random_value(kafka_type, rng)


def random_value(kafka_type: str, rng: random.Random) -> Any:
    match kafka_type:
        case "int8" | "int16" | "int32" | "int64":
            bits = BITS[kafka_type]
            return rng.choice((0, -1, 1, (1 << bits - 1) - 1, -(1 << bits - 1), rng.getrandbits(bits - 1)))
        case "uint16":
            return rng.getrandbits(16)
        case "float64":
            return rng.random()
        case "bool":
            return rng.random() < 0.5
        case "string":
            return rng.choice(("", "a", "topic", "käfka-✓", "x" * 300))
        case "bytes" | "records":
            return rng.randbytes(rng.choice((0, 1, 10, 200)))
        case "uuid":
            return UUID(bytes=rng.randbytes(16), version=4) if rng.random() < 0.8 else None
        case "error_code":
            return rng.choice(list(ErrorCode))
        case "timedelta_i32":
            return datetime.timedelta(milliseconds=rng.randint(-1, 1 << 30))
        case "timedelta_i64":
            return datetime.timedelta(milliseconds=rng.randint(-1, 1 << 40))
        case "datetime_i64":
            return tz_aware_from_i64(rng.randint(0, 1 << 40))
    raise AssertionError(kafka_type)


def plain(value: Any, field: Any = None) -> Any:
    """A kio value as ours: integers for times and errors, the zero uuid for None, dicts for structs."""
    if hasattr(value, "__dataclass_fields__"):
        return {f.name: plain(getattr(value, f.name), f) for f in fields(value)}
    if isinstance(value, tuple):
        return [plain(v, field) if v is not None else ZERO_UUID for v in value]
    if value is None:
        kafka_type = field.metadata.get("kafka_type")
        if classify_field(field).is_array:
            return None
        return {"uuid": ZERO_UUID, "datetime_i64": -1}.get(kafka_type)
    if isinstance(value, ErrorCode):
        return value.value
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if isinstance(value, datetime.datetime):
        epoch = datetime.datetime.fromtimestamp(0, datetime.UTC)
        return (value - epoch) // datetime.timedelta(milliseconds=1)
    return value


def matches(ours: Any, expected: Any) -> bool:
    """Our object holds the expected plain values (fields of other versions are not looked at)."""
    if isinstance(expected, dict):
        return all(matches(getattr(ours, name), value) for name, value in expected.items())
    if isinstance(expected, list):
        return len(ours) == len(expected) and all(map(matches, ours, expected))
    return type(ours) is type(expected) and bool(ours == expected)
