"""Builds a response with one error for the whole request, in every error field of its API.

It follows from the definitions of request and response (wire/definitions), without code for single APIs.
Messages have the form of their newest version, whatever the version of the request is (wire/messages.py).
"""

from typing import Any

from odradek.core.errors import ErrorCode, ProtocolError
from odradek.runtime.slices import STEP, Paced
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_codec, response_codec
from odradek.wire.schema import Field, Struct

_CODES = ("error_code", "partition_error_code")


def refusal(
    api_key: int, version: int, request: Any, code: ErrorCode, message: str | None = None
) -> Paced[Any]:
    """One top-level error if the version has such a field, otherwise one for each part of the request.

    Raises ProtocolError if it has neither: then the connection must be closed.
    """
    codec = response_codec(api_key)
    root = codec.schema
    response = codec.root()
    _mark(response, code, message)
    if not any(field.name == "error_code" and field.in_version(version) for field in _newest(root)):
        places = yield from _fill(
            response, root, request, request_codec(api_key).schema, codec.types, code, message
        )
        if not places:
            raise ProtocolError(f"{ApiKey(api_key).name} failed with {code.name}: {message}")
    return response


def _mark(row: Any, code: ErrorCode, message: str | None) -> None:
    for name in _CODES:
        if hasattr(row, name):
            setattr(row, name, code)
            if message is not None and hasattr(row, "error_message"):
                row.error_message = message


def _fill(
    row: Any,
    struct: Struct,
    asked: Any,
    asked_struct: Struct,
    types: Any,
    code: ErrorCode,
    message: str | None,
) -> Paced[bool]:
    """Answer each part of the request. Returns False if the parts of the response have no error field."""
    answers = next((f for f in _newest(struct) if f.is_array and f.struct and _carries_error(f.struct)), None)
    parts = next((f for f in _newest(asked_struct) if f.is_array), None)
    if answers is None or answers.struct is None or parts is None:
        return False
    rows = []
    items = getattr(asked, parts.name) or ()
    if parts.struct is not None and not _shared(parts.struct, answers.struct):
        items = (None,)  # the parts of the response do not match those of the request: one part for all
    for item in items:
        part = getattr(types, answers.struct.name)()
        _mark(part, code, message)
        if parts.struct is None:
            setattr(part, _identity(answers.struct).name, item)
        elif item is not None:
            for name in _shared(parts.struct, answers.struct):
                setattr(part, name, getattr(item, name))
            yield from _fill(part, answers.struct, item, parts.struct, types, code, message)
        else:
            _stand_in(part, answers.struct, types, code, message)
        rows.append(part)
        yield STEP
    setattr(row, answers.name, rows)
    return True


def _stand_in(row: Any, struct: Struct, types: Any, code: ErrorCode, message: str | None) -> None:
    """If the error field is nested deeper, one part there is for all too."""
    inner = next((f for f in _newest(struct) if f.is_array and f.struct and _carries_error(f.struct)), None)
    if inner is None or inner.struct is None or any(f.name in _CODES for f in _newest(struct)):
        return
    part = getattr(types, inner.struct.name)()
    _mark(part, code, message)
    _stand_in(part, inner.struct, types, code, message)
    setattr(row, inner.name, [part])


def _newest(struct: Struct) -> list[Field]:
    return struct.fields_of(struct.versions[1])


def _carries_error(struct: Struct) -> bool:
    return any(f.name in _CODES for s in (struct, *struct.nested()) for f in s.fields)


def _shared(asked: Struct, answered: Struct) -> list[str]:
    """The simple fields that request and response have in common."""
    plain = {f.name for f in _newest(asked) if not f.is_array and f.struct is None}
    return [f.name for f in _newest(answered) if f.name in plain]


def _identity(struct: Struct) -> Field:
    """The field of a response's part that repeats a name or number of the request."""
    return next(f for f in _newest(struct) if not f.name.startswith("error"))
