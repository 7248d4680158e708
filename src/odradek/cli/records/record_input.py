"""How `produce` reads records: lines, a template such as `%k\\t%v\\n`, or JSON lines. Pure: bytes in."""

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from odradek.cli.records.record_format import Headers, Token, encoder, tokens
from odradek.cli.terminal.output import FORMATS
from odradek.cli.terminal.times import parse_time_ms

_READABLE = "kvhptd"
_READ_FORMATS = ("text", "jsonl")


class UnreadableError(ValueError):
    """A record of the input that cannot be read; says where it stands and what is wrong with it."""


class InputRecord(NamedTuple):
    """What the input says of a record; None where it says nothing."""

    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()
    topic: str | None = None
    partition: int | None = None
    timestamp_ms: int | None = None


def check_input_format(name: str) -> str:
    """A format in which records are read, or a template that can be; raises ValueError for the rest."""
    if name not in FORMATS and any(token.letter for token in tokens(name)):
        record_reader(name)
    elif name not in _READ_FORMATS:
        meant = "did you mean jsonl? " if name == "json" else ""
        forms = f"{', '.join(_READ_FORMATS)}, or a template such as '%v\\n'"
        raise ValueError(f"cannot read records as {name!r}: {meant}one of {forms}")
    return name


def record_reader(format_name: str) -> tuple[bytes, Callable[[bytes], InputRecord]]:
    """What ends a record in the input, and the function that reads one; ValueError for a bad template."""
    if format_name == "jsonl":
        return b"\n", _from_json
    found = tokens("%v\\n" if format_name == "text" else format_name)
    end = b"\n"
    if found and found[-1].letter == "":
        end = found.pop().argument.encode()
    _check(found, format_name)
    return end, lambda piece: _from_template(piece, found)


def split_records(chunks: Iterable[bytes], end: bytes) -> Iterator[list[bytes]]:
    """The records that each chunk completes; what follows the last end is a record unless it is empty."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(end)
        if whole:
            yield whole
    if rest:
        yield [rest]


def read_records(
    chunks: Iterable[bytes], end: bytes, read: Callable[[bytes], InputRecord]
) -> Iterator[list[InputRecord]]:
    """The records that each chunk completes. Those before an unreadable one are given before it is raised."""
    noun = "line" if end == b"\n" else "record"
    number = 0
    for pieces in split_records(chunks, end):
        records: list[InputRecord] = []
        for piece in pieces:
            number += 1
            try:
                records.append(read(piece))
            except ValueError as e:
                yield records
                raise UnreadableError(f"{noun} {number}: {e}") from e
        yield records


def _check(found: list[Token], template: str) -> None:
    letters = [token.letter for token in found if token.letter]
    if not letters or any(letter not in _READABLE for letter in letters):
        raise ValueError(f"cannot read records by {template!r} (tokens %k %v %h %p %t %d)")
    if len(set(letters)) < len(letters):
        raise ValueError(f"a token appears twice in {template!r}")
    if any(a.letter and b.letter for a, b in pairwise(found)):
        raise ValueError(f"two tokens in {template!r} need text between them")
    for letter, argument in found:
        if letter in ("k", "v"):
            encoder(argument)


def _from_template(piece: bytes, found: list[Token]) -> InputRecord:
    fields: dict[str, Any] = {}
    for i, (letter, argument) in enumerate(found):
        if letter == "":
            continue
        data = piece
        if i + 1 < len(found):
            separator = found[i + 1].argument.encode()
            data, cut, piece = piece.partition(separator)
            if not cut:
                raise ValueError(f"no {found[i + 1].argument!r} in {_shown(piece or data)}")
        fields.update(_field(letter, argument, data))
    return InputRecord(**fields)


def _field(letter: str, argument: str, data: bytes) -> dict[str, Any]:
    if letter in "kv":
        return {"key" if letter == "k" else "value": _decode(data, argument)}
    text = data.decode()
    if letter == "t":
        return {"topic": text}
    if letter == "d":
        return {"timestamp_ms": parse_time_ms(text, 0)}
    if letter == "h":
        pairs = (item.partition("=") for item in text.split(",") if item)
        return {"headers": tuple((name, value.encode()) for name, _, value in pairs)}
    if not text.isdigit():
        raise ValueError(f"not a partition: {text!r}")
    return {"partition": int(text)}


def _decode(data: bytes, argument: str) -> bytes:
    try:
        if argument == "hex":
            return binascii.unhexlify(data)
        if argument == "base64":
            return base64.b64decode(data, validate=True)
    except ValueError as e:
        raise ValueError(f"not {argument}: {_shown(data)} ({e})") from None
    return data


def _from_json(piece: bytes) -> InputRecord:
    try:
        row = json.loads(piece)
    except ValueError as e:
        raise ValueError(f"not JSON: {_shown(piece)} ({e})") from None
    if not isinstance(row, dict) or "value" not in row:
        raise ValueError(f'not an object with a "value": {_shown(piece)}')
    headers = row.get("headers") or ()
    if isinstance(headers, dict):
        headers = headers.items()
    elif not (isinstance(headers, list | tuple) and all(_is_header(pair) for pair in headers)):
        raise ValueError(f"headers must be a list of [name, value]: {_shown(piece)}")
    timestamp = row.get("timestamp")
    return InputRecord(
        key=_bytes(row.get("key")),
        value=_bytes(row["value"]),
        headers=tuple((name, _bytes(value)) for name, value in headers),
        timestamp_ms=None if timestamp is None else parse_time_ms(str(timestamp), 0),
    )


def _is_header(pair: Any) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)


def _bytes(value: Any) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and list(value) == ["base64"]:
        return base64.b64decode(value["base64"])
    return json.dumps(value, ensure_ascii=False).encode()


def _shown(data: bytes) -> str:
    text = data.decode(errors="backslashreplace")
    return repr(text if len(text) <= 60 else text[:57] + "...")
