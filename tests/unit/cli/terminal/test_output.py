"""Tables and their other forms."""

import json

import pytest

from odradek.cli.terminal.output import Section, Table, check_format, columns, render_sections, render_table

TABLE = Table(
    columns("TOPIC PARTITIONS# REPLICAS# ID+"),
    [["orders", 12, 3, "a"], ["x", None, 1, "b"], ['we"ird,\n', 1, [], None]],
)


def test_text_is_aligned_with_numbers_right_and_unknown_as_a_dash() -> None:
    assert render_table(TABLE, "text") == (
        "TOPIC      PARTITIONS  REPLICAS\n"
        "orders             12         3\n"
        "x                   -         1\n"
        'we"ird,\\n           1         -\n'
    )


def test_wide_shows_every_column() -> None:
    assert render_table(TABLE, "wide").splitlines()[0] == "TOPIC      PARTITIONS  REPLICAS  ID"


def test_a_table_without_rows_still_has_its_header() -> None:
    assert render_table(Table(columns("GROUP STATE"), []), "text") == "GROUP  STATE\n"


def test_bytes_are_in_units_for_a_person_and_exact_for_a_program() -> None:
    sizes = [0, 1023, 1024, 1_048_560, 1_572_864, 5 << 40, None]
    table = Table(columns("SIZE%"), [[size] for size in sizes])
    shown = ["0 B", "1023 B", "1.0 KiB", "1.0 MiB", "1.5 MiB", "5.0 TiB", "-"]
    assert [line.strip() for line in render_table(table, "text").splitlines()] == ["SIZE", *shown]
    assert render_table(table, "wide") == render_table(table, "text")
    assert [row["size"] for row in json.loads(render_table(table, "json"))] == sizes
    assert render_table(table, "csv").split("\n")[1:-1] == ["" if s is None else str(s) for s in sizes]


def test_json_and_json_lines_hold_every_column_and_null_for_unknown() -> None:
    rows = json.loads(render_table(TABLE, "json"))
    assert rows[1] == {"topic": "x", "partitions": None, "replicas": 1, "id": "b"}
    assert [json.loads(line) for line in render_table(TABLE, "jsonl").splitlines()] == rows


def test_csv_quotes_what_needs_it() -> None:
    assert render_table(TABLE, "csv") == (
        'topic,partitions,replicas,id\norders,12,3,a\nx,,1,b\n"we""ird,\n",1,[],\n'
    )


def test_a_template_names_columns() -> None:
    assert render_table(TABLE, "{topic}\\t{partitions}") == 'orders\t12\nx\t-\nwe"ird,\\n\t1\n'
    with pytest.raises(ValueError, match="no column 'nope' in the template: one of topic, partitions"):
        render_table(TABLE, "{nope}")


def test_misspelt_formats_are_no_templates() -> None:
    assert check_format("jsonl") == "jsonl"
    assert check_format("{topic}") == "{topic}"
    with pytest.raises(ValueError, match="unknown format 'jsn': one of text, wide, json"):
        check_format("jsn")


def test_sections_are_blocks_in_text_and_one_object_in_json() -> None:
    sections = [
        Section("topic", {"topic": "t", "internal": False}),
        Section("partitions", Table(columns("PARTITION# LEADER#"), [[0, 1]])),
        Section("configs", Table(columns("NAME VALUE"), [])),
    ]
    assert render_sections(sections, "text") == (
        "TOPIC     t\nINTERNAL  false\n\nPARTITION  LEADER\n        0       1\n"
    )
    assert json.loads(render_sections(sections, "json")) == {
        "topic": "t",
        "internal": False,
        "partitions": [{"partition": 0, "leader": 1}],
        "configs": [],
    }
