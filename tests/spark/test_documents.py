"""The Spark examples of the documents run as printed, except for addresses and paths."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message
from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("document", "place"), [("README.md", "shouting"), ("docs/spark.md", "/var/lib/shouting")]
)
def test_the_first_example_copies_a_topic(
    spark: SparkSession,
    bootstrap: str,
    make_topic: Callable[..., str],
    send: Callable[..., None],
    committed: Callable[[str], list[Message]],
    tmp_path: Path,
    document: str,
    place: str,
) -> None:
    found = re.findall(r"^```python\n(.*?)^```", (ROOT / document).read_text(), re.DOTALL | re.MULTILINE)
    (example,) = (text for text in found if place in text)
    source, sink = make_topic(2), make_topic(1)
    send(source, [(b"ada", b"quiet")])
    for shown, here in [
        ("localhost:9092", bootstrap),
        ('"orders"', f'"{source}"'),
        ('"shouted"', f'"{sink}"'),
        (f'"{place}"', f'"{tmp_path}"'),
    ]:
        assert shown in example
        example = example.replace(shown, here)
    names: dict[str, Any] = {}
    exec(example, names)
    query = names["query"]
    if query.isActive:
        query.processAllAvailable()
        send(source, [(b"ada", b"quiet")])  # it has begun at the end of the topic
        query.processAllAvailable()
        query.stop()
    assert {message.value() for message in committed(sink)} == {b"QUIET"}
