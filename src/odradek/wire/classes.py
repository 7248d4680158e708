"""The Python classes that messages are made of: one per struct, with the fields of all its versions.

A constructor takes any of the fields by name and refuses names that no version has; a field left out has
the schema's default. What the bytes look like is not known here.
"""

from typing import Any

from odradek.wire.schema import Field, Struct


class Message:
    """Base of all messages: fields are slots, mutable, compared by value."""

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
    source = "\n".join(_init_source(i, struct) for i, struct in enumerate(structs))
    namespace: dict[str, Any] = {}
    for struct in structs:
        for field in struct.fields:
            namespace[_default_name(struct, field)] = field.default
    exec(compile(source, f"<constructors of {root.name}>", "exec"), namespace)
    classes: dict[str, type[Message]] = {}
    for i, struct in enumerate(structs):
        body = {
            "__slots__": tuple(f.name for f in struct.fields),
            "__module__": __name__,
            "__init__": namespace[f"init_{i}"],
        }
        classes[struct.name] = type(struct.name, (Message,), body)
    namespace.update(classes)
    return classes


def _default_name(struct: Struct, field: Field) -> str:
    return f"default_{struct.name}_{field.name}"


def _init_source(i: int, struct: Struct) -> str:
    if not struct.fields:
        return f"def init_{i}(self): pass"
    arguments = ", ".join(f"{f.name}={_default_name(struct, f)}" for f in struct.fields)
    lines = [f"def init_{i}(self, *, {arguments}):"]
    for field in struct.fields:
        value = field.name
        if field.default is ...:
            assert field.struct is not None
            value = f"{field.struct.name}() if {value} is ... else {value}"
        lines.append(f"    self.{field.name} = {value}")
    return "\n".join(lines)
