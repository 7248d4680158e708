"""Tables of Spark's catalog: what `CREATE TABLE ... USING odradek OPTIONS (...)` says, and the columns. Pure.

Spark asks for the columns with the options when a table is made, and reads or writes the table later without
them. It keeps the columns, with their metadata, and hands them over every time: the options are in there.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_OF_TABLE, _PROVIDER = "option.", "provider"
"""How Spark tells the options of a table that is made from its other properties, and that it is one."""
_METADATA = "odradek.options"
_CARRIER = "value"
"""The column that has the options: a record always has one."""
_CHOOSING = ("assign", "subscribe", "subscribepattern")

_SOURCE = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "long",
    "timestamp": "timestamp",
    "timestampType": "int",
}
_HEADERS = {"headers": "array<struct<key: string, value: binary>>"}
_STRINGS = {"key": "string", "value": "string"}


class Column(NamedTuple):
    """A column that is read, and whether its bytes are to be text."""

    name: str
    is_text: bool


def made_with(given: Mapping[str, str]) -> dict[str, str] | None:
    """The options of a table that is being made; None for anything else."""
    if _PROVIDER not in given:
        return None
    return {name[len(_OF_TABLE) :]: value for name, value in given.items() if name.startswith(_OF_TABLE)}


def columns_of(given: Mapping[str, str]) -> dict[str, str]:
    """Of a source with these options: names, and Spark's names of types."""
    lower = {name.lower(): value for name, value in given.items()}
    return _columns(with_headers=lower.get("includeheaders", "").lower() == "true")


def _columns(*, with_headers: bool) -> dict[str, str]:
    return {**_SOURCE, **_HEADERS} if with_headers else _SOURCE


def table_columns(given: Mapping[str, str]) -> dict[str, str]:
    """Of a table. One that can be written to has texts, so that SQL's texts can be inserted: Spark does not
    turn them into bytes by itself, and bytes into texts it does, without a change."""
    lower = {name.lower() for name in given}
    if not lower.intersection(_CHOOSING):
        sink = {
            name: kind for name, kind in _SOURCE.items() if name in ("key", "value", "topic", "partition")
        }
        return {**sink, **_STRINGS, **_HEADERS}
    return {**columns_of(given), **_STRINGS} if "topic" in lower else columns_of(given)


def table_schema(given: Mapping[str, str]) -> "StructType":
    from pyspark.sql import types as t

    headers = t.ArrayType(t.StructType().add("key", t.StringType()).add("value", t.BinaryType()))
    known = {
        "binary": t.BinaryType(),
        "string": t.StringType(),
        "int": t.IntegerType(),
        "long": t.LongType(),
        "timestamp": t.TimestampType(),
        _HEADERS["headers"]: headers,
    }
    made = t.StructType()
    for name, kind in table_columns(given).items():
        metadata = {_METADATA: json.dumps(dict(given))} if name == _CARRIER else None
        made = made.add(name, known[kind], True, metadata)
    return made


def kept_in(schema: "StructType") -> dict[str, str] | None:
    """The options of the table that the columns are of; None where it is none, or was made with columns."""
    for column in schema.fields:
        kept: Any = (column.metadata or {}).get(_METADATA)
        if kept is not None:
            return dict(json.loads(kept))
    return None


def wanted(schema: "StructType", *, with_headers: bool) -> tuple[Column, ...] | None:
    """Which columns to read, of what a source has; None where it is all of them as they are."""
    types = {name: _simple(kind) for name, kind in _columns(with_headers=with_headers).items()}
    asked = {column.name: column.dataType.simpleString() for column in schema.fields}
    if list(asked.items()) == list(types.items()):
        return None
    for name, kind in asked.items():
        allowed = {types.get(name), "string" if name in _STRINGS else None} - {None}
        if kind not in allowed:
            told = " or ".join(sorted(map(str, allowed))) or f"one of {', '.join(types)}"
            raise ValueError(f"the column {name} {kind} cannot be read: it must be {told}")
    return tuple(Column(name, kind == "string" and name in _STRINGS) for name, kind in asked.items())


def _simple(kind: str) -> str:
    return {"long": "bigint"}.get(kind, kind.replace(": ", ":").replace(", ", ","))
