"""The streaming reader as Spark's driver calls it, without Spark: what it refuses, and when it waits."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from odradek.core.types import TopicPartition
from odradek.spark.options import source_options
from odradek.spark.planning import OffsetRange
from odradek.spark.process import client_of
from odradek.spark.reading import DataLossError, read_ranges
from odradek.spark.source import StreamReader, TaskRanges
from tests.support.command import odradek
from tests.support.topics import create_topic

Send = Callable[..., None]
ALL = ReadAllAvailable()


@pytest.fixture
def reader(bootstrap: str, topic: str) -> Callable[..., StreamReader]:
    def make(**more: str) -> StreamReader:
        given = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
        return StreamReader(source_options({**given, **more}, streaming=True))

    return make


def at(topic: str, **offsets: Any) -> dict[str, Any]:
    return {topic: {name.removeprefix("p"): offset for name, offset in offsets.items()}}


def test_offsets_of_another_cluster_are_refused(reader: Callable[..., StreamReader], topic: str) -> None:
    mine = reader().initialOffset()
    assert reader().latestOffset(mine, ALL) == mine
    with pytest.raises(
        DataLossError, match=r"the checkpoint's offsets are of the cluster elsewhere, and .* is"
    ):
        reader().latestOffset({**mine, "@cluster": "elsewhere"}, ALL)


def test_a_partition_that_is_gone_is_told(reader: Callable[..., StreamReader], topic: str) -> None:
    before = at(topic, p0=0, p7=3)
    with pytest.raises(DataLossError, match=f"{topic}-7 was read before and is not there any more"):
        reader().latestOffset(before, ALL)
    after = reader(failOnDataLoss="false").latestOffset(before, ALL)
    assert after[topic] == {"0": 0}


def test_a_topic_that_was_made_anew_is_told(
    reader: Callable[..., StreamReader], topic: str, send: Send
) -> None:
    send(topic, [(None, b"x")])
    with pytest.raises(DataLossError, match=f"{topic}-0 ends at offset 1, and was read up to 9 before"):
        reader().latestOffset(at(topic, p0=9), ALL)


def test_few_records_are_waited_for_but_not_for_ever(
    reader: Callable[..., StreamReader], topic: str, send: Send
) -> None:
    patient = reader(minOffsetsPerTrigger="10", maxTriggerDelay="500ms")
    start = patient.initialOffset()
    send(topic, [(None, b"x")] * 3)
    assert patient.latestOffset(start, ALL) == start
    time.sleep(0.6)
    assert patient.latestOffset(start, ALL)[topic] == {"0": 3}
    send(topic, [(None, b"x")] * 20)
    assert patient.latestOffset(start, ALL)[topic] == {"0": 23}, "there is enough"


def test_a_limit_ends_a_batch_early(reader: Callable[..., StreamReader], topic: str, send: Send) -> None:
    limited = reader(maxOffsetsPerTrigger="4")
    send(topic, [(None, b"x")] * 10)
    assert limited.getDefaultReadLimit() == ReadMaxRows(4)
    assert limited.latestOffset(limited.initialOffset(), ReadMaxRows(4))[topic] == {"0": 4}
    assert limited.reportLatestOffset()[topic] == {"0": 10}


def test_what_will_never_come_is_not_waited_for(bootstrap: str, topic: str, send: Send) -> None:
    send(topic, [(None, b"x")] * 5)
    wanted = OffsetRange(TopicPartition(topic, 0), 2, 9)

    def rows(**more: str) -> int:
        given = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, **more}
        options = source_options(given, streaming=False)
        return sum(batch.num_rows for batch in read_ranges(client_of(options.connecting), [wanted], options))

    with pytest.raises(
        DataLossError, match=f"{topic}-0 ends at offset 5, and offsets up to 8 were to be read"
    ):
        rows()
    assert rows(failOnDataLoss="false") == 3


def test_a_topic_that_is_deleted_is_told_or_left_out(
    bootstrap: str, topic: str, make_topic: Callable[..., str], send: Send
) -> None:
    other = make_topic()
    send(topic, [(None, b"x")] * 3)
    send(other, [(None, b"x")] * 4)

    def both(**more: str) -> StreamReader:
        given = {"kafka.bootstrap.servers": bootstrap, "subscribe": f"{topic},{other}", **more}
        return StreamReader(source_options({**given, "startingOffsets": "earliest"}, streaming=True))

    def planned(reader: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[OffsetRange]:
        parts = reader.partitions(start, end)
        return [wanted for part in parts if isinstance(part, TaskRanges) for wanted in part.wanted]

    strict, loose = both(), both(failOnDataLoss="false")
    start = strict.initialOffset()
    end = strict.latestOffset(start, ALL)
    whole = [OffsetRange(TopicPartition(topic, 0), 0, 3), OffsetRange(TopicPartition(other, 0), 0, 4)]
    assert sorted(planned(strict, start, end)) == sorted(whole)
    assert odradek("topic", "delete", other, "-y", "-b", bootstrap).code == 0
    for ask in (lambda: strict.latestOffset(end, ALL), lambda: strict.partitions(start, end)):
        with pytest.raises(DataLossError, match=f"{other}-0 was read before and is not there any more"):
            ask()
    assert set(loose.latestOffset(end, ALL)) == {topic, "@cluster", "@topics"}
    assert planned(loose, start, end) == whole[:1], "a batch that was planned before"


def test_a_topic_that_was_made_anew_is_known_by_its_id(
    reader: Callable[..., StreamReader], bootstrap: str, topic: str, send: Send
) -> None:
    send(topic, [(None, b"x")] * 3)
    start = reader().latestOffset(reader().initialOffset(), ALL)
    assert odradek("topic", "delete", topic, "-y", "-b", bootstrap).code == 0
    create_topic(bootstrap, topic)
    send(topic, [(None, b"x")] * 5)
    with pytest.raises(DataLossError, match=f"the topic {topic} was deleted and made anew since it was read"):
        reader().latestOffset(start, ALL)
    loose = reader(failOnDataLoss="false")
    end = loose.latestOffset(start, ALL)
    assert end[topic] == {"0": 5}
    (part,) = loose.partitions(start, end)
    assert isinstance(part, TaskRanges)
    assert part.wanted == (OffsetRange(TopicPartition(topic, 0), 0, 5),), "from its beginning"


def test_a_topic_that_is_deleted_while_a_task_reads_is_told(bootstrap: str, topic: str) -> None:
    gone = OffsetRange(TopicPartition(topic, 0), 2, 9)
    assert odradek("topic", "delete", topic, "-y", "-b", bootstrap).code == 0

    def rows(**more: str) -> int:
        given = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, **more}
        options = source_options({**given, "kafka.default.api.timeout.ms": "300"}, streaming=True)
        return sum(batch.num_rows for batch in read_ranges(client_of(options.connecting), [gone], options))

    with pytest.raises(DataLossError, match=f"{topic}-0 was deleted, and offsets 2 to 8 were to be read"):
        rows()
    assert rows(failOnDataLoss="false") == 0
