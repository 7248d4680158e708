"""How records are written and read: `%t %p %o %k %v %h %d %e`, JSON lines, CSV. Pure: records in, bytes out.

Tokens are those of rpk and kcl: topic, partition, offset, key, value, headers, timestamp, leader epoch; and
ours: `%S` the outcome of the record's transaction, `%X` its transactional id.
"""

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, NamedTuple

from odradek.cli.terminal.escaping import escape_bytes
from odradek.cli.terminal.output import FORMATS, csv_line
from odradek.cli.terminal.times import format_time

Headers = Sequence[tuple[str, bytes | None]]
_OF_OUTCOME = ("S", "X")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\"}
TEXT = "%v\\n"
WIDE = "%p\\t%o\\t%d{iso}\\t%k\\t%v\\t%h\\n"
TEXT_WITH_OUTCOME = "%S\\t%v\\n"
WIDE_WITH_OUTCOME = "%p\\t%o\\t%d{iso}\\t%S\\t%X\\t%k\\t%v\\t%h\\n"


class ConsumedRecord(NamedTuple):
    """A record and where it stood; what became of it only where that was asked for."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    outcome: str | None = None
    transactional_id: str | None = None


Part = Callable[[ConsumedRecord], bytes]


class RecordWriter(NamedTuple):
    """Bytes before the first record, for each record, between two, and after the last."""

    before: bytes
    write: Part
    between: bytes
    after: bytes


def check_record_format(name: str) -> str:
    """A format in which records are written, or a template with a token; raises ValueError for the rest."""
    if name in FORMATS or any(token.letter for token in tokens(name)):
        return name
    raise ValueError(
        f"unknown record format {name!r}: one of {', '.join(FORMATS)}, or a template such as '%v\\n'"
    )


def asks_for_outcome(format_name: str) -> bool:
    """Whether a template tells what became of a record."""
    return format_name not in FORMATS and any(token.letter in _OF_OUTCOME for token in tokens(format_name))


def record_writer(
    format_name: str, zone: tzinfo | None = UTC, *, with_outcome: bool = False, escaped: bool = False
) -> RecordWriter:
    """The writer of a format's name or template; raises ValueError for a token that does not exist.

    `escaped`: control characters of keys, values, headers and names are, line ends and tabs too. In JSON they
    are so anyway.
    """
    if format_name == "jsonl":
        return RecordWriter(b"", lambda r: _json_line(r, zone) + b"\n", b"", b"")
    if format_name == "json":
        return RecordWriter(b"[", lambda r: b"\n  " + _json_line(r, zone), b",", b"\n]\n")
    if format_name == "csv":
        header = b"topic,partition,offset,timestamp,key,value,headers"
        header += b",outcome,transactional_id\n" if with_outcome else b"\n"
        return RecordWriter(header, lambda r: _csv_line(r, zone, escaped), b"", b"")
    templates = {"text": TEXT, "wide": WIDE}
    if with_outcome:
        templates = {"text": TEXT_WITH_OUTCOME, "wide": WIDE_WITH_OUTCOME}
    parts = parse_template(templates.get(format_name, format_name), zone, escaped=escaped)
    header = b""
    if format_name == "wide":
        outcome = b"OUTCOME\tTRANSACTIONAL-ID\t" if with_outcome else b""
        header = b"PARTITION\tOFFSET\tTIMESTAMP\t" + outcome + b"KEY\tVALUE\tHEADERS\n"
    return RecordWriter(header, lambda r: b"".join([part(r) for part in parts]), b"", b"")


def parse_template(template: str, zone: tzinfo | None = UTC, *, escaped: bool = False) -> list[Part]:
    """The parts of a template, each a function from a record to bytes."""
    return [_part(token, zone, escaped) for token in tokens(template)]


class Token(NamedTuple):
    """A letter after `%` with what stands in braces behind it, or (letter "") literal text."""

    letter: str
    argument: str


def tokens(template: str) -> list[Token]:
    """Cut a template into literals and tokens; braces nest."""
    found: list[Token] = []
    literal = ""
    i = 0
    while i < len(template):
        c = template[i]
        i += 1
        if c == "\\" and i < len(template):
            if template[i] == "x":
                literal += _hex_escape(template[i + 1 : i + 3])
                i += 3
            else:
                literal += _ESCAPES.get(template[i], "\\" + template[i])
                i += 1
        elif c == "%" and i < len(template) and template[i] == "%":
            literal += "%"
            i += 1
        elif c == "%":
            if i == len(template) or template[i] not in (*"tpokvhde", *_OF_OUTCOME):
                known = "%t %p %o %k %v %h %d %e %S %X %%"
                raise ValueError(f"no such token: %{template[i : i + 1]} (one of {known})")
            letter = template[i]
            i += 1
            argument = ""
            if i < len(template) and template[i] == "{":
                end = _closing(template, i)
                argument = template[i + 1 : end]
                i = end + 1
            if literal:
                found.append(Token("", literal))
                literal = ""
            found.append(Token(letter, argument))
        else:
            literal += c
    if literal:
        found.append(Token("", literal))
    return found


def _hex_escape(digits: str) -> str:
    try:
        return chr(int(digits, 16))
    except ValueError:
        raise ValueError(f"not two hexadecimal digits: \\x{digits}") from None


def _closing(template: str, opening: int) -> int:
    depth = 0
    for i in range(opening, len(template)):
        depth += {"{": 1, "}": -1}.get(template[i], 0)
        if depth == 0:
            return i
    raise ValueError(f"template without its closing brace: {template!r}")


def _part(token: Token, zone: tzinfo | None, escaped: bool) -> Part:
    letter, argument = token
    if letter == "":
        literal = argument.encode()
        return lambda _: literal
    if letter in "kv":
        encode = encoder(argument, escaped)
        return (lambda r: encode(r.key)) if letter == "k" else (lambda r: encode(r.value))
    if letter == "h":
        return _headers(argument, escaped)
    if letter == "d":
        return _timestamp(argument, zone)
    if argument:
        raise ValueError(f"%{letter} takes no {{{argument}}}")
    name = encoder("", escaped)
    if letter == "t":
        return lambda r: name(r.topic.encode())
    if letter == "p":
        return lambda r: b"%d" % r.partition
    if letter == "o":
        return lambda r: b"%d" % r.offset
    if letter == "S":
        return lambda r: (r.outcome or "-").encode()
    if letter == "X":
        return lambda r: name((r.transactional_id or "-").encode())
    return lambda r: b"%d" % r.leader_epoch


def encoder(argument: str, escaped: bool = False) -> Callable[[bytes | None], bytes]:
    """How keys and values are written: as they are or escaped, {hex} or {base64}. Null is nothing."""
    if argument == "" and escaped:
        return lambda data: escape_bytes(data or b"")
    if argument == "":
        return lambda data: data or b""
    if argument == "hex":
        return lambda data: binascii.hexlify(data or b"")
    if argument == "base64":
        return lambda data: base64.b64encode(data or b"")
    raise ValueError(f"no such encoding: {{{argument}}} (one of {{hex}} {{base64}})")


def _headers(argument: str, escaped: bool) -> Part:
    inner = tokens(argument) if argument else [Token("k", ""), Token("", "="), Token("v", "")]
    parts: list[Callable[[str, bytes | None], bytes]] = []
    for letter, text in inner:
        if letter == "":
            literal = text.encode()
            parts.append(lambda _k, _v, literal=literal: literal)  # type: ignore[misc]
        elif letter in "kv":
            encode = encoder(text, escaped)
            if letter == "k":
                parts.append(lambda k, _v, encode=encode: encode(k.encode()))  # type: ignore[misc]
            else:
                parts.append(lambda _k, v, encode=encode: encode(v))  # type: ignore[misc]
        else:
            raise ValueError(f"%{letter} is not part of a header (one of %k %v)")
    between = b"" if argument else b","
    return lambda r: between.join([b"".join([part(k, v) for part in parts]) for k, v in r.headers])


def _timestamp(argument: str, zone: tzinfo | None) -> Part:
    if argument == "":
        return lambda r: b"%d" % r.timestamp_ms
    if argument == "iso":
        return lambda r: (format_time(r.timestamp_ms, zone) or "-").encode()
    if argument.startswith("strftime[") and argument.endswith("]"):
        pattern = argument.removeprefix("strftime[").removesuffix("]")
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        return lambda r: (
            (epoch + timedelta(milliseconds=r.timestamp_ms)).astimezone(zone).strftime(pattern).encode()
        )
    raise ValueError(f"no such time format: {{{argument}}} (one of {{iso}} {{strftime[%F %T]}})")


def readable(data: bytes | None) -> Any:
    """Bytes in JSON: text where they are UTF-8, else {"base64": ...}; null stays null."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def record_object(record: ConsumedRecord, zone: tzinfo | None = UTC) -> dict[str, Any]:
    """A record as `jsonl` shows it, and as `produce -f jsonl` takes it back."""
    outcome = (
        {}
        if record.outcome is None
        else {"outcome": record.outcome, "transactional_id": record.transactional_id}
    )
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": format_time(record.timestamp_ms, zone),
        "key": readable(record.key),
        "value": readable(record.value),
        "headers": [[name, readable(value)] for name, value in record.headers],
        **outcome,
    }


def _json_line(record: ConsumedRecord, zone: tzinfo | None) -> bytes:
    return json.dumps(record_object(record, zone), ensure_ascii=False).encode()


def _csv_line(record: ConsumedRecord, zone: tzinfo | None, escaped: bool) -> bytes:
    return csv_line(list(record_object(record, zone).values()), escaped).encode()
