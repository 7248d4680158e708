"""Generates the source of encoders: straight-line code that writes one struct in one version.

An encoder reads attributes by name from any object, so one object serves all versions. Adjacent fields of
fixed size, including lengths, become one `struct.pack`. A sliced encoder is the same code as a generator: it
yields the cost of every element (runtime/slices.py), and returns pieces instead of one message.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any

from odradek.core.types import ZERO_UUID
from odradek.runtime.slices import Paced
from odradek.wire.schema import Field, Struct
from odradek.wire.varint import ONE_BYTE, encode_uvarint

FORMATS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
TEXT_OR_BYTES = ("string", "bytes", "records")
_RUN = 256  # numbers, or parts of a piece, that a sliced encoder writes in one step


def build_encoder(root: Struct, version: int, classes: Mapping[str, type]) -> Callable[[Any], bytes]:
    """`classes` has the class of each struct by name: a tagged struct that equals a new one is omitted."""
    encoder: Callable[[Any], bytes] = _Writer(root, version, classes).function(root)
    return encoder


def build_sliced_encoder(
    root: Struct, version: int, classes: Mapping[str, type]
) -> Callable[[Any], Paced[list[bytes]]]:
    """The same, in pieces."""
    encoder: Callable[[Any], Paced[list[bytes]]] = _Writer(root, version, classes, sliced=True).function(root)
    return encoder


class _Writer:
    def __init__(
        self, root: Struct, version: int, classes: Mapping[str, type], *, sliced: bool = False
    ) -> None:
        self.sliced = sliced
        self.in_tag = False
        self.version = version
        self.classes = classes
        self.flexible = version >= root.flexible_from
        self.lines: list[str] = []
        self.indent = 1
        self.names = 0
        self.run: list[tuple[str, str]] = []
        self.namespace: dict[str, Any] = {
            "V": ONE_BYTE,
            "uv": encode_uvarint,
            "pack": struct.pack,
            "ZERO": ZERO_UUID,
        }

    def function(self, root: Struct) -> Any:
        self.struct(root, "o")
        self.flush()
        start = ["def encode(o):", " out = []", " add = out.append"]
        end = [" return b''.join(out)"]
        if self.sliced:
            # The last line makes it a generator even without arrays.
            start, end = [*start, " done = []"], [" done.append(b''.join(out))", " return done", " yield"]
        source = "\n".join([*start, *self.lines, *end])
        exec(compile(source, f"<encoder of {root.name} v{self.version}>", "exec"), self.namespace)
        return self.namespace["encode"]

    def line(self, text: str) -> None:
        self.lines.append(" " * self.indent + text)

    def name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def rest(self, calls: str) -> None:
        """End an element that cost about `calls` Python calls. Complete parts become a piece."""
        if self.sliced:
            if not self.in_tag:
                self.line(f"if len(out) > {_RUN}: done.append(b''.join(out)); out.clear()")
            self.line(f"yield {calls}")

    def fixed(self, fmt: str, *expressions: str) -> None:
        self.run.append((fmt, ", ".join(expressions)))

    def flush(self) -> None:
        """Write the pending fields of fixed size with one pack."""
        if not self.run:
            return
        formats = "".join(fmt for fmt, _ in self.run)
        arguments = ", ".join(expression for _, expression in self.run if expression)
        self.run = []
        if not arguments:
            self.line(f"add({bytes(len(formats))!r})")
            return
        packer = f"pack_{formats.replace('?', 'o')}"
        self.namespace[packer] = struct.Struct(">" + formats).pack
        self.line(f"add({packer}({arguments}))")

    def struct(self, of: Struct, value: str) -> None:
        tagged = []
        for field in of.fields_of(self.version):
            if field.tag is not None and self.flexible:
                tagged.append(field)
            else:
                self.field(field, f"{value}.{field.name}")
        if self.flexible:
            if tagged:
                self.tagged(sorted(tagged, key=lambda f: f.tag or 0), value)
            else:
                self.fixed("x")

    def field(self, field: Field, value: str) -> None:
        nullable = field.nullable(self.version)
        if field.is_array:
            self.array(field, value, nullable)
        elif field.struct is not None:
            self.nested_struct(field.struct, value, nullable)
        elif field.type in TEXT_OR_BYTES:
            self.text_or_bytes(field.type, value, nullable)
        else:
            self.fixed(FORMATS[field.type], _fixed_value(field.type, value))

    def nested_struct(self, of: Struct, value: str, nullable: bool) -> None:
        name = self.name()
        self.line(f"{name} = {value}")
        if not nullable:
            self.struct(of, name)
            return
        self.flush()
        self.line(f"if {name} is None: add(b'\\xff')")
        self.line("else:")
        self.indent += 1
        self.line("add(b'\\x01')")
        self.struct(of, name)
        self.flush()
        self.indent -= 1

    def text_or_bytes(self, type_: str, value: str, nullable: bool) -> None:
        name = self.name()
        encode = ".encode()" if type_ == "string" else ""
        if nullable:
            self.line(f"{name} = {value}")
            self.flush()
            null = "b'\\0'" if self.flexible else "b'\\xff\\xff'" if encode else "b'\\xff\\xff\\xff\\xff'"
            self.line(f"if {name} is None: add({null})")
            self.line("else:")
            self.indent += 1
            if encode:
                self.line(f"{name} = {name}{encode}")
        else:
            self.line(f"{name} = {value}{encode}")
        if self.flexible:
            self.flush()
            self.length(name)
        else:
            self.fixed("h" if encode else "i", f"len({name})")
            self.flush()
        self.line(f"add({name})")
        if nullable:
            self.indent -= 1

    def length(self, name: str) -> None:
        """The compact length: the count plus one, or zero for null."""
        self.line(f"n = len({name}) + 1")
        self.line("add(V[n] if n < 128 else uv(n))")

    def array(self, field: Field, value: str, nullable: bool) -> None:
        name = self.name()
        self.line(f"{name} = {value}")
        if nullable:
            self.flush()
            null = "b'\\0'" if self.flexible else "b'\\xff\\xff\\xff\\xff'"
            self.line(f"if {name} is None: add({null})")
            self.line("else:")
            self.indent += 1
        if self.flexible:
            self.flush()
            self.length(name)
        else:
            self.fixed("i", f"len({name})")
            self.flush()
        self.items(field, name)
        if nullable:
            self.indent -= 1

    def items(self, field: Field, name: str) -> None:
        fmt = FORMATS.get(field.type)
        if fmt is not None and field.type != "uuid":
            if not self.sliced:
                self.line(f"add(pack('>%d{fmt}' % len({name}), *{name}))")
                return
            self.line(f"for i in range(0, len({name}), {_RUN}):")
            self.indent += 1
            self.line(f"n = {name}[i:i + {_RUN}]")
            self.line(f"add(pack('>%d{fmt}' % len(n), *n))")
            self.rest("10")
            self.indent -= 1
            return
        item = self.name()
        self.line(f"for {item} in {name}:")
        self.indent += 1
        if field.struct is not None:
            self.struct(field.struct, item)
        elif field.type in TEXT_OR_BYTES:
            self.text_or_bytes(field.type, item, False)
        else:
            self.fixed("16s", _fixed_value("uuid", item))
        self.flush()
        self.rest("4" if field.struct is None else str(4 + 3 * len(field.struct.fields)))
        self.indent -= 1

    def tagged(self, fields: list[Field], value: str) -> None:
        """Tagged fields that differ from their defaults: count, then tag, size and content of each."""
        self.flush()
        tags = self.name()
        self.line(f"{tags} = []")
        for field in fields:
            name = self.name()
            self.line(f"{name} = {value}.{field.name}")
            self.line(f"if {self.differs(field, name)}:")
            self.indent += 1
            self.line(f"{name}_out = out; out = []; add = out.append")
            outer, self.in_tag = self.in_tag, True
            self.tag_content(field, name)
            self.in_tag = outer
            self.flush()
            self.line(f"{name}_data = b''.join(out); out = {name}_out; add = out.append")
            self.line(f"{tags} += (uv({field.tag}), uv(len({name}_data)), {name}_data)")
            self.indent -= 1
        self.line(f"add(uv(len({tags}) // 3))")
        self.line(f"out += {tags}")

    def tag_content(self, field: Field, name: str) -> None:
        if field.struct is not None and not field.is_array:
            if field.nullable(self.version):
                # Inside a tag Kafka marks a null struct with 0, elsewhere with -1.
                self.line(f"if {name} is None: add(b'\\0')")
                self.line("else:")
                self.indent += 1
                self.line("add(b'\\x01')")
                self.struct(field.struct, name)
                self.flush()
                self.indent -= 1
            else:
                self.struct(field.struct, name)
        else:
            self.field(field, name)

    def differs(self, field: Field, name: str) -> str:
        if field.struct is not None and not field.is_array:
            if field.default is ...:
                self.namespace[f"D_{field.struct.name}"] = self.classes[field.struct.name]()
                return f"{name} is not None and {name} != D_{field.struct.name}"
            return "True" if field.nullable(self.version) else f"{name} is not None"
        if field.is_array:
            if field.default is None:
                return f"{name} is not None"
            empty = f"{name} is None or" if field.nullable(self.version) else f"{name} is not None and"
            return f"{empty} len({name}) > 0"
        if field.type == "uuid":
            return f"{name} is not None and {name} != ZERO"
        return f"{name} != {field.default!r}"


def _fixed_value(type_: str, value: str) -> str:
    return f"({value} or ZERO).bytes" if type_ == "uuid" else value
