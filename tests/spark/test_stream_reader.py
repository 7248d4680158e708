"""The streaming reader as Spark's driver calls it, without Spark: what it refuses, and when it waits."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import confluent_kafka
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from odradek.client.fetching import Fetched, PartitionFetcher
from odradek.core.types import TopicPartition
from odradek.spark.ledger.ledger import HISTORY_TOPIC, LEDGER_TOPIC
from odradek.spark.ledger.ledger_log import ensure_topics
from odradek.spark.options import source_options
from odradek.spark.process import client_of
from odradek.spark.source.planning import OffsetRange
from odradek.spark.source.ranges import DataLossError, StuckError, read_ranges
from odradek.spark.source.readers import StreamReader, TaskRanges
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


def wanted(parts: Sequence[Any]) -> list[OffsetRange]:
    return [found for part in parts if isinstance(part, TaskRanges) for found in part.wanted]


def test_offsets_of_another_cluster_are_refused(reader: Callable[..., StreamReader], topic: str) -> None:
    mine = reader().initialOffset()
    assert reader().latestOffset(mine, ALL) == mine
    with pytest.raises(DataLossError, match=r"the checkpoint belongs to the cluster elsewhere, but .* is"):
        reader().latestOffset({**mine, "@cluster": "elsewhere"}, ALL)


def test_a_partition_that_is_gone_is_told(reader: Callable[..., StreamReader], topic: str) -> None:
    before = at(topic, p0=0, p7=3)
    with pytest.raises(DataLossError, match=f"{topic}-7 was read before, but does not exist any more"):
        reader().latestOffset(before, ALL)
    after = reader(failOnDataLoss="false").latestOffset(before, ALL)
    assert after[topic] == {"0": 0}


def test_a_topic_that_was_made_anew_is_told(
    reader: Callable[..., StreamReader], topic: str, send: Send
) -> None:
    send(topic, [(None, b"x")])
    with pytest.raises(DataLossError, match=f"{topic}-0 ends at offset 1, but was read up to 9 before"):
        reader().latestOffset(at(topic, p0=9), ALL)


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_a_partition_that_ends_before_what_was_read_is_told_whatever_the_trigger(
    reader: Callable[..., StreamReader], topic: str, send: Send, isolation: str
) -> None:
    send(topic, [(None, b"x")] * 5)

    def available_now(**more: str) -> StreamReader:
        made = reader(isolation=isolation, **more)
        made.prepareForTriggerAvailableNow()
        return made

    told = f"{topic}-0 ends at offset 5, but was read up to 9 before"
    with pytest.raises(DataLossError, match=told):
        available_now().latestOffset(at(topic, p0=9), ALL)
    end = available_now(failOnDataLoss="false").latestOffset(at(topic, p0=9), ALL)
    assert end[topic] == {"0": 5}
    assert reader(failOnDataLoss="false").partitions(at(topic, p0=9), end) == []
    send(topic, [(None, b"x")] * 7)
    (part,) = reader().partitions(end, available_now().latestOffset(end, ALL))
    assert isinstance(part, TaskRanges)
    assert part.wanted == (OffsetRange(TopicPartition(topic, 0), 5, 12),), "nothing is passed over"


def test_what_was_read_of_an_open_transaction_is_no_loss(
    reader: Callable[..., StreamReader], topic: str, bootstrap: str, unique: Callable[[str], str]
) -> None:
    """At read_committed it ends before what was read at read_uncommitted."""
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": unique("open")})
    producer.init_transactions(20)
    producer.begin_transaction()
    for _ in range(4):
        producer.produce(topic, b"x")
    producer.flush(20)
    start = reader(isolation="read_uncommitted").latestOffset(reader().initialOffset(), ALL)
    assert start[topic] == {"0": 4}
    committed = reader()
    assert committed.latestOffset(start, ALL) == start
    committed.prepareForTriggerAvailableNow()
    assert committed.latestOffset(start, ALL) == start
    producer.abort_transaction(20)


def test_a_new_partition_that_does_not_begin_at_0_is_told(
    bootstrap: str, make_topic: Callable[..., str], send: Send
) -> None:
    first, second = make_topic(), make_topic()
    send(second, [(None, b"x")] * 9)
    assert odradek("topic", "trim", second, "-o", "4", "-y", "-b", bootstrap).code == 0

    def both(**more: str) -> StreamReader:
        given = {"kafka.bootstrap.servers": bootstrap, "subscribe": f"{first},{second}", **more}
        return StreamReader(source_options({**given, "startingOffsets": "earliest"}, streaming=True))

    start = at(first, p0=0)
    with pytest.raises(
        DataLossError, match=f"{second}-0 is new to this query and begins at offset 4, not at 0"
    ):
        both().latestOffset(start, ALL)
    loose = both(failOnDataLoss="false")
    assert loose.latestOffset(start, ReadMaxRows(2))[second] == {"0": 6}, "what is gone is not counted"
    end = loose.latestOffset(start, ALL)
    planned = [OffsetRange(TopicPartition(second, 0), 4, 9)]
    assert wanted(loose.partitions(start, end)) == planned
    assert odradek("topic", "trim", second, "-o", "7", "-y", "-b", bootstrap).code == 0
    assert wanted(loose.partitions(start, end)) == planned, "the batch that is run again is the same"
    assert loose.latestOffset(end, ALL) == end, "where it began is no news"
    send(second, [(None, b"x")])
    following = both().latestOffset(end, ALL)
    assert wanted(both().partitions(end, following)) == [OffsetRange(TopicPartition(second, 0), 9, 10)]
    assert "@starts" not in following


def test_a_new_partition_begins_at_0_however_late_its_batch_is_run_again(
    bootstrap: str, make_topic: Callable[..., str], send: Send
) -> None:
    """Retention between plan and second run: the same batch, and whoever reads it tells what is missing."""
    first, second = make_topic(), make_topic()
    send(second, [(None, b"x")] * 9)
    given = {"kafka.bootstrap.servers": bootstrap, "subscribe": f"{first},{second}"}
    both = StreamReader(source_options(given, streaming=True))
    start = at(first, p0=0)
    end = both.latestOffset(start, ALL)
    planned = [OffsetRange(TopicPartition(second, 0), 0, 9)]
    assert wanted(both.partitions(start, end)) == planned
    assert odradek("topic", "trim", second, "-o", "4", "-y", "-b", bootstrap).code == 0
    (part,) = both.partitions(start, end)
    assert wanted([part]) == planned
    with pytest.raises(DataLossError, match=f"{second}-0 now begins at offset 4"):
        list(both.read(part))


def test_offsets_of_topics_that_are_not_read_are_another_querys(
    reader: Callable[..., StreamReader], topic: str, make_topic: Callable[..., str]
) -> None:
    other = make_topic()
    with pytest.raises(DataLossError) as told:
        reader().latestOffset(at(other, p0=0), ALL)
    assert f"the checkpoint has offsets of {other}-0, but this query reads subscribe={topic}" in str(
        told.value
    )
    assert "is it the checkpoint of another query?" in str(told.value)
    assert reader(failOnDataLoss="false").latestOffset(at(other, p0=0), ALL)[topic] == {"0": 0}


def test_a_pattern_leaves_out_internal_topics_and_the_ledger(
    bootstrap: str, topic: str, send: Send, unique: Callable[[str], str]
) -> None:
    client = client_of(
        source_options({"kafka.bootstrap.servers": bootstrap, "subscribe": "x"}, streaming=True).connecting
    )
    client.call(ensure_topics, client.client)
    committer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": unique("g")})
    committer.commit(offsets=[confluent_kafka.TopicPartition(topic, 0, 0)], asynchronous=False)
    committer.close()

    def found(**more: str) -> set[str]:
        given = {"kafka.bootstrap.servers": bootstrap, **more}
        offsets = StreamReader(source_options(given, streaming=True)).initialOffset()
        return {name for name in offsets if not name.startswith("@")}

    internal = {"__consumer_offsets", LEDGER_TOPIC, HISTORY_TOPIC}
    assert topic in found(subscribePattern=".*")
    assert found(subscribePattern=".*") & internal == set()
    assert found(subscribePattern=".*", **{"kafka.exclude.internal.topics": "false"}) >= internal
    assert found(subscribe=HISTORY_TOPIC) == {HISTORY_TOPIC}, "by its name"


def test_few_records_are_waited_for_but_not_by_the_first_batch_and_not_for_ever(
    reader: Callable[..., StreamReader], topic: str, send: Send
) -> None:
    patient = reader(minOffsetsPerTrigger="10", maxTriggerDelay="500ms")
    start = patient.initialOffset()
    assert patient.latestOffset(start, ALL) == start
    send(topic, [(None, b"x")] * 3)
    start = patient.latestOffset(start, ALL)
    assert start[topic] == {"0": 3}, "the first waits for nothing, as the official connector's"
    send(topic, [(None, b"x")] * 3)
    assert patient.latestOffset(start, ALL) == start
    time.sleep(0.6)
    start = patient.latestOffset(start, ALL)
    assert start[topic] == {"0": 6}
    send(topic, [(None, b"x")] * 20)
    assert patient.latestOffset(start, ALL)[topic] == {"0": 26}, "there is enough"


def test_a_limit_ends_a_batch_early(reader: Callable[..., StreamReader], topic: str, send: Send) -> None:
    limited = reader(maxOffsetsPerTrigger="4")
    send(topic, [(None, b"x")] * 10)
    assert limited.getDefaultReadLimit() == ReadMaxRows(4)
    assert limited.latestOffset(limited.initialOffset(), ReadMaxRows(4))[topic] == {"0": 4}
    assert limited.reportLatestOffset()[topic] == {"0": 10}


def test_what_will_never_come_is_not_waited_for(bootstrap: str, topic: str, send: Send) -> None:
    send(topic, [(None, b"x")] * 5)
    range_ = OffsetRange(TopicPartition(topic, 0), 2, 9)

    def rows(**more: str) -> int:
        given = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, **more}
        options = source_options(given, streaming=False)
        return sum(batch.num_rows for batch in read_ranges(client_of(options.connecting), [range_], options))

    with pytest.raises(
        DataLossError, match=f"{topic}-0 ends at offset 5, but offsets up to 8 are to be read"
    ):
        rows()
    assert rows(failOnDataLoss="false") == 3


def test_what_an_open_transaction_hides_is_not_waited_for_for_ever(
    bootstrap: str, topic: str, send: Send, unique: Callable[[str], str]
) -> None:
    send(topic, [(None, b"x")] * 5)
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": unique("open")})
    producer.init_transactions(20)
    producer.begin_transaction()
    for _ in range(4):
        producer.produce(topic, b"x")
    producer.flush(20)

    def rows(end: int, **more: str) -> int:
        given = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, **more}
        options = source_options(given, streaming=False)
        ranges = [OffsetRange(TopicPartition(topic, 0), 2, end)]
        return sum(batch.num_rows for batch in read_ranges(client_of(options.connecting), ranges, options))

    began = time.monotonic()
    with pytest.raises(StuckError) as told:
        rows(8, **{"kafkaConsumer.pollTimeoutMs": "700"})
    assert 0.7 <= time.monotonic() - began < 10
    assert f"{topic}-0 shows nothing at offset 5, but offsets up to 7 are to be read" in str(told.value)
    assert "Its last stable offset is 5 and its high watermark 9" in str(told.value)
    assert f"`odradek why stuck {topic}`" in str(told.value)
    assert rows(8, isolation="read_uncommitted") == 6
    threading.Timer(0.3, producer.commit_transaction, [20]).start()
    assert rows(8) == 6, "it is waited for"


def test_a_high_watermark_that_is_behind_is_not_the_end(
    bootstrap: str, topic: str, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of a new leader is for a moment."""
    send(topic, [(None, b"x")] * 5)
    fetch, late = PartitionFetcher.fetch, [True]

    async def behind(self: PartitionFetcher, offset: int) -> Fetched:
        if late:
            late.clear()
            return Fetched(b"", 2, 2, 0, [])
        return await fetch(self, offset)

    monkeypatch.setattr(PartitionFetcher, "fetch", behind)
    for loss in ("true", "false"):
        late[:] = [True]
        given = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "failOnDataLoss": loss}
        options = source_options(given, streaming=False)
        ranges = [OffsetRange(TopicPartition(topic, 0), 2, 5)]
        read = read_ranges(client_of(options.connecting), ranges, options)
        assert sum(batch.num_rows for batch in read) == 3


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
        return wanted(reader.partitions(start, end))

    strict, loose = both(), both(failOnDataLoss="false")
    start = strict.initialOffset()
    end = strict.latestOffset(start, ALL)
    whole = [OffsetRange(TopicPartition(topic, 0), 0, 3), OffsetRange(TopicPartition(other, 0), 0, 4)]
    assert sorted(planned(strict, start, end)) == sorted(whole)
    assert odradek("topic", "delete", other, "-y", "-b", bootstrap).code == 0
    for ask in (lambda: strict.latestOffset(end, ALL), lambda: strict.partitions(start, end)):
        with pytest.raises(DataLossError, match=f"{other}-0 was read before, but does not exist any more"):
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
    with pytest.raises(DataLossError, match=f"the topic {topic} was deleted and recreated since it was read"):
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

    with pytest.raises(DataLossError, match=f"{topic}-0 was deleted, but offsets 2 to 8 are to be read"):
        rows()
    assert rows(failOnDataLoss="false") == 0


def test_the_first_batch_tells_where_it_began_and_is_the_same_when_it_is_run_again(
    reader: Callable[..., StreamReader], topic: str, send: Send
) -> None:
    """Spark asks for the initial offsets again when a driver died in the first batch: by then, latest is
    somewhere else, and what the batch was to read would be passed over."""
    send(topic, [(None, b"x")] * 3)
    first = reader(startingOffsets="latest")
    start = first.initialOffset()
    send(topic, [(None, b"x")] * 4)
    end = first.latestOffset(start, ALL)
    assert end["@starts"] == {topic: {"0": 3}}
    planned = [OffsetRange(TopicPartition(topic, 0), 3, 7)]
    assert wanted(first.partitions(start, end)) == planned
    again = reader(startingOffsets="latest")
    assert wanted(again.partitions(again.initialOffset(), end)) == planned
    assert again.latestOffset(end, ALL) == end
    assert again.partitions(end, end) == []
    send(topic, [(None, b"x")])
    following = first.latestOffset(end, ALL)
    assert "@starts" not in following
    assert wanted(first.partitions(end, following)) == [OffsetRange(TopicPartition(topic, 0), 7, 8)]
