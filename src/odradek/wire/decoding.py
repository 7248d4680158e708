"""Generates the source of decoders: straight-line code that reads one struct in one version.

Every field gets a value. Fields that the version lacks get their defaults. Unknown tagged fields are skipped.
A decoder raises ProtocolError and no other error, whatever the bytes are. A sliced decoder is the same code
as a generator: it yields the cost of every element (runtime/slices.py).
"""

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any
from uuid import UUID

from odradek.core.errors import ProtocolError
from odradek.core.types import ZERO_UUID, Buffer
from odradek.runtime.slices import Paced
from odradek.wire.encoding import FORMATS, TEXT_OR_BYTES
from odradek.wire.limits import ENDS_ELSEWHERE
from odradek.wire.schema import Field, Struct
from odradek.wire.varint import decode_uvarint

Decoder = Callable[[Buffer, int], tuple[Any, int]]
SlicedDecoder = Callable[[Buffer, int], Paced[tuple[Any, int]]]

_ZERO_BYTES = bytes(16)
_RUN = 256  # numbers that a sliced decoder reads in one step


@lru_cache(maxsize=8192)
def decode_uuid(data: bytes) -> UUID:
    """Cached, because requests repeat the same topic ids, and making a UUID is slow."""
    return ZERO_UUID if data == _ZERO_BYTES else UUID(bytes=data)


def build_decoder(root: Struct, version: int, classes: dict[str, type]) -> Decoder:
    decoder: Decoder = _Reader(root, version, classes).function(root)
    return decoder


def build_sliced_decoder(root: Struct, version: int, classes: dict[str, type]) -> SlicedDecoder:
    decoder: SlicedDecoder = _Reader(root, version, classes, sliced=True).function(root)
    return decoder


class _Reader:
    def __init__(self, root: Struct, version: int, classes: dict[str, type], *, sliced: bool = False) -> None:
        self.sliced = sliced
        self.version = version
        self.flexible = version >= root.flexible_from
        self.lines: list[str] = []
        self.indent = 2
        self.names = 0
        self.run: list[tuple[str, str]] = []
        self.finish: list[str] = []
        self.namespace: dict[str, Any] = {
            "uv": decode_uvarint,
            "uuid": decode_uuid,
            "unpack_from": struct.unpack_from,
            "ProtocolError": ProtocolError,
            "ENDS_ELSEWHERE": ENDS_ELSEWHERE,
            "errors": (struct.error, IndexError, ValueError),
            "new": object.__new__,
            **{f"C_{name}": cls for name, cls in classes.items()},
        }

    def function(self, root: Struct) -> Any:
        self.struct(root, "o")
        self.flush()
        what = f"{root.name} v{self.version}"
        source = "\n".join(
            [
                "def decode(buf, pos):",
                " limit = len(buf)",
                " try:",
                *self.lines,
                "  return o, pos",
                *(["  yield"] if self.sliced else []),  # makes it a generator even without arrays
                " except errors as e:",
                f"  raise ProtocolError(f'not a {what}: {{e}}') from e",
            ]
        )
        exec(compile(source, f"<decoder of {what}>", "exec"), self.namespace)
        return self.namespace["decode"]

    def line(self, text: str) -> None:
        self.lines.append(" " * self.indent + text)

    def name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def rest(self, calls: int) -> None:
        """End an element that cost about `calls` Python calls."""
        if self.sliced:
            self.line(f"yield {calls}")

    def constant(self, value: Any) -> str:
        if value is None or isinstance(value, bool | int | float | str | bytes | tuple):
            return repr(value)
        name = f"K{len(self.namespace)}"
        self.namespace[name] = value
        return name

    def fixed(self, fmt: str, target: str, finish: str | None = None) -> None:
        """A field of fixed size. `finish` runs after the adjacent fixed-size fields are unpacked."""
        self.run.append((fmt, target))
        if finish:
            self.finish.append(finish)

    def flush(self) -> None:
        if not self.run:
            return
        formats = "".join(fmt for fmt, _ in self.run)
        targets = ", ".join(target for _, target in self.run)
        layout = struct.Struct(">" + formats)
        unpacker = f"unpack_{formats.replace('?', 'o')}"
        self.namespace[unpacker] = layout.unpack_from
        comma = "," if len(self.run) == 1 else ""
        self.line(f"{targets}{comma} = {unpacker}(buf, pos)")
        self.line(f"pos += {layout.size}")
        for text in self.finish:
            self.line(text)
        self.run = []
        self.finish = []

    def struct(self, of: Struct, target: str) -> None:
        self.line(f"{target} = new(C_{of.name})")
        tagged = []
        for field in of.fields:
            place = f"{target}.{field.name}"
            if not field.in_version(self.version):
                self.absent(field, place)
            elif field.tag is not None and self.flexible:
                self.absent(field, place)
                tagged.append(field)
            else:
                self.field(field, place)
        if self.flexible:
            self.tagged(tagged, target)

    def absent(self, field: Field, place: str) -> None:
        if field.default is ...:
            assert field.struct is not None
            self.line(f"{place} = C_{field.struct.name}()")
        else:
            self.line(f"{place} = {self.constant(field.default)}")

    def field(self, field: Field, place: str) -> None:
        nullable = field.nullable(self.version)
        if field.is_array:
            self.array(field, place, nullable)
        elif field.struct is not None:
            self.nested_struct(field.struct, place, nullable)
        elif field.type in TEXT_OR_BYTES:
            self.text_or_bytes(field.type, place, nullable)
        elif field.type == "uuid":
            self.fixed("16s", place, f"{place} = uuid({place})")
        else:
            self.fixed(FORMATS[field.type], place)

    def nested_struct(self, of: Struct, place: str, nullable: bool) -> None:
        name = self.name()
        if not nullable:
            self.struct(of, name)
            self.flush()
            self.line(f"{place} = {name}")
            return
        self.flush()
        self.line("n = buf[pos]; pos += 1")
        # The marker of null is -1, but 0 inside a tag. Any other value means that the struct follows.
        self.line(f"if n == 255 or n == 0: {place} = None")
        self.line("else:")
        self.indent += 1
        self.struct(of, name)
        self.flush()
        self.line(f"{place} = {name}")
        self.indent -= 1

    def count(self, fmt: str, nullable: bool, null_action: str) -> None:
        """Read a length into `n`, and open the branch for a value that is not null."""
        if self.flexible:
            self.flush()
            self.line("n = buf[pos]; pos += 1")
            self.line("if n > 127: n, pos = uv(buf, pos - 1)")
            self.line("n -= 1")
        else:
            self.fixed(fmt, "n")
            self.flush()
        self.line("if n < 0:")
        self.line(
            f" {null_action}" if nullable else " raise ProtocolError('a field that cannot be null is null')"
        )
        self.line("else:")
        self.indent += 1

    def text_or_bytes(self, type_: str, place: str, nullable: bool) -> None:
        self.count("h" if type_ == "string" else "i", nullable, f"{place} = None")
        self.line("end = pos + n")
        self.line("if end > limit: raise ProtocolError('a field reaches beyond the end')")
        slice_ = "str(buf[pos:end], 'utf-8')" if type_ == "string" else "bytes(buf[pos:end])"
        self.line(f"{place} = {slice_}; pos = end")
        self.indent -= 1

    def array(self, field: Field, place: str, nullable: bool) -> None:
        self.count("i", nullable, f"{place} = None")
        fmt = FORMATS.get(field.type)
        if fmt is not None:
            size = struct.calcsize(">" + fmt)
            self.line(f"end = pos + n * {size}")
            self.line("if end > limit: raise ProtocolError('an array reaches beyond the end')")
            if self.sliced:
                self.sliced_fixed_items(field, place, fmt, size)
            elif field.type == "uuid":
                self.line(f"{place} = [uuid(bytes(buf[i:i + 16])) for i in range(pos, end, 16)]")
            else:
                self.line(f"{place} = list(unpack_from('>%d{fmt}' % n, buf, pos))")
            self.line("pos = end")
        else:
            items, item = self.name(), self.name()
            least = self.least_bytes(field, inside=True)
            self.line(f"if n * {least} > limit - pos: raise ProtocolError('an array reaches beyond the end')")
            self.line(f"{items} = {place} = []")
            self.line("for _ in range(n):")
            self.indent += 1
            if field.struct is not None:
                self.struct(field.struct, item)
            else:
                self.text_or_bytes(field.type, item, False)
            self.flush()
            self.line(f"{items}.append({item})")
            self.rest(4 if field.struct is None else 4 + 2 * len(field.struct.fields))
            self.indent -= 1
        self.indent -= 1

    def sliced_fixed_items(self, field: Field, place: str, fmt: str, size: int) -> None:
        items = self.name()
        self.line(f"{items} = {place} = []")
        self.line(f"for i in range(pos, end, {_RUN * size}):")
        self.indent += 1
        self.line(f"n = min({_RUN}, (end - i) // {size})")
        if field.type == "uuid":
            self.line(f"{items} += [uuid(bytes(buf[k:k + 16])) for k in range(i, i + 16 * n, 16)]")
        else:
            self.line(f"{items} += unpack_from('>%d{fmt}' % n, buf, i)")
        self.line("yield 4 * n" if field.type == "uuid" else "yield 10")
        self.indent -= 1

    def least_bytes(self, field: Field, *, inside: bool = False) -> int:
        """The minimum size of a field in bytes; with `inside`, of one element of an array."""
        if field.is_array and not inside:
            return 1 if self.flexible else 4
        if field.struct is not None:
            if not inside and field.nullable(self.version):
                return 1
            fields = [
                f for f in field.struct.fields_of(self.version) if not (f.tag is not None and self.flexible)
            ]
            return max(1, sum(map(self.least_bytes, fields)) + self.flexible)
        if field.type in TEXT_OR_BYTES:
            return 1 if self.flexible else 2 if field.type == "string" else 4
        return struct.calcsize(">" + FORMATS[field.type])

    def tagged(self, fields: list[Field], target: str) -> None:
        self.flush()
        name = self.name()
        self.line(f"{name}_count = buf[pos]; pos += 1")
        self.line(f"if {name}_count:")
        self.indent += 1
        self.line(f"{name}_count, pos = uv(buf, pos - 1)")
        self.line(
            f"if 2 * {name}_count > limit - pos: raise ProtocolError('tagged fields reach beyond the end')"
        )
        self.line(f"for _ in range({name}_count):")
        self.indent += 1
        self.line(f"{name}_tag, pos = uv(buf, pos)")
        self.line(f"{name}_end, pos = uv(buf, pos)")
        self.line(f"{name}_end += pos")
        self.line(f"if {name}_end > limit: raise ProtocolError('a tagged field reaches beyond the end')")
        for i, field in enumerate(fields):
            self.line(f"{'el' if i else ''}if {name}_tag == {field.tag}:")
            self.indent += 1
            self.field(field, f"{target}.{field.name}")
            self.flush()
            self.line(f"if pos != {name}_end: raise ProtocolError(ENDS_ELSEWHERE)")
            self.indent -= 1
        self.line(f"pos = {name}_end")
        self.rest(6)
        self.indent -= 2
