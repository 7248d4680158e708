"""Tables of Spark's catalog: their options are kept in their columns."""

import json

import pytest
from pyspark.sql.types import IntegerType, StringType, StructType

from odradek.spark.options import OptionError, check_table, sink_options, source_options
from odradek.spark.tables import Column, columns_of, kept_in, made_with, table_columns, table_schema, wanted

CLUSTER = {"kafka.bootstrap.servers": "x"}
READ = {**CLUSTER, "subscribe": "a"}
BOTH = {**READ, "topic": "b", "startingOffsets": "earliest", "sinkId": "s"}


def test_a_table_that_is_made_is_told_from_a_dataframe() -> None:
    assert made_with(READ) is None
    asked = {"provider": "odradek", "owner": "me", **READ, **{f"option.{name}": READ[name] for name in READ}}
    assert made_with(asked) == READ
    assert made_with({"provider": "odradek"}) == {}


def test_the_options_of_a_table_go_through_its_columns() -> None:
    kept = StructType.fromJson(json.loads(table_schema(BOTH).json()))
    assert kept_in(kept) == BOTH
    assert kept_in(StructType().add("value", StringType())) is None


def test_a_table_that_can_be_written_has_texts() -> None:
    assert table_columns(READ) == columns_of({}), "as a DataFrame has them"
    assert table_columns(BOTH) == {**columns_of({}), "key": "string", "value": "string"}
    only_written = table_columns({**CLUSTER, "topic": "b"})
    assert list(only_written) == ["key", "value", "topic", "partition", "headers"]
    assert (only_written["key"], only_written["value"]) == ("string", "string")


def test_a_table_serves_readers_and_writers_each_with_their_options() -> None:
    source = source_options({}, streaming=False, of_table=BOTH)
    assert source.chosen.subscribe == ("a",)
    assert source_options({"subscribe": "z"}, streaming=False, of_table=BOTH).chosen.subscribe == ("z",)
    sink = sink_options({"sinkId": "t"}, of_table=BOTH)
    assert (sink.topic, sink.sink) == ("b", "t")


def test_what_cannot_be_meant_is_told_when_a_table_is_made() -> None:
    check_table(BOTH)
    for given, told in (
        ({**CLUSTER, "subscibe": "a"}, "unknown option subscibe: did you mean subscribe"),
        ({"subscribe": "a"}, "kafka.bootstrap.servers is missing"),
        ({**READ, "startingOffsets": "latest"}, "reads nothing in a batch"),
        ({**CLUSTER, "topic": "b", "kafka.acks": "0"}, "may lose records"),
    ):
        with pytest.raises(OptionError, match=told):
            check_table(given)
    for options in (source_options, sink_options):
        with pytest.raises(OptionError, match="if the table has columns of its own"):
            options({}, **({"streaming": False} if options is source_options else {}))


def test_columns_that_are_asked_for_are_read_as_texts_or_bytes() -> None:
    assert wanted(table_schema(READ), with_headers=False) is None
    assert wanted(table_schema({**READ, "includeHeaders": "true"}), with_headers=True) is None
    few = StructType().add("value", StringType()).add("partition", IntegerType())
    assert wanted(few, with_headers=False) == (Column("value", True), Column("partition", False))
    for name, told in (
        ("value", "it must be binary or string"),
        ("price", "it must be one of key, value"),
    ):
        with pytest.raises(ValueError, match=told):
            wanted(StructType().add(name, IntegerType()), with_headers=False)
