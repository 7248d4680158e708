"""Topics as tables of Spark's catalog, and what an error looks like there."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.spark.test_sink import Committed, Send

Create = Callable[..., str]


@pytest.fixture
def create(spark: SparkSession, bootstrap: str, unique: Callable[[str], str]) -> Iterator[Create]:
    made: list[str] = []

    def run(columns: str = "", **given: str) -> str:
        name = unique("table").replace("-", "_").replace(".", "_")
        options = {"kafka.bootstrap.servers": bootstrap, **given}
        told = ", ".join(f"`{key}` '{value}'" for key, value in options.items())
        spark.sql(f"CREATE TABLE {name} {columns} USING odradek OPTIONS ({told})")
        made.append(name)
        return name

    yield run
    for name in made:
        spark.sql(f"DROP TABLE {name}")


def test_a_table_of_a_topic_is_read(spark: SparkSession, create: Create, topic: str, send: Send) -> None:
    send(topic, [(b"k", str(i).encode()) for i in range(20)])
    table = create(subscribe=topic)
    assert spark.table(table).schema["value"].dataType.simpleString() == "binary"
    (found,) = spark.sql(f"SELECT count(*), max(offset), min(cast(value AS string)) FROM {table}").collect()
    assert tuple(found) == (20, 19, "0")
    limited = f'WITH (startingOffsets = \'{{"{topic}": {{"0": 15}}}}\')'
    assert spark.sql(f"SELECT * FROM {table} {limited}").count() == 5


def test_a_table_of_a_topic_is_written_with_texts_and_read_back(
    spark: SparkSession, create: Create, topic: str, committed: Committed, tmp_path: Path
) -> None:
    table = create(subscribe=topic, topic=topic)
    spark.sql(f"INSERT INTO {table} (key, value) VALUES ('a', '1'), (NULL, '2')")
    spark.range(3, 5).selectExpr("cast(id as string) value").writeTo(table).append()
    spark.sql("SELECT x'00FF80' AS value").writeTo(table).append()
    found = committed(topic)
    assert sorted((m.key() or b"", m.value()) for m in found) == [
        (b"", b"\x00\xff\x80"),
        *((b"", str(i).encode()) for i in (2, 3, 4)),
        (b"a", b"1"),
    ]
    rows = spark.sql(f"SELECT value FROM {table} WHERE value < '5' AND value >= '1' ORDER BY value").collect()
    assert [row.value for row in rows] == ["1", "2", "3", "4"]
    (odd,) = spark.sql(f"SELECT cast(value AS binary) b FROM {table} WHERE hex(value) = '00FF80'").collect()
    assert bytes(odd.b) == b"\x00\xff\x80", "bytes that are no text come through unchanged"

    (
        spark.readStream.option("startingOffsets", "earliest")
        .table(table)
        .select("key", "value")
        .writeStream.option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .toTable(table)
        .awaitTermination(60)
    )
    assert len(committed(topic)) == 10, "a stream from a table into a table"


def test_errors_of_tables_tell_what_to_do_first(spark: SparkSession, create: Create, topic: str) -> None:
    def told(statement: Callable[[], object]) -> str:
        with pytest.raises(PySparkException) as refused:
            statement()
        message = str(refused.value)
        assert message.index("OptionError: ") < message.index("Traceback (most recent call last)")
        return message.split("OptionError: ")[1].splitlines()[0]

    assert told(lambda: create(subscibe=topic)) == "unknown option subscibe: did you mean subscribe?"
    table = create("(key STRING, value STRING)", subscribe=topic)
    assert "Make it without columns" in told(lambda: spark.sql(f"SELECT * FROM {table}").collect())
    written = create(topic=topic)
    assert told(lambda: spark.sql(f"SELECT * FROM {written}").collect()).startswith("no topics to read")


def test_an_error_of_a_stream_begins_with_its_cause(
    spark: SparkSession, options: dict[str, str], tmp_path: Path
) -> None:
    """One that Spark finds when it makes the reader, too: it used to tell of a variable of its own."""
    query = (
        spark.readStream.format("odradek")
        .options(**options)
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    with pytest.raises(PySparkException) as refused:
        query.awaitTermination(60)
    message = str(refused.value)
    assert message.index("OptionError: no topics to read:") < message.index("Traceback")
    assert "UnboundLocalError" not in message
