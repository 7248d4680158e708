"""Requests of any API in shapes that no honest client sends, made from the schema: new APIs are covered.

A shape fills one array of a request with `count` entries. Entries are encoded once, as pieces that are the
same in all of them and columns that are not, so that a large frame is a join. Bytes only: what they name is
names.py's.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat
from math import isqrt
from typing import Any, NamedTuple, Protocol

from odradek.wire.headers import request_frame_header
from odradek.wire.messages import request_codec
from odradek.wire.schema import Field, Struct
from odradek.wire.varint import encode_uvarint

Path = tuple[str, ...]
Piece = bytes | Sequence[bytes]

FORMATS = {"bool": "?", "int8": "b", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q"}
TAGGED = ("unknown-tags", "unknown-tags-cut", "header-tags", "header-tags-cut")
NULL_LAST = "null-last"
HEADER_TAGS = "header-tags"
KNOWN_TAGS = ("known-tags", "known-tags-long")
UNKNOWN_TAG = 100


class Names(Protocol):
    """What fields hold. `naming` is many (no such thing exists), known (it does) or repeated (always one)."""

    def value(self, owner: Struct, field: Field) -> Any:
        """Of a field outside of the array that is filled."""
        ...

    def column(self, owner: Struct, field: Field, naming: str, count: int) -> Sequence[Any]:
        """Of a field in each of the entries; one value where all are the same."""
        ...


class Shape(NamedTuple):
    """Which array of a request is filled, with what. Tags fill no array: their path is empty."""

    kind: str
    path: Path = ()

    def __str__(self) -> str:
        return "-".join((self.kind, *self.path))

    @property
    def is_malformed(self) -> bool:
        """Whether a broker may hang up on it: sizes that lie, a wrong null, a header full of tags."""
        return self.kind.endswith(("-cut", "-long")) or self.kind in (NULL_LAST, HEADER_TAGS)


def arrays(of: Struct, version: int, above: Path = ()) -> Iterator[Path]:
    """The arrays of a message, outer ones first."""
    for field in of.fields_of(version):
        if field.is_array:
            path = (*above, field.name)
            yield path
            if field.struct is not None:
                yield from arrays(field.struct, version, path)


def shapes_of(api_key: int, version: int) -> list[Shape]:
    """Every shape that a request can have at a version."""
    schema = request_codec(api_key).schema
    found = []
    for path in arrays(schema, version):
        field = _field_at(schema, version, path)
        found += [Shape("many", path), Shape("known", path), Shape("repeated", path), Shape("empty", path)]
        if field.struct is None:
            if field.type == "string":
                found.append(Shape(NULL_LAST, path))
        elif any(inner.nullable(version) for inner in field.struct.fields_of(version)):
            found.append(Shape("null", path))
        if len(path) > 1:
            found.append(Shape("deep", path))
        if field.struct is not None and version >= schema.flexible_from:
            found.append(Shape("entry-tags", path))
            if _tags_of(field.struct, version):
                found += [Shape(f"entry-{kind}", path) for kind in KNOWN_TAGS]
    if version >= schema.flexible_from:
        found += [Shape(kind) for kind in TAGGED]
        if _tags_of(schema, version):
            found += [Shape(kind) for kind in KNOWN_TAGS]
    return found


def frame(api_key: int, version: int, shape: Shape, count: int, names: Names) -> bytes:
    """A whole request with `count` entries, or tags, of a shape."""
    schema = request_codec(api_key).schema
    writer = _Writer(schema, version, shape, count, names)
    body = writer.message()
    head = request_frame_header(api_key, version, 1, "hostile", len(body))
    if not shape.kind.startswith("header-tags"):
        return head + body
    tags = writer.unknown_tags()
    size = len(head) - 4 - 1 + len(tags) + len(body)
    return struct.pack(">i", size) + head[4:-1] + tags + body


class _Writer:
    def __init__(self, schema: Struct, version: int, shape: Shape, count: int, names: Names) -> None:
        self.schema = schema
        self.version = version
        self.flexible = version >= schema.flexible_from
        self.shape = shape
        self.count = count
        self.names = names

    def message(self) -> bytes:
        out = b"".join(self._fields(self.schema, self.shape.path))
        if not self.flexible:
            return out
        if self.shape.kind.startswith("unknown-tags"):
            return out + self.unknown_tags()
        if self.shape.kind.startswith("known-tags"):
            return out + self._known_tags(self.schema)
        return out + b"\0"

    # --- tags -----------------------------------------------------------------------------------------

    def unknown_tags(self) -> bytes:
        """Fields that nobody knows, each with a byte; of the cut ones the last says that it is longer."""
        numbers = map(encode_uvarint, range(UNKNOWN_TAG, UNKNOWN_TAG + self.count))
        tags = b"".join(chain.from_iterable(zip(numbers, repeat(b"\x01x"), strict=False)))
        if self.shape.kind.endswith("-cut"):
            tags = tags[:-2] + encode_uvarint(1 << 20) + b"x"
        return encode_uvarint(self.count) + tags

    def _known_tags(self, of: Struct) -> bytes:
        """The first tag that a struct knows, again and again.

        The long ones hold a value that reaches beyond the end of its tag, a string far beyond it.
        """
        field = _tags_of(of, self.version)[0]
        assert field.struct is None and not field.is_array, "a case of its own for another type"
        is_long = self.shape.kind.endswith("-long")
        if field.type != "string":
            size = 16 if field.type == "uuid" else struct.calcsize(">" + FORMATS[field.type])
            content, tail = bytes(1 if is_long else size), bytes(size)
        elif is_long:
            # The tag and its size are a byte each, the length three: a string over all the tags behind it.
            content, tail = _length_that_is_text(self.count * 5), bytes(self.count * 5 + 0x80)
        else:
            content, tail = encode_uvarint(2) + b"c", b""
        one = encode_uvarint(field.tag or 0) + encode_uvarint(len(content)) + content
        return encode_uvarint(self.count) + one * self.count + (tail if is_long else b"")

    # --- fields ---------------------------------------------------------------------------------------

    def _fields(self, of: Struct, path: Path) -> Iterator[bytes]:
        """The fields of a struct that is not repeated; without its tags."""
        for field in of.fields_of(self.version):
            if field.tag is not None and self.flexible:
                continue
            if not path or field.name != path[0]:
                yield self._plain(field, self.names.value(of, field))
            elif len(path) == 1:
                yield self._filled(of, field)
            elif self.shape.kind == "deep" and len(path) == 2:
                yield self._deep(field, path[1])
            else:
                assert field.struct is not None
                inner = b"".join(self._fields(field.struct, path[1:]))
                yield self._length(1) + inner + (b"\0" if self.flexible else b"")

    def _filled(self, owner: Struct, field: Field) -> bytes:
        """The array at the end of the path, with all its entries."""
        kind = self.shape.kind
        naming = kind if kind in ("many", "known") else "repeated"
        if kind == "entry-tags":
            assert field.struct is not None
            return self._length(1) + self._entries(field.struct, naming, 1)[:-1] + self.unknown_tags()
        if kind.startswith("entry-known-tags"):
            assert field.struct is not None
            entry = self._entries(field.struct, naming, 1)[:-1]
            return self._length(1) + entry + self._known_tags(field.struct)
        if field.struct is not None:
            return self._length(self.count) + self._entries(field.struct, naming, self.count)
        if kind == "empty" and field.type == "string":
            return self._length(self.count) + self._text(b"", False) * self.count
        entries = self._column(owner, field, naming, self.count)
        data = b"".join(entries) * (self.count // len(entries))
        if kind == NULL_LAST:
            return self._length(self.count + 1) + data + self._null("string")
        return self._length(self.count) + data

    def _deep(self, field: Field, inner_name: str) -> bytes:
        """As many entries as each of them has entries inside."""
        assert field.struct is not None
        side = max(isqrt(self.count), 1)
        inner = next(f for f in field.struct.fields_of(self.version) if f.name == inner_name)
        if inner.struct is not None:
            content = self._length(side) + self._entries(inner.struct, "known", side)
        else:
            found = self._column(field.struct, inner, "known", side)
            content = self._length(side) + b"".join(found) * (side // len(found))
        return self._length(side) + self._entries(field.struct, "known", side, {inner_name: content})

    def _entries(
        self, of: Struct, naming: str, count: int, given: Mapping[str, bytes] | None = None
    ) -> bytes:
        """`count` structs, one after the other."""
        pieces: list[Piece] = []
        for field in of.fields_of(self.version):
            if field.tag is not None and self.flexible:
                continue
            if given and field.name in given:
                pieces.append(given[field.name])
            else:
                pieces.append(self._piece(of, field, naming, count))
        if self.flexible:
            pieces.append(b"\0")
        if all(isinstance(piece, bytes) for piece in pieces):
            return b"".join(pieces) * count  # type: ignore[arg-type]
        columns = [repeat(piece) if isinstance(piece, bytes) else piece for piece in pieces]
        return b"".join(chain.from_iterable(zip(*columns, strict=False)))

    def _piece(self, owner: Struct, field: Field, naming: str, count: int) -> Piece:
        """One field of every entry: the same bytes, or one for each."""
        kind = self.shape.kind
        if kind == "null" and field.nullable(self.version):
            return self._plain(field, None)
        if field.is_array:
            if kind == "empty":
                return self._length(0)
            if field.struct is not None:
                return self._length(1) + self._entries(field.struct, "repeated", 1)
            return self._length(1) + b"".join(self._column(owner, field, "repeated", 1))
        if kind == "empty" and field.type in ("bytes", "records"):
            return self._plain(field, b"")
        if field.struct is not None:
            return self._plain(field, None)
        found = self._column(owner, field, naming, count)
        return found[0] if len(found) == 1 else found

    def _column(self, owner: Struct, field: Field, naming: str, count: int) -> list[bytes]:
        """Encoded: `count` of them, or one where all are the same."""
        values = self.names.column(owner, field, naming, count)
        if field.type in FORMATS:
            pack = struct.Struct(">" + FORMATS[field.type]).pack
            return [pack(value) for value in values]
        return [self._item(field, value) for value in values]

    def _item(self, field: Field, value: Any) -> bytes:
        if value is None:
            return self._null(field.type)
        if field.type == "string":
            return self._text(value.encode(), False)
        if field.type in ("bytes", "records"):
            return self._text(value, True)
        if field.type == "uuid":
            return bytes(value.bytes)
        return struct.pack(">" + FORMATS[field.type], value)

    def _plain(self, field: Field, value: Any) -> bytes:
        """A field with a value, or with none."""
        if field.is_array:
            return self._null("array") if value is None and field.nullable(self.version) else self._length(0)
        if field.struct is not None:
            if field.nullable(self.version):
                return b"\xff"
            return b"".join(self._fields(field.struct, ())) + (b"\0" if self.flexible else b"")
        return self._item(field, value)

    # --- lengths --------------------------------------------------------------------------------------

    def _length(self, count: int) -> bytes:
        return encode_uvarint(count + 1) if self.flexible else struct.pack(">i", count)

    def _text(self, data: bytes, is_long: bool) -> bytes:
        if self.flexible:
            return encode_uvarint(len(data) + 1) + data
        return struct.pack(">i" if is_long else ">h", len(data)) + data

    def _null(self, kind: str) -> bytes:
        if self.flexible:
            return b"\0"
        return b"\xff\xff" if kind == "string" else b"\xff\xff\xff\xff"


def _tags_of(of: Struct, version: int) -> list[Field]:
    """The tagged fields of a struct, by their numbers."""
    tagged = [field for field in of.fields_of(version) if field.tag is not None]
    return sorted(tagged, key=lambda field: field.tag or 0)


def _length_that_is_text(length: int) -> bytes:
    """About so much, or 70, as three bytes that are UTF-8 too, so that a string may hold them.

    The string ends where a tag of five bytes does, not inside of a character.
    """
    middle, top = length >> 7 & 0x3F, min(length >> 14, 0x7F)
    low = next(low for low in range(0x42, 0x47) if (low + (middle << 7) + (top << 14)) % 5 == 1)
    return bytes((0x80 | low, 0x80 | middle, top))


def _field_at(of: Struct, version: int, path: Path) -> Field:
    field = next(f for f in of.fields_of(version) if f.name == path[0])
    if len(path) == 1:
        return field
    assert field.struct is not None
    return _field_at(field.struct, version, path[1:])
