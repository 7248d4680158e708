"""A pipeline's file: what it means, and errors that tell where and what."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from odradek.cli.pipeline_example import files
from odradek.spark.pipelines.pipeline_spec import PipelineSpec, SpecError, load, parse

GOOD: dict[str, Any] = {
    "name": "p",
    "transform": "t.py",
    "cluster": {"kafka.bootstrap.servers": "localhost:9092"},
    "sources": {"orders": {"subscribe": "orders", "maxOffsetsPerTrigger": 5, "failOnDataLoss": False}},
    "sinks": {"out": {"topic": "out"}},
}


def spec(**changes: Any) -> PipelineSpec:
    return parse({**GOOD, **changes}, Path("/place"))


def test_what_is_given_is_as_spark_takes_it() -> None:
    found = spec()
    assert found.sources["orders"] == {
        "subscribe": "orders",
        "maxOffsetsPerTrigger": "5",
        "failOnDataLoss": "false",
    }
    assert found.trigger == {"processingTime": "1 seconds"}
    assert spec(trigger="available-now").trigger == {"availableNow": True}
    assert spec(trigger="500ms").trigger == {"processingTime": "500 milliseconds"}
    assert found.transform == Path("/place/t.py")
    assert found.checkpoint_of("out") == "/place/checkpoint/out"
    assert spec(checkpoint="s3://bucket/x").checkpoint_of("out") == "s3://bucket/x/out"
    assert found.group_of("out") == "p.out"
    assert found.sinks["out"].output_mode == "append"


def test_names_with_dots_need_no_quotes() -> None:
    text = 'a.b = 1\n[t]\nkafka.bootstrap.servers = "x:1"\n'
    assert spec(cluster=tomllib.loads(text)["t"]).cluster == {"kafka.bootstrap.servers": "x:1"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"sinkz": {}}, "unknown key sinkz: did you mean sinks?"),
        ({"sources": {}}, "sources is missing"),
        ({"cluster": {"x": "y"}}, '"kafka.bootstrap.servers" is missing'),
        ({"name": "a b"}, "letters, digits"),
        ({"transform": "x.scala"}, "a .py or .sql file"),
        ({"trigger": "often"}, 'such as "1s"'),
        ({"sources": {"my-orders": {}}}, "it must be an identifier"),
        ({"sources": "orders"}, "such as [sources.orders]"),
        ({"sinks": {"out": {"outputMode": "overwrite"}}}, "one of append, update, complete"),
        ({"transform": "x.sql", "sinks": {"a": {}, "b": {}}}, "one sink"),
    ],
)
def test_what_cannot_be_meant_is_told(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(SpecError) as refusal:
        spec(**changes)
    assert told in str(refusal.value)


def test_a_file_that_is_missing_or_broken_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"there is no .*pipeline\.toml"):
        load(tmp_path)
    (tmp_path / "pipeline.toml").write_text("name = ")
    with pytest.raises(SpecError, match=r"pipeline\.toml: Invalid value"):
        load(tmp_path)


@pytest.mark.parametrize("sql", [False, True])
@pytest.mark.parametrize("name", ["orders", "my orders", "7", "ü"])
def test_the_example_can_be_read(tmp_path: Path, sql: bool, name: str) -> None:
    for file, (text, _) in files(name, sql).items():
        (tmp_path / file).write_text(text)
    found = load(tmp_path)
    assert found.transform.exists()
    assert list(found.sinks) == ["enriched"]
