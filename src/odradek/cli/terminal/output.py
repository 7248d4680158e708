"""What commands print on stdout: aligned tables, JSON, JSON lines, CSV, templates. Pure: rows in, text out.

Records have a format of their own (record_format.py).
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

from odradek.cli.terminal.escaping import escape_string

FORMATS = ("text", "wide", "json", "jsonl", "csv")
_ROWS_TO_MEASURE = 1000
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}


class Column(NamedTuple):
    """One column: its header in UPPER-HYPHEN, whether numbers stand in it, whether only `wide` shows it.

    `bytes`: numbers of bytes, in units that a person reads where a table is shown.
    """

    header: str
    number: bool = False
    wide: bool = False
    bytes: bool = False

    @property
    def key(self) -> str:
        """The name in JSON, CSV and templates."""
        return self.header.lower().replace("-", "_")


class Table(NamedTuple):
    """Rows under columns. None is unknown and shown as `-`."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]

    def objects(self) -> list[dict[str, Any]]:
        keys = [column.key for column in self.columns]
        return [dict(zip(keys, row, strict=True)) for row in self.rows]


class Section(NamedTuple):
    """A part of a description: a title (in JSON its key) and a table or facts."""

    title: str
    body: Table | Mapping[str, Any]


def columns(text: str) -> tuple[Column, ...]:
    """Columns from a line of headers: `#` marks numbers, `%` bytes, `+` what only `wide` shows."""
    return tuple(
        Column(word.strip("#%+"), "#" in word or "%" in word, "+" in word, "%" in word)
        for word in text.split()
    )


def check_format(name: str) -> str:
    """A format's name or a template; raises ValueError for anything else."""
    if name in FORMATS or "{" in name:
        return name
    raise ValueError(
        f"unknown format {name!r}: one of {', '.join(FORMATS)}, or a template such as '{{topic}}'"
    )


def render_table(table: Table, format_name: str, *, escaped: bool = False) -> str:
    """The whole text of a table in one of the formats."""
    return "".join(stream_table(table.columns, table.rows, format_name, escaped=escaped))


def stream_table(
    columns: Sequence[Column], rows: Iterable[Sequence[Any]], format_name: str, *, escaped: bool = False
) -> Iterator[str]:
    """The text of a table piece by piece, for more rows than fit in memory.

    `escaped`: control characters are in CSV too, line ends among them, as they always are in text.
    """
    if format_name in ("text", "wide"):
        yield from _aligned(columns, rows, format_name == "wide")
        return
    if format_name == "csv":
        yield csv_line(column.key for column in columns)
        for row in rows:
            yield csv_line(row, escaped)
        return
    keys = [column.key for column in columns]
    objects = (dict(zip(keys, row, strict=True)) for row in rows)
    if format_name == "json":
        separator = "[\n"
        for item in objects:
            yield separator + json.dumps(item, ensure_ascii=False)
            separator = ",\n"
        yield "[]\n" if separator == "[\n" else "\n]\n"
    elif format_name == "jsonl":
        for item in objects:
            yield json.dumps(item, ensure_ascii=False) + "\n"
    else:
        for item in objects:
            yield fill_template(format_name, item)


def render_sections(sections: Sequence[Section], format_name: str, *, escaped: bool = False) -> str:
    """A description of several parts. CSV, JSON lines and templates show the last table alone."""
    if format_name in ("text", "wide"):
        blocks = []
        for section in sections:
            if isinstance(section.body, Table):
                if section.body.rows:
                    blocks.append("".join(_aligned(*section.body, format_name == "wide")))
            elif section.body:
                blocks.append(_facts(section.body))
        return "\n".join(blocks)
    if format_name == "json":
        return json.dumps(sections_object(sections), indent=2, ensure_ascii=False) + "\n"
    tables = [section.body for section in sections if isinstance(section.body, Table)]
    facts = {
        key: value
        for section in sections
        if not isinstance(section.body, Table)
        for key, value in section.body.items()
    }
    if tables:
        return render_table(tables[-1], format_name, escaped=escaped)
    shown = Table([Column(key.upper()) for key in facts], [list(facts.values())])
    return render_table(shown, format_name, escaped=escaped)


def sections_object(sections: Sequence[Section]) -> dict[str, Any]:
    """A description as one JSON object: facts at the top, tables under their titles."""
    merged: dict[str, Any] = {}
    for section in sections:
        if isinstance(section.body, Table):
            merged[section.title] = section.body.objects()
        else:
            merged.update(section.body)
    return merged


def fill_template(template: str, row: Mapping[str, Any]) -> str:
    """Replace `{column}`, resolve \\n and \\t; a template without a line end gets one per row."""
    out: list[str] = []
    i = 0
    while i < len(template):
        c = template[i]
        if c == "\\" and i + 1 < len(template):
            out.append(_ESCAPES.get(template[i + 1], template[i : i + 2]))
            i += 2
        elif c == "{":
            end = template.find("}", i)
            if end < 0:
                raise ValueError(f"template without its closing brace: {template!r}")
            name = template[i + 1 : end].lower().replace("-", "_")
            if name not in row:
                raise ValueError(f"no column {name!r} in the template: one of {', '.join(row)}")
            out.append(cell(row[name]))
            i = end + 1
        else:
            out.append(c)
            i += 1
    text = "".join(out)
    return text if text.endswith("\n") else text + "\n"


def cell(value: Any) -> str:
    """A value as a table shows it."""
    if value is None or value == [] or value == ():
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(cell(item) for item in value)
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    text = str(value)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def human_bytes(count: int) -> str:
    """A number of bytes in the largest unit of which there is at least one: `1.5 MiB`."""
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        if size < 1023.95:  # what rounds to 1024.0 is one of the next
            break
        size, unit = size / 1024, larger
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"


def _aligned(columns: Sequence[Column], rows: Iterable[Sequence[Any]], wide: bool) -> Iterator[str]:
    """Widths come from the first rows; a later cell that is wider moves its own line only."""
    shown = [i for i, column in enumerate(columns) if wide or not column.wide]
    in_bytes = {i for i in shown if columns[i].bytes}

    def cells_of(row: Sequence[Any]) -> list[str]:
        return [human_bytes(row[i]) if i in in_bytes and row[i] is not None else cell(row[i]) for i in shown]

    remaining = iter(rows)
    first = [[columns[i].header for i in shown]]
    first += [cells_of(row) for row in islice(remaining, _ROWS_TO_MEASURE)]
    widths = [max(map(len, texts)) for texts in zip(*first, strict=True)]
    rights = [columns[i].number for i in shown]
    for texts in chain(first, map(cells_of, remaining)):
        cells = [
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(texts, widths, rights, strict=True)
        ]
        yield "  ".join(cells).rstrip() + "\n"


def _facts(facts: Mapping[str, Any]) -> str:
    headers = {key: key.upper().replace("_", "-") for key in facts}
    width = max(len(header) for header in headers.values())
    return "".join(f"{headers[key].ljust(width)}  {cell(value)}\n" for key, value in facts.items())


def csv_line(values: Iterable[Any], escaped: bool = False) -> str:
    """One line of CSV with its line end; unknown is empty, lists and mappings are JSON."""
    texts = ["" if value is None else _plain(value) for value in values]
    if escaped:
        texts = [escape_string(text) for text in texts]
    return (
        ",".join(
            '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\r\n') else text
            for text in texts
        )
        + "\n"
    )


def _plain(value: Any) -> str:
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        return repr(float(value))  # a duration too is a number here
    return cell(value) if isinstance(value, bool) else str(value)
