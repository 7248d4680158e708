"""The schema of a message: its fields, their types and versions. Parses the notation of `wire/definitions`.

decoding.py and encoding.py turn a schema into code.

    MetadataRequest 0-13 flexible 9+              message, its versions, the first flexible one
      topics: []MetadataRequestTopic null 1+      an array of structs, nullable since version 1
        topic_id: uuid 10+                        its fields, indented; absent before version 10
        name: string null 10+
      allow_auto_topic_creation: bool 4+ = true   a default; without one it is the type's zero value

`tag N` marks a tagged field. A struct that is named again has no fields beneath it. A field without versions
has the versions of the field above it. Durations and timestamps are integers in milliseconds.
"""

from typing import Any

from odradek.core.types import ZERO_UUID

NEVER = 1 << 15
"""A version that no message has."""

Versions = tuple[int, int]

ZERO_VALUES: dict[str, Any] = {
    "bool": False,
    "int8": 0,
    "int16": 0,
    "uint16": 0,
    "int32": 0,
    "uint32": 0,
    "int64": 0,
    "float64": 0.0,
    "string": "",
    "bytes": b"",
    "records": b"",
    "uuid": ZERO_UUID,
}


class Field:
    """One field. `default` is its value when absent; for a struct, None or `...` (a struct of defaults)."""

    __slots__ = ("default", "is_array", "name", "null_versions", "struct", "tag", "type", "versions")

    def __init__(
        self,
        name: str,
        type_: str,
        *,
        versions: Versions,
        is_array: bool = False,
        struct: "Struct | None" = None,
        null_versions: Versions = (NEVER, NEVER),
        tag: int | None = None,
        default: Any = ...,
    ) -> None:
        self.name = name
        self.type = type_
        self.versions = versions
        self.is_array = is_array
        self.struct = struct
        self.null_versions = null_versions
        self.tag = tag
        if default is ... and (is_array or struct is None):
            default = () if is_array else ZERO_VALUES[type_]
        self.default = default

    def in_version(self, version: int) -> bool:
        return self.versions[0] <= version <= self.versions[1]

    def nullable(self, version: int) -> bool:
        return self.null_versions[0] <= version <= self.null_versions[1]


class Struct:
    """A message or a part of one: the union of the fields of all its versions."""

    __slots__ = ("fields", "flexible_from", "name", "versions")

    def __init__(self, name: str, versions: Versions, flexible_from: int, fields: list[Field]) -> None:
        self.name = name
        self.versions = versions
        self.flexible_from = flexible_from
        self.fields = fields

    def fields_of(self, version: int) -> list[Field]:
        return [f for f in self.fields if f.in_version(version)]

    def nested(self) -> "list[Struct]":
        """Every struct inside, each once, in the order of the definition."""
        found: list[Struct] = []
        for field in self.fields:
            if field.struct is not None:
                for struct in (field.struct, *field.struct.nested()):
                    if struct not in found:
                        found.append(struct)
        return found


def parse(text: str) -> Struct:
    lines = [line for line in text.splitlines() if line.strip()]
    words = lines[0].split()
    versions = parse_versions(words[1], NEVER)
    flexible_from = parse_versions(words[3], versions[1])[0] if len(words) > 2 else NEVER
    known: dict[str, Struct] = {}
    root = Struct(words[0], versions, flexible_from, [])
    _parse_fields(lines, 1, 2, root, versions, known)
    return root


def parse_versions(text: str, newest: int) -> Versions:
    if text.endswith("+"):
        return int(text[:-1]), newest
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def _parse_fields(
    lines: list[str], row: int, indent: int, into: Struct, outer: Versions, known: dict[str, Struct]
) -> int:
    while row < len(lines):
        line = lines[row]
        if len(line) - len(line.lstrip()) < indent:
            break
        field = _parse_field(line.split(), into, outer, known)
        into.fields.append(field)
        row += 1
        if field.struct is not None:
            row = _parse_fields(lines, row, indent + 2, field.struct, field.versions, known)
    return row


def _parse_field(words: list[str], owner: Struct, outer: Versions, known: dict[str, Struct]) -> Field:
    newest = owner.versions[1]
    name, type_ = words[0].rstrip(":"), words[1]
    is_array = type_.startswith("[]")
    type_ = type_.removeprefix("[]")
    versions, null_versions, tag, default = outer, (NEVER, NEVER), None, ...
    at = 2
    if at < len(words) and words[at][0].isdigit():
        versions = parse_versions(words[at], newest)
        at += 1
    while at < len(words):
        word = words[at]
        at += 1
        if word == "null":
            null_versions = versions
            if at < len(words) and words[at][0].isdigit():
                null_versions = parse_versions(words[at], newest)
                at += 1
        elif word == "tag":
            tag = int(words[at])
            at += 1
        else:
            assert word == "=", f"unknown word {word!r} in the definition of {owner.name}.{name}"
            default = _parse_default(words[at])
            at += 1
    struct = None
    if type_ not in ZERO_VALUES:
        struct = known.get(type_)
        if struct is None:
            struct = known[type_] = Struct(type_, owner.versions, owner.flexible_from, [])
    return Field(
        name,
        type_,
        versions=versions,
        is_array=is_array,
        struct=struct,
        null_versions=null_versions,
        tag=tag,
        default=default,
    )


def _parse_default(text: str) -> Any:
    return {"null": None, "true": True, "false": False}[text] if text.isalpha() else int(text)
