"""Messages declared as Python classes, for records of internal topics and of the metadata log.

A class body lists the fields in wire order. Type checkers see its constructor as that of a dataclass.

    class TopicRecord(Layout, versions=(0, 0), flexible_from=0):
        name: str = of("string")
        topic_id: UUID = of("uuid")

Requests and responses have text definitions instead (wire/definitions), which are read at the first use.
"""

from typing import Any, ClassVar, NamedTuple, dataclass_transform

from odradek.wire.classes import Message, build_constructors
from odradek.wire.codec import Codec
from odradek.wire.schema import NEVER, Field, Struct, Versions


class _Declared(NamedTuple):
    """A field as declared in a class body, before the class has a schema."""

    type: "str | type[Layout]"
    array: bool
    default: Any
    since: int
    until: int
    null_from: int
    tag: int | None


def of(
    type_: "str | type[Layout]",
    *,
    array: bool = False,
    default: Any = ...,
    since: int = 0,
    until: int = NEVER,
    null_from: int = NEVER,
    tag: int | None = None,
) -> Any:
    """A field of a `Layout`. A field without a default is a required argument of the constructor."""
    return _Declared(type_, array, default, since, until, null_from, tag)


def _build_constructor_on_first_call(self: Any, **fields: Any) -> None:
    """Build the constructor now. A process uses few record types, and compiling all would slow its start."""
    cls = type(self)
    (cls.__init__,) = build_constructors([cls.codec.schema], cls.codec.classes, cls.required)
    cls.__init__(self, **fields)


@dataclass_transform(kw_only_default=True, field_specifiers=(of,))
class _LayoutType(type):
    def __new__(
        mcs,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        versions: Versions = (0, NEVER),
        flexible_from: int = NEVER,
    ) -> Any:
        declared = {key: value for key, value in namespace.items() if isinstance(value, _Declared)}
        body = {key: value for key, value in namespace.items() if key not in declared}
        body["__slots__"] = tuple(declared)
        body["__init__"] = _build_constructor_on_first_call
        cls: Any = super().__new__(mcs, name, bases, body)
        classes = {name: cls}
        for field in declared.values():
            if not isinstance(field.type, str):
                classes.update(field.type.codec.classes)
        struct = Struct(name, versions, flexible_from, [_field(*item) for item in declared.items()])
        cls.codec = Codec(struct, classes)
        cls.required = frozenset(key for key, value in declared.items() if value.default is ...)
        return cls

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **_options: Any) -> None:
        super().__init__(name, bases, namespace)


class Layout(Message, metaclass=_LayoutType):
    """Base class of declared messages. `codec` encodes and decodes them."""

    codec: ClassVar[Codec]
    required: ClassVar[frozenset[str]]


def _field(name: str, declared: _Declared) -> Field:
    type_ = declared.type
    return Field(
        name,
        type_ if isinstance(type_, str) else type_.__name__,
        versions=(declared.since, declared.until),
        is_array=declared.array,
        struct=None if isinstance(type_, str) else type_.codec.schema,
        null_versions=(declared.null_from, NEVER - 1),
        tag=declared.tag,
        default=declared.default,
    )
