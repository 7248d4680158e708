"""Records out by template and format, and back in."""

import json
from collections.abc import Sequence

import pytest

from odradek.cli.records.record_format import ConsumedRecord, asks_for_outcome, record_object, record_writer
from odradek.cli.records.record_input import (
    InputRecord,
    UnreadableError,
    read_records,
    record_reader,
    split_records,
)

RECORD = ConsumedRecord("t", 2, 7, 5, 1250, b"k", b"v\xff", (("a", b"1"), ("b", None)))
PLAIN = ConsumedRecord("t", 0, 8, 5, 1250, None, b'he said "hi"', ())


def written(format_name: str, records: Sequence[ConsumedRecord]) -> bytes:
    writer = record_writer(format_name)
    return writer.before + writer.between.join(writer.write(r) for r in records) + writer.after


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("%t-%p@%o %e\\n", b"t-2@7 5\n"),
        ("%k=%v", b"k=v\xff"),
        ("%v{hex}|%v{base64}", b"76ff|dv8="),
        ("%h", b"a=1,b="),
        ("%h{<%k:%v{hex}>}", b"<a:31><b:>"),
        ("%d %d{iso} %d{strftime[%Y]}", b"1250 1970-01-01T00:00:01.250Z 1970"),
        ("100%%\\t\\x41", b"100%\tA"),
        ("%S %X", b"- -"),
    ],
)
def test_tokens(template: str, expected: bytes) -> None:
    assert written(template, [RECORD]) == expected


@pytest.mark.parametrize(
    ("format_name", "asks"), [("%S", True), ("%v %X\\n", True), ("%v\\n", False), ("text", False)]
)
def test_only_some_tokens_ask_what_became_of_a_record(format_name: str, asks: bool) -> None:
    assert asks_for_outcome(format_name) is asks


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("%q", "no such token: %q"),
        ("%", "no such token: %"),
        ("%v{rot13}", "no such encoding: {rot13}"),
        ("%v{hex", "closing brace"),
        ("%p{hex}", "%p takes no {hex}"),
        ("%d{go}", "no such time format"),
        ("%h{%o}", "%o is not part of a header"),
    ],
)
def test_bad_templates_are_refused(template: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("{", r"\{")):
        record_writer(template)


def test_text_is_the_value_and_null_keys_are_empty() -> None:
    assert written("text", [PLAIN]) == b'he said "hi"\n'
    assert written("wide", [PLAIN]).splitlines()[1] == b'0\t8\t1970-01-01T00:00:01.250Z\t\the said "hi"\t'


def test_json_shows_bytes_that_are_no_text_as_base64() -> None:
    assert json.loads(written("jsonl", [RECORD])) == {
        "topic": "t",
        "partition": 2,
        "offset": 7,
        "timestamp": "1970-01-01T00:00:01.250Z",
        "key": "k",
        "value": {"base64": "dv8="},
        "headers": [["a", "1"], ["b", None]],
    }


def test_json_is_an_array_also_of_nothing() -> None:
    assert json.loads(written("json", [])) == []
    assert len(json.loads(written("json", [RECORD, PLAIN]))) == 2


def test_csv_quotes_values() -> None:
    assert written("csv", [PLAIN]).splitlines()[1] == (b't,0,8,1970-01-01T00:00:01.250Z,,"he said ""hi""",[]')


def test_json_lines_come_back_as_they_went_out() -> None:
    end, read = record_reader("jsonl")
    ((piece,),) = split_records([written("jsonl", [RECORD])], end)
    assert read(piece) == InputRecord(
        key=RECORD.key, value=RECORD.value, headers=RECORD.headers, timestamp_ms=RECORD.timestamp_ms
    )
    assert record_object(RECORD)["value"] == {"base64": "dv8="}


def test_lines_are_values() -> None:
    end, read = record_reader("text")
    pieces = list(split_records([b"a\nb", b"", b"c\n", b"\nd"], end))
    assert [[read(piece).value for piece in group] for group in pieces] == [[b"a"], [b"bc"], [b""], [b"d"]]


def test_a_template_cuts_at_its_separators() -> None:
    end, read = record_reader("%k\\t%v\\n")
    assert read(b"a\tb\tc") == InputRecord(key=b"a", value=b"b\tc")
    assert end == b"\n"
    with pytest.raises(ValueError, match=r"no '\\t' in 'nothing'"):
        read(b"nothing")
    end, read = record_reader("%p,%d,%h;%k{hex}:%v{base64};;")
    assert end == b";;"
    assert read(b"3,1250,a=1;6b:dv8=") == InputRecord(
        key=b"k", value=b"v\xff", headers=(("a", b"1"),), partition=3, timestamp_ms=1_250_000
    )


@pytest.mark.parametrize("template", ["%k%v", "%o %v", "x", "%v %v", "%v{rot13}"])
def test_templates_that_cannot_be_read_are_refused(template: str) -> None:
    with pytest.raises(ValueError, match=r"template|cannot read|need text between|twice|encoding"):
        record_reader(template)


@pytest.mark.parametrize("piece", [b"{", b"[1]", b'{"key": "a"}', b'{"value": 1, "headers": 5}'])
def test_bad_json_is_shown(piece: bytes) -> None:
    _, read = record_reader("jsonl")
    with pytest.raises(ValueError, match=r"not JSON|not an object|headers must be a list"):
        read(piece)


@pytest.mark.parametrize(
    ("template", "end", "noun"), [("%k=%v\\n", b"\n", "line"), ("%k=%v;", b";", "record")]
)
def test_an_unreadable_record_is_numbered_and_those_before_it_are_given(
    template: str, end: bytes, noun: str
) -> None:
    found = read_records([end.join([b"a=1", b"b=2", b"", b"c=3"]), end], *record_reader(template))
    assert [record.key for record in next(found)] == [b"a", b"b"]
    with pytest.raises(UnreadableError, match=f"^{noun} 3: no '='"):
        next(found)
