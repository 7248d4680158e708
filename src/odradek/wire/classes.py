"""Builds the Python classes of messages: one class per struct, with the fields of all versions.

A constructor takes fields by name and refuses unknown names. A missing field gets the schema's default. This
file does not know the bytes.
"""

from collections.abc import Callable, Mapping
from typing import Any

from odradek.wire.schema import Struct


class Message:
    """Base class of all messages. Fields are mutable slots. Messages are compared by value."""

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(_same(getattr(self, name), getattr(other, name)) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({values})"


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def build_classes(root: Struct) -> dict[str, type[Message]]:
    """A class for the message and for every struct inside it, by name."""
    structs = [root, *root.nested()]
    classes: dict[str, type[Message]] = {}
    constructors = build_constructors(structs, classes)
    for struct, constructor in zip(structs, constructors, strict=True):
        slots = tuple(f.name for f in struct.fields)
        body = {"__slots__": slots, "__module__": __name__, "__init__": constructor}
        classes[struct.name] = type(struct.name, (Message,), body)
    return classes


def build_constructors(
    structs: list[Struct], classes: Mapping[str, type[Message]], required: frozenset[str] = frozenset()
) -> list[Callable[..., None]]:
    """An `__init__` for each struct. `classes` may be filled later, but before the first call."""
    namespace: dict[str, Any] = {"classes": classes}
    for i, struct in enumerate(structs):
        for field in struct.fields:
            namespace[f"default_{i}_{field.name}"] = field.default
    source = "\n".join(_constructor_source(i, struct, required) for i, struct in enumerate(structs))
    exec(compile(source, f"<constructors of {structs[0].name}>", "exec"), namespace)
    return [namespace[f"init_{i}"] for i in range(len(structs))]


def _constructor_source(i: int, struct: Struct, required: frozenset[str]) -> str:
    if not struct.fields:
        return f"def init_{i}(self): pass"
    arguments = ", ".join(
        f.name if f.name in required else f"{f.name}=default_{i}_{f.name}" for f in struct.fields
    )
    lines = [f"def init_{i}(self, *, {arguments}):"]
    for field in struct.fields:
        value = field.name
        if field.default is ... and field.name not in required:
            assert field.struct is not None
            value = f"classes[{field.struct.name!r}]() if {value} is ... else {value}"
        lines.append(f"    self.{field.name} = {value}")
    return "\n".join(lines)
