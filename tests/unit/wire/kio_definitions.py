"""Derives the layouts of all messages from kio, in the notation of odradek.wire.schema.

Run as a program it rewrites src/odradek/wire/definitions; the tests hold the package to what it says.
"""

import datetime
import sys
import textwrap
from dataclasses import MISSING, Field, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from kio.index import load_entity_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.serial._implicit_defaults import get_tagged_field_default
from kio.serial._introspect import EntityField, EntityTupleField, classify_field, get_field_tag
from kio.static.constants import EntityType

PLAIN_TYPES = {
    "error_code": "int16",
    "timedelta_i32": "int32",
    "timedelta_i64": "int64",
    "datetime_i64": "int64",
}
ZERO = {"string": "", "bytes": b"", "records": b"", "bool": False, "float64": 0.0, "uuid": None}


class FieldLine:
    def __init__(self) -> None:
        self.text_type = ""
        self.struct: str | None = None
        self.versions: list[int] = []
        self.null_versions: list[int] = []
        self.tag: int | None = None
        self.default = ""


def plain(value: Any) -> Any:
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return value


def default_text(field: "Field[Any]", kafka_type: str | None, array: bool) -> str:
    default = field.default
    if default is MISSING:
        return ""
    if kafka_type == "datetime_i64":
        return "-1" if default is None else str(default)
    if array:
        return "null" if default is None else ""
    if kafka_type is None:
        if default is None:
            return "null"
        assert default == type(default)(**{f.name: get_tagged_field_default(f) for f in fields(default)})
        return ""
    value = plain(getattr(default, "value", default))
    if value == ZERO.get(kafka_type, 0) and type(value) is type(ZERO.get(kafka_type, 0)):
        return ""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def ranges(versions: list[int], newest: int) -> str:
    assert versions == list(range(versions[0], versions[-1] + 1))
    return f"{versions[0]}+" if versions[-1] == newest else f"{versions[0]}-{versions[-1]}"


class Message:
    """The union over all versions of one request or response."""

    def __init__(self, name: str, kind: EntityType) -> None:
        self.versions = sorted(v for v, kinds in schema_name_map[name].items() if kind in kinds)
        self.flexible: list[int] = []
        self.structs: dict[str, dict[str, FieldLine]] = {}
        self.root = ""
        orders: dict[str, list[list[str]]] = {}
        for version in self.versions:
            root: Any = load_entity_schema(name, version, kind)
            self.root = root.__name__
            if root.__flexible__:
                self.flexible.append(version)
            pending, seen = [root], set()
            while pending:
                cls = pending.pop()
                if cls in seen:
                    continue
                seen.add(cls)
                orders.setdefault(cls.__name__, []).append([f.name for f in fields(cls)])
                pending.extend(self.add_fields(cls, version))
        for struct, known in self.structs.items():
            order = merge(orders[struct])
            self.structs[struct] = {n: known[n] for n in order}

    def add_fields(self, cls: Any, version: int) -> list[Any]:
        nested = []
        lines = self.structs.setdefault(cls.__name__, {})
        for field in fields(cls):
            line = lines.setdefault(field.name, FieldLine())
            shape = classify_field(field)
            if isinstance(shape, EntityField | EntityTupleField):
                nested.append(shape.type_)
                kafka_type = None
                line.struct = shape.type_.__name__
                line.text_type = line.struct
            else:
                kafka_type = field.metadata["kafka_type"]
                line.text_type = PLAIN_TYPES.get(kafka_type, kafka_type)
            if shape.is_array:
                line.text_type = "[]" + line.text_type
            line.versions.append(version)
            optional = get_origin(field.type) is UnionType and NoneType in get_args(field.type)
            if optional and (shape.is_array or kafka_type not in ("uuid", "datetime_i64")):
                line.null_versions.append(version)
            line.tag = get_field_tag(field)
            line.default = default_text(field, kafka_type, shape.is_array)
        return nested

    def text(self) -> str:
        newest = self.versions[-1]
        head = f"{self.root} {self.versions[0]}-{newest}"
        if self.flexible:
            head += f" flexible {self.flexible[0]}+"
        return "\n".join([head, *self.body(self.root, set(), self.versions)])

    def body(self, struct: str, written: set[str], outer: list[int]) -> list[str]:
        newest = self.versions[-1]
        out = []
        for name, line in self.structs[struct].items():
            words = [f"{name}: {line.text_type}"]
            if line.versions != outer:
                words.append(ranges(line.versions, newest))
            if line.null_versions:
                same = line.null_versions == line.versions
                words.append("null" if same else f"null {ranges(line.null_versions, newest)}")
            if line.tag is not None:
                words.append(f"tag {line.tag}")
            if line.default:
                words.append(f"= {line.default}")
            out.append("  " + " ".join(words))
            if line.struct and line.struct not in written:
                written.add(line.struct)
                out.extend("  " + row for row in self.body(line.struct, written, line.versions))
        return out


def merge(orders: list[list[str]]) -> list[str]:
    """One order of all names that agrees with the order in every version."""
    merged: list[str] = []
    remaining = [list(order) for order in orders]
    while any(remaining):
        name = next(
            order[0] for order in remaining if order and not any(order[0] in o[1:] for o in remaining if o)
        )
        merged.append(name)
        remaining = [order[1:] if order and order[0] == name else order for order in remaining]
    return merged


def definition(api_key: int) -> str:
    """The text of one file of odradek.wire.definitions."""
    name = api_key_map[api_key]
    request = Message(name, EntityType.request).text()
    response = Message(name, EntityType.response).text()
    doc = f'"""Layout of {name} by version, in the notation of wire/schema.py."""'
    return f'{doc}\n\nREQUEST = """\n{request}\n"""\n\nRESPONSE = """\n{response}\n"""\n'


def main() -> None:
    target = Path(sys.argv[1])
    for api_key, name in api_key_map.items():
        (target / f"{name}.py").write_text(textwrap.dedent(definition(api_key)))


if __name__ == "__main__":
    main()
