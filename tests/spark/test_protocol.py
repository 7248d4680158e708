"""The protocol over a real node, without Spark: what happens between its steps."""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType

from odradek.client.blocking import BlockingClient
from odradek.client.client import Client
from odradek.core.errors import KafkaError
from odradek.core.types import TopicPartition
from odradek.records import kernel
from odradek.records.header import HEADER_BYTES
from odradek.runtime.ports import free_port
from odradek.spark.ledger import ledger
from odradek.spark.ledger.deciding import Decider, WrittenBatch
from odradek.spark.ledger.finishing import LostBatchError
from odradek.spark.ledger.ledger import LedgerError, Range, Stream, SupersededError
from odradek.spark.ledger.ledger_log import LedgerLog, ensure_topics
from odradek.spark.options import OptionError, SinkOptions, sink_options
from odradek.spark.sink.tasks import Task
from odradek.spark.sink.writers import StreamWriter, Writer
from odradek.spark.source.planning import CLUSTER
from tests.spark.byhand import Query
from tests.spark.conftest import read_committed
from tests.support.command import odradek
from tests.support.node import running
from tests.support.topics import create_topic

T = TypeVar("T")


@pytest.fixture
def play(bootstrap: str, topic: str, unique: Callable[[str], str]) -> Callable[..., Any]:
    """Run a story with as many runs of one query as it takes."""

    def played(story: Callable[..., Coroutine[Any, Any, T]], runs: int = 1) -> T:
        async def main() -> T:
            async with Client(bootstrap) as client:
                await ensure_topics(client)
                await client.refresh([topic])
                stream = Stream(unique("query"), "sink")
                return await story(*(Query(client, stream, f"run{i:05d}", topic) for i in range(runs)))

        return asyncio.run(main())

    return played


@pytest.fixture
def values(bootstrap: str, topic: str) -> Callable[[], list[str]]:
    return lambda: [(message.value() or b"").decode() for message in read_committed(bootstrap, topic)]


def test_a_decided_transaction_is_not_aborted_by_hand(
    play: Callable[..., Any], values: Callable[[], list[str]], bootstrap: str
) -> None:
    async def story(query: Query) -> tuple[Query, WrittenBatch]:
        written = await query.write(0, "a", "b")
        batch = query.batch(0, written)
        query.decider.finish = nothing  # type: ignore[method-assign]
        await query.decider.commit(batch)
        assert written is not None
        refused = odradek("txn", "abort", written.transactional_id, "-y", "-b", bootstrap)
        assert refused.code == 1
        assert "has decided to commit it: 2 records would be lost" in refused.stderr
        forced = odradek("txn", "abort", written.transactional_id, "-y", "--force", "-b", bootstrap)
        assert forced.code == 0
        assert "2 decided records lost" in forced.text
        del query.decider.finish
        with pytest.raises(LostBatchError, match="2 records are lost"):
            await query.decider.commit(batch)
        return query, batch

    play(story)
    assert values() == []


def test_what_a_query_that_died_has_left_open_is_told_with_a_way_out(
    play: Callable[..., Any], values: Callable[[], list[str]], bootstrap: str, topic: str
) -> None:
    def hanging() -> tuple[dict[str, Any], str]:
        told = odradek("txn", "hanging", topic, "--older-than", "0s", "-b", bootstrap, "-f", "json")
        assert told.code == 3
        (row,) = json.loads(told.text)
        return row, told.stderr

    async def story(query: Query) -> None:
        written = await query.write(0, "a", "b")
        assert written is not None
        name = written.transactional_id
        row, told = hanging()
        assert row["of"] == f"Spark query {query.stream}, run run00000, undecided"
        assert row["transactional_id"] == name
        assert f"start the query again, or if it will not run again: odradek txn abort {name}" in told
        refused = odradek("txn", "commit", name, "-y", "-b", bootstrap)
        assert refused.code == 1
        assert "no Spark query has decided to commit it" in refused.stderr
        query.decider.finish = nothing  # type: ignore[method-assign]
        await query.decider.commit(query.batch(0, written))
        row, told = hanging()
        assert row["of"].endswith(", decided")
        assert f"start the query again, or odradek txn commit {name}" in told
        committed = odradek("txn", "commit", name, "-y", "-b", bootstrap, "-f", "json")
        assert committed.code == 0
        assert json.loads(committed.text)[0]["rows"] == 2

    play(story)
    assert values() == ["a", "b"]
    assert odradek("txn", "hanging", topic, "--older-than", "0s", "-b", bootstrap).code == 0


def test_a_decision_tells_how_long_it_took_until_the_one_before_was_visible(play: Callable[..., Any]) -> None:
    """A driver dies in between: until the next run has finished the batch, readers see a part of it."""

    async def story(first: Query, second: Query) -> None:
        decided = await first.decider.commit(first.batch(0, await first.write(0, "0")))
        assert decided.visible_ms is None
        first.decider.finish = nothing  # type: ignore[method-assign]
        decided = await first.decider.commit(first.batch(1, await first.write(1, "1")))
        assert decided.visible_ms is not None
        assert 0 <= decided.visible_ms < 5_000
        dead_ms = int(time.time() * 1000) - decided.decided_ms
        await second.decider.commit(second.batch(1, await second.write(1, "1")))
        after = await second.decider.commit(second.batch(2, await second.write(2, "2")))
        assert after.visible_ms is not None
        assert after.visible_ms >= dead_ms

    play(story, runs=2)


def test_a_new_query_that_does_what_another_did_warns_once_with_both_names(
    play: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    async def story(*queries: Query) -> None:
        for query, name in zip(queries, ("one", "two"), strict=True):
            query.stream = Stream(f"{query.stream.query}-{name}", "sink")
            query.decider = Decider(query.client, query.stream, name=name)
            for number in range(2):
                written = query.batch(number, await query.write(number, "x"))
                line = json.dumps({"in": {"0": number}})
                await query.decider.commit(written._replace(range=Range((), (line,))))

    play(story, runs=2)
    told = [record.message for record in caplog.records if "was a checkpoint changed" in record.message]
    (once,) = told
    assert once.startswith("two (") and "but one (" in once


def test_what_others_write_later_waits_behind_a_batch_that_is_open(
    play: Callable[..., Any], values: Callable[[], list[str]], bootstrap: str, topic: str
) -> None:
    """At read_committed, until the batch is decided and committed; then all of it is there, in its order."""

    def send(value: str) -> None:
        sent = odradek("produce", topic, "-b", bootstrap, stdin=f"{value}\n".encode())
        assert sent.code == 0

    async def story(query: Query) -> None:
        send("before")
        written = await query.write(0, "a", "b")
        send("after")
        assert values() == ["before"]
        query.decider.finish = nothing  # type: ignore[method-assign]
        await query.decider.commit(query.batch(0, written))
        assert values() == ["before"], "decided, and not committed yet"
        del query.decider.finish
        await query.decider.commit(query.batch(0, written))

    play(story)
    assert values() == ["before", "a", "b", "after"]


def test_a_topic_that_is_deleted_before_the_decision_holds_nothing_up(
    play: Callable[..., Any], make_topic: Callable[..., str], values: Callable[[], list[str]], bootstrap: str
) -> None:
    """Its records are gone with it. Those for other topics are committed, and the next batch goes on."""
    doomed = make_topic()

    async def story(query: Query) -> None:
        written = [await query.write(0, "a"), await query.worker.write(query.task(0), doomed, "b")]
        assert odradek("topic", "delete", doomed, "-y", "-b", bootstrap).code == 0
        await query.decider.commit(query.batch(0, *written))
        await query.decider.commit(query.batch(1, await query.write(1, "c"), await query.write(1, "d")))
        assert await query.decider.open_participants() == []

    play(story)
    assert values() == ["a", "c", "d"]
    assert '"Prepare' not in odradek("txn", "list", "-b", bootstrap, "-f", "json").text


async def nothing(*_: Any) -> None:
    """As if the driver had died before it committed anything."""


def test_a_task_that_begins_after_the_decision_writes_nothing(
    play: Callable[..., Any], values: Callable[[], list[str]]
) -> None:
    async def story(query: Query) -> None:
        await query.decider.commit(query.batch(0, await query.write(0, "a")))
        assert await query.begin(0) is None
        assert await query.decider.open_participants() == []

    play(story)
    assert values() == ["a"]


def test_a_task_that_finds_its_batch_decided_commits_it_before_anything_else(
    play: Callable[..., Any], values: Callable[[], list[str]]
) -> None:
    """The driver died after the decision: nobody has to wait until all rows of the batch are read again."""

    async def story(dead: Query, second: Query) -> None:
        dead.decider.finish = nothing  # type: ignore[method-assign]
        await dead.decider.commit(dead.batch(0, await dead.write(0, "a"), await dead.write(0, "b")))
        assert values() == []
        assert await second.begin(0) is None
        assert values() == ["a", "b"]
        assert await second.begin(0) is None
        await second.decider.commit(second.batch(0))

    play(story, runs=2)
    assert values() == ["a", "b"]


def test_a_task_without_rows_takes_no_part_and_its_batch_is_decided(
    play: Callable[..., Any], values: Callable[[], list[str]]
) -> None:
    async def story(query: Query) -> None:
        attempt = await query.begin(0)
        assert attempt is not None
        assert await attempt.finish() is None
        assert await query.decider.open_participants() == [], "it ended its transaction itself"
        assert (await query.decider.commit(query.batch(0))).participants == ()
        await query.decider.commit(query.batch(1, await query.write(1, "a")))

    play(story)
    assert values() == ["a"]


def test_a_task_that_comes_late_and_was_swept_already_writes_nothing_and_does_not_fail(
    play: Callable[..., Any], values: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a task is tried once, a query would fail with it."""

    async def story(query: Query) -> None:
        entry, has_id, go_on = LedgerLog.entry, asyncio.Event(), asyncio.Event()

        async def slowly(self: LedgerLog, *args: Any) -> Any:
            has_id.set()
            await go_on.wait()
            return await entry(self, *args)

        empty = await query.begin(0)
        assert empty is not None
        written = await query.write(0, "a")
        monkeypatch.setattr(query.worker._ledger, "entry", partial(slowly, query.worker._ledger))
        late = asyncio.ensure_future(query.begin(0))
        await has_id.wait()
        await query.decider.commit(query.batch(0, written))
        go_on.set()
        assert await late is None
        assert await empty.finish() is None

    play(story)
    assert values() == ["a"]


def test_a_decision_that_is_being_written_is_waited_for(
    play: Callable[..., Any], values: Callable[[], list[str]]
) -> None:
    """What is not below the last stable offset yet is not undecided."""

    async def story(first: Query, second: Query) -> None:
        written = await first.write(0, "a")
        await first.decider._take_charge()
        producer = first.decider._producer
        assert producer is not None
        commit, is_sent, go_on = producer.commit, asyncio.Event(), asyncio.Event()

        async def slowly() -> None:
            await producer._producer.flush()
            is_sent.set()
            await go_on.wait()
            await commit()

        producer.commit = slowly  # type: ignore[method-assign]
        deciding = asyncio.ensure_future(first.decider.commit(first.batch(0, written)))
        await is_sent.wait()
        late = asyncio.ensure_future(second.begin(0))
        done, _ = await asyncio.wait([late], timeout=0.3)
        assert not done, "it neither writes nor gives up before it knows"
        go_on.set()
        await deciding
        assert await late is None

    play(story, runs=2)
    assert values() == ["a"]


def test_a_task_that_was_swept_cannot_write_any_more(
    play: Callable[..., Any], values: Callable[[], list[str]]
) -> None:
    async def story(query: Query) -> None:
        late = await query.begin(0)
        assert late is not None
        await query.decider.commit(query.batch(0, await query.write(0, "a")))
        data = kernel.encode([(0, None, b"late", ())], 0, HEADER_BYTES)
        await late.outbox.put(TopicPartition(query.topic, 0), data, 1, 0)
        with pytest.raises(Exception, match=r"INVALID_PRODUCER_EPOCH|PRODUCER_FENCED"):
            await late.finish()
        assert await query.decider.open_participants() == []

    play(story)
    assert values() == ["a"]


def test_a_batch_that_another_run_decided_is_finished_and_what_was_written_for_it_swept(
    play: Callable[..., Any], values: Callable[[], list[str]]
) -> None:
    async def story(first: Query, second: Query) -> None:
        mine = await second.write(0, "second")
        theirs = await first.write(0, "first")
        await first.decider.commit(first.batch(0, theirs))
        with pytest.raises(SupersededError, match="two drivers"):
            await second.decider.commit(second.batch(0, mine))
        assert await first.decider.open_participants() == []
        await first.decider.commit(first.batch(1, await first.write(1, "more")))

    play(story, runs=2)
    assert values() == ["first", "more"]


def test_a_run_goes_on_after_one_that_died_before_it_had_decided_anything(
    play: Callable[..., Any], values: Callable[[], list[str]]
) -> None:
    async def story(dead: Query, second: Query) -> None:
        await dead.write(0, "dead")
        await second.decider.commit(second.batch(0, await second.write(0, "alive")))
        assert await second.decider.open_participants() == []
        with pytest.raises(SupersededError):
            await dead.write(1, "zombie")

    play(story, runs=2)
    assert values() == ["alive"]


def test_a_driver_that_is_fenced_while_it_decides_does_not_give_up(
    play: Callable[..., Any], values: Callable[[], list[str]]
) -> None:
    """A zombie takes charge once, sees that it is superseded, and never does so again."""

    async def story(zombie: Query, healthy: Query) -> None:
        await zombie.decider.commit(zombie.batch(0, await zombie.write(0, "0")))
        await healthy.decider.commit(healthy.batch(1, await healthy.write(1, "1")))
        written = await healthy.write(2, "2")
        await zombie.decider._take_charge()
        await healthy.decider.commit(healthy.batch(2, written))
        with pytest.raises(SupersededError):
            await zombie.decider.commit(zombie.batch(3))
        await healthy.decider.commit(healthy.batch(3, await healthy.write(3, "3")))

    play(story, runs=2)
    assert values() == ["0", "1", "2", "3"]


def test_a_participant_that_somebody_ended_is_not_decided(
    play: Callable[..., Any], values: Callable[[], list[str]], bootstrap: str
) -> None:
    async def story(query: Query) -> None:
        written = await query.write(0, "a")
        assert written is not None
        assert odradek("txn", "abort", written.transactional_id, "-y", "-b", bootstrap).code == 0
        with pytest.raises(LedgerError, match="another driver or person has ended it"):
            await query.decider.commit(query.batch(0, written))
        await query.decider.commit(query.batch(0, await query.write(0, "again")))

    play(story)
    assert values() == ["again"]


def test_slots_are_used_again_batch_after_batch(
    play: Callable[..., Any], values: Callable[[], list[str]], bootstrap: str
) -> None:
    async def story(query: Query) -> set[str]:
        used = set()
        for number in range(20):
            first, second = await query.write(number, f"{number}a"), await query.write(number, f"{number}b")
            assert first is not None and second is not None
            used |= {first.transactional_id, second.transactional_id}
            await query.decider.commit(query.batch(number, first, second))
        return used

    assert len(play(story)) == 2
    assert len(values()) == 40


def write_plainly(options: SinkOptions, value: str) -> Stream:
    """What df.write does, in a task and on the driver."""
    writer = Writer(options, StructType([StructField("value", StringType())]))
    job = writer._writer.job
    stream = Stream(options.idempotency_key or job, "sink")
    rows = pa.record_batch({"value": [value]})
    writer.commit([writer._writer.write_task(iter([rows]), Task(stream, job[:8], 0))])
    return stream


def test_plain_writes_leave_no_connection_behind(bootstrap: str, topic: str) -> None:
    """Each is a stream of its own, that nobody comes back to, in a driver that may live for months."""
    options = sink_options({"kafka.bootstrap.servers": bootstrap, "topic": topic})

    def write() -> int:
        write_plainly(options, "x")
        return len(list(Path("/proc/self/fd").iterdir()))

    first = write()
    assert [write() for _ in range(5)] == [first] * 5
    assert len(read_committed(bootstrap, topic)) == 6


def test_plain_writes_of_the_past_leave_the_ledger_and_what_they_decided_is_finished(
    bootstrap: str,
    topic: str,
    values: Callable[[], list[str]],
    unique: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {"kafka.bootstrap.servers": bootstrap, "topic": topic}
    keyed = sink_options({**given, "idempotencyKey": unique("key")})
    options = sink_options(given)

    def is_known(stream: Stream) -> bool:
        with BlockingClient(bootstrap) as client:
            return client.call(LedgerLog(client.client).read).entry(stream) is not None

    finish = Decider.finish
    monkeypatch.setattr(Decider, "finish", nothing)
    died = write_plainly(options, "its driver died after the decision")
    monkeypatch.setattr(Decider, "finish", finish)
    named = write_plainly(keyed, "has a key")
    assert is_known(died) and is_known(named)
    assert values() == []
    monkeypatch.setattr(ledger, "KEPT_AFTER_A_JOB_MS", -1)
    write_plainly(options, "a day later")
    assert (is_known(died), is_known(named)) == (False, True)
    assert values() == ["its driver died after the decision", "has a key", "a day later"]


def test_a_batch_of_hundreds_of_tasks_and_partitions_is_decided(
    play: Callable[..., Any], bootstrap: str, topic: str, values: Callable[[], list[str]]
) -> None:
    """Its decision is one record. Without a pattern in which task wrote where, there is little to shorten."""
    tasks, partitions = 400, 200

    async def story(query: Query) -> None:
        wrote: list[Any] = []
        for first in range(0, tasks, 20):
            some = await asyncio.gather(*(query.write(0, str(first + i)) for i in range(20)))
            wrote += [
                p._replace(partitions=tuple((topic, n) for n in range(partitions) if (n * 7 + first + i) % 5))
                for i, p in enumerate(some)
                if p is not None
            ]
        assert len(wrote) == tasks
        decided = await query.decider.commit(query.batch(0, *wrote))
        found = await LedgerLog(query.client).entry(query.stream)
        assert found is not None
        assert found.decision == decided

    play(story)
    assert len(values()) == tasks


def test_a_stream_is_not_told_numbers_of_batches(bootstrap: str) -> None:
    options = sink_options(
        {"kafka.bootstrap.servers": bootstrap, "topic": "t", "idempotencyKey": "k", "batchId": "1"}
    )
    with pytest.raises(OptionError, match="batchId is for df"):
        StreamWriter(options, StructType([StructField("value", StringType())]))


def test_other_options_of_a_query_count_from_its_next_start_on(
    bootstrap: str, topic: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    """In one driver, which keeps what it needs for its queries."""
    stream, groups = Stream(unique("query"), "sink"), [unique("group") for _ in range(2)]
    (tmp_path / "offsets").mkdir()
    with BlockingClient(bootstrap) as client:
        client.call(client.client.refresh)
        cluster = client.client.cluster.cluster_id
    for number, group in enumerate(groups):
        offsets = {topic: {"0": number + 1}, CLUSTER: cluster}
        (tmp_path / "offsets" / str(number)).write_text(f"v1\n{{}}\n{json.dumps(offsets)}\n")
        given = {"kafka.bootstrap.servers": bootstrap, "topic": topic, "checkpointLocation": str(tmp_path)}
        options = sink_options({**given, "offsets.group": group})
        writer = StreamWriter(options, StructType([StructField("value", StringType())]))
        rows = pa.record_batch({"value": ["x"]})
        task = Task(stream, f"run0000{number}", number)
        writer.commit([writer._writer.write_task(iter([rows]), task)], number)
        with BlockingClient(bootstrap) as client:
            (found,) = client.call(client.admin.committed, group).values()
        assert found.committed_offset == number + 1


def test_a_batch_that_is_too_large_is_told_with_both_sizes(
    play: Callable[..., Any], make_topic: Callable[..., str]
) -> None:
    narrow = make_topic(max_message_bytes=1_000)

    async def story(query: Query) -> None:
        with pytest.raises(KafkaError, match=r"a record .* has 1070 bytes, and the topic takes 1000: "):
            await query.worker.write(query.task(0), narrow, "x" * 1_000)
        with pytest.raises(KafkaError, match=r"a batch of 50 records for .*, or lower kafka\.batch\.size"):
            await query.worker.write(query.task(0), narrow, *(["x" * 50] * 50))
        await query.decider.abandon(query.run)
        assert await query.decider.open_participants() == []

    play(story)


def test_a_broker_that_does_not_come_back_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    """Neither in a task nor on the driver; and when it is back, the batch is decided once."""

    async def story() -> None:
        async with Client(node.bootstrap, api_timeout_ms=500) as client:
            await ensure_topics(client)
            await client.refresh(["out"])
            query = Query(client, Stream("query", "sink"), "run00000", "out", timeout_s=0.5)
            batch = query.batch(0, await query.write(0, "a"))
            node.kill()
            for waits in (query.write(0, "b"), query.decider.commit(batch), query.decider.abandon(query.run)):
                began = time.monotonic()
                with pytest.raises(OSError, match=r"in time|Connect call failed|hung up|reset"):
                    await waits
                assert time.monotonic() - began < 15
            node.restart()
            await query.decider.commit(batch)
            await query.close()

    with running(tmp_path / "data", "--port", str(free_port())) as node:
        create_topic(node.bootstrap, "out")
        asyncio.run(story())
        assert [message.value() for message in read_committed(node.bootstrap, "out")] == [b"a"]
