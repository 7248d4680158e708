"""Fetches of a session read what changed, and answer as if they read everything."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from odradek.core.errors import ErrorCode
from odradek.core.types import TopicPartition
from odradek.metadata.image import PartitionRegistration
from odradek.replication.fetch_sessions import PROGRESS_MS, FetchSession
from odradek.replication.partition import Partition
from odradek.wire.api_keys import ApiKey
from tests.counts.probe import Calls
from tests.hostile.names import RECORDS
from tests.hostile.stage import Client, Stage, staged
from tests.support.produce import produce_values
from tests.support.raw import request_bytes
from tests.unit.broker.test_publishing import answer_of, create
from tests.unit.broker.test_replicated_produce import change_isr

TOPIC = "many"
VERSION = 12
FOLLOWER = 2


def partitions_of(stage: Stage, count: int) -> list[Partition]:
    return [stage.node.replicas.partition(TopicPartition(TOPIC, index)) for index in range(count)]


class Reader:
    """A client with a fetch session."""

    def __init__(self, stage: Stage, client: Client, replica_id: int = -1, **values: Any) -> None:
        self._stage = stage
        self.client = client
        self.session_id = self._epoch = 0
        self._values: dict[str, Any] = {
            "replica_id": replica_id,
            "max_wait": 0,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "isolation_level": 0,
            "rack_id": "",
            **values,
        }

    @property
    def session(self) -> FetchSession:
        return self._stage.node.server.services.fetch_sessions._sessions[self.session_id]

    def frame(
        self, offsets: dict[int, int] | None = None, forgotten: tuple[int, ...] = (), **values: Any
    ) -> bytes:
        rows = [
            {
                "partition": index,
                "current_leader_epoch": -1,
                "fetch_offset": offset,
                "last_fetched_epoch": -1,
                "log_start_offset": 0,
                "partition_max_bytes": 1 << 20,
            }
            for index, offset in (offsets or {}).items()
        ]
        named = {"topics": [{"topic": TOPIC, "partitions": rows}] if rows else []}
        gone = [{"topic": TOPIC, "partitions": list(forgotten)}] if forgotten else []
        session = {"session_id": self.session_id, "session_epoch": self._epoch}
        self._epoch += 1
        asked = self._values | named | {"forgotten_topics_data": gone} | session | values
        return request_bytes(ApiKey.FETCH, VERSION, asked)

    def read(self, frame: bytes | None) -> dict[int, Any]:
        answer = answer_of(ApiKey.FETCH, VERSION, frame)
        assert answer.error_code == 0
        self.session_id = answer.session_id
        return {row.partition_index: row for topic in answer.responses for row in topic.partitions}

    def fetch(self, offsets: dict[int, int] | None = None, **values: Any) -> dict[int, Any]:
        return self.read(self._stage.ask(self.client, self.frame(offsets, **values)))

    def counted(self) -> int:
        """The calls of a fetch that names nothing and finds nothing."""
        before = set(self._stage.node.server.connections)
        with self._stage.client() as self.client:
            (number,) = set(self._stage.node.server.connections) - before
            connection = self._stage.node.server.connections[number]
            assert self.fetch() == {}
            self.client.send(self.frame())
            meter = Calls()
            meter.begin()
            try:
                connection.on_readable()
            finally:
                calls = meter.end()
            self._stage.wait_until_idle()
            assert self.read(self.client.answer()) == {}
        return calls


@contextmanager
def reading(path: Path, count: int, replica_id: int = -1, **values: Any) -> Iterator[tuple[Stage, Reader]]:
    """A session over idle partitions, of a consumer or of a follower that is in the ISR."""
    with staged(path) as stage, stage.client() as client:
        create(stage, client, TOPIC, count)
        for partition in partitions_of(stage, count):
            change_isr(partition, *((1,) if replica_id < 0 else (1, replica_id)))
        reader = Reader(stage, client, replica_id, **values)
        reader.fetch(dict.fromkeys(range(count), 0))
        reader.fetch()
        yield stage, reader


def produce(stage: Stage, client: Client, index: int = 0) -> None:
    values = produce_values(TOPIC, RECORDS, acks=1)
    values["topic_data"][0]["partition_data"][0]["index"] = index
    (topic,) = answer_of(
        ApiKey.PRODUCE, 9, stage.ask(client, request_bytes(ApiKey.PRODUCE, 9, values))
    ).responses
    assert topic.partition_responses[0].error_code == 0


# --- what it costs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("replica_id", [-1, FOLLOWER])
def test_a_thousand_idle_partitions_cost_what_one_costs(tmp_path: Path, replica_id: int) -> None:
    calls = {}
    for count in (1, 1_000):
        with reading(tmp_path / str(count), count, replica_id) as (_, reader):
            calls[count] = reader.counted()
    assert calls[1_000] <= 1.1 * calls[1], calls


@pytest.mark.parametrize("replica_id", [-1, FOLLOWER])
def test_waking_a_fetch_costs_the_partition_that_moved(tmp_path: Path, replica_id: int) -> None:
    calls = {}
    for count in (1, 1_000):
        with (
            reading(tmp_path / str(count), count, replica_id) as (stage, reader),
            stage.client() as producer,
        ):
            reader.client.send(reader.frame(max_wait=60_000))
            stage.wait_until_idle()
            meter = Calls()
            meter.begin()
            try:
                produce(stage, producer)
                stage.wait_until_idle()
            finally:
                calls[count] = meter.end()
            assert list(reader.read(reader.client.answer())) == [0]
    assert calls[1_000] <= 1.1 * calls[1], calls


# --- what it answers --------------------------------------------------------------------------------------


def seen(answer: dict[int, Any]) -> list[tuple[int, int, int, int, int, bytes | None]]:
    """In the order of the answer."""
    return [
        (
            row.partition_index,
            row.error_code,
            row.high_watermark,
            row.last_stable_offset,
            row.log_start_offset,
            row.records and bytes(row.records),
        )
        for row in answer.values()
    ]


@pytest.mark.parametrize("replica_id", [-1, FOLLOWER])
@pytest.mark.parametrize("seed", range(6))
def test_a_session_answers_as_if_it_read_everything(tmp_path: Path, seed: int, replica_id: int) -> None:
    """The same fetches in two sessions. All partitions of the second one are dirty before each fetch."""
    rng, count = random.Random(seed), 8
    limit = rng.choice((len(RECORDS) + 10, 3 * len(RECORDS), 1 << 20))
    with (
        reading(tmp_path / "data", count, replica_id, max_bytes=limit) as (stage, reader),
        stage.client() as other,
        stage.client() as producer,
    ):
        partitions, level = partitions_of(stage, count), 0
        judge = Reader(stage, other, replica_id, max_bytes=limit)
        judge.fetch(dict.fromkeys(range(count), 0))
        judge.session.mark_all()
        judge.fetch()
        offsets = dict.fromkeys(range(count), 0)
        for _ in range(120):
            partition = partitions[index := rng.randrange(count)]
            match rng.choice(("produce", "produce", "commit", "delete", "elect", "resign", "level", "none")):
                case "produce" if partition.is_leader:
                    produce(stage, producer, index)
                case "commit" if partition.is_leader and replica_id < 0:
                    change_isr(partition, 1, FOLLOWER)
                    ends = partition.log.log_start_offset, partition.log.log_end_offset
                    partition.record_fetch(FOLLOWER, rng.randint(*ends))
                case "delete" if partition.is_leader:
                    partition.log.increment_log_start_offset(rng.randint(0, partition.log.high_watermark))
                case "elect" | "resign" as role:
                    leader = 1 if role == "elect" else 3
                    epochs = partition.leader_epoch + 1, partition.partition_epoch + 1
                    partition.apply(PartitionRegistration((1, 2, 3), (leader,), leader, *epochs))
                case "level" if replica_id < 0:
                    level = 1 - level
            named = {}
            for index in rng.sample(range(count), rng.choice((0, 0, 1, 3))):
                named[index] = offsets[index]
            judge.session.mark_all()
            expected = judge.fetch(named, isolation_level=level)
            found = reader.fetch(named, isolation_level=level)
            assert seen(found) == seen(expected)
            for index, row in found.items():
                if row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    offsets[index] = partitions[index].log.log_start_offset
                elif row.records:
                    offsets[index] += len(row.records) // len(RECORDS)


def test_a_follower_hears_of_the_high_watermark_with_the_next_records(tmp_path: Path) -> None:
    """As in Apache: it is no reason to answer."""
    with (
        reading(tmp_path / "data", 2, FOLLOWER) as (stage, reader),
        stage.client() as producer,
    ):
        first, _ = partitions_of(stage, 2)
        change_isr(first, 1, FOLLOWER, 3)
        assert reader.fetch() == {}
        produce(stage, producer, 0)
        assert reader.fetch()[0].high_watermark == 0
        reader.client.send(reader.frame({0: 1}, max_wait=60_000))
        stage.wait_until_idle()
        first.record_fetch(3, 1)
        stage.wait_until_idle()
        assert first.log.high_watermark == 1 and reader.client.answer() is None
        produce(stage, producer, 1)
        stage.wait_until_idle()
        answer = reader.read(reader.client.answer())
        assert answer[1].records and not answer[0].records
        assert answer[0].high_watermark == 1


def test_a_follower_is_answered_once_for_all_that_one_turn_appended(tmp_path: Path) -> None:
    with reading(tmp_path / "data", 3, FOLLOWER) as (stage, reader), stage.client() as producer:
        reader.client.send(reader.frame(max_wait=60_000))
        stage.wait_until_idle()
        frames = []
        for index in (0, 2, 0, 2):
            values = produce_values(TOPIC, RECORDS, acks=1)
            values["topic_data"][0]["partition_data"][0]["index"] = index
            frames.append(request_bytes(ApiKey.PRODUCE, 9, values))
        producer.send(b"".join(frames))
        stage.wait_until_idle()
        answer = reader.read(reader.client.answer())
        assert {index: len(row.records) for index, row in answer.items()} == dict.fromkeys(
            (0, 2), 2 * len(RECORDS)
        )


def test_the_progress_of_idle_partitions_is_recorded_from_time_to_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leader has to see that the follower of an idle partition is alive."""
    recorded: list[int] = []
    record_fetch = Partition.record_fetch

    def counted(partition: Partition, *args: Any) -> None:
        recorded.append(partition.topic_partition.partition)
        record_fetch(partition, *args)

    with reading(tmp_path / "data", 3, FOLLOWER) as (stage, reader):
        monkeypatch.setattr(Partition, "record_fetch", counted)
        assert reader.fetch() == {} and recorded == []
        reader.fetch({1: 0})
        assert recorded == [1]
        stage.loop.pass_time(PROGRESS_MS / 1000)
        assert reader.fetch() == {} and sorted(recorded[1:]) == [0, 1, 2]
        assert reader.fetch() == {} and len(recorded) == 4


# --- watches ----------------------------------------------------------------------------------------------


def watching(stage: Stage, count: int) -> int:
    return sum(
        len(p.fetch_waiters.consumers) + len(p.fetch_waiters.committed) + len(p.fetch_waiters.followers)
        for p in partitions_of(stage, count)
    )


def test_a_session_that_ends_watches_nothing_any_more(tmp_path: Path) -> None:
    with reading(tmp_path / "data", 5) as (stage, reader):
        assert watching(stage, 5) == 5
        reader.fetch(forgotten=(1,))
        assert watching(stage, 5) == 4
        reader.fetch(isolation_level=1)
        assert watching(stage, 5) == 4
        for _ in range(10):
            reader._epoch = 0
            reader.fetch({0: 0, 1: 0, 2: 0})
            reader.fetch()
            stage.wait_until_idle()
            assert watching(stage, 5) == 3
        reader._epoch = -1
        reader.fetch({0: 0})
        stage.wait_until_idle()
        assert watching(stage, 5) == 0


def test_a_newer_fetch_of_a_session_ends_the_wait_of_the_one_before(tmp_path: Path) -> None:
    with reading(tmp_path / "data", 2) as (stage, reader), stage.client() as producer:
        for _ in range(3):
            reader.client.send(reader.frame(max_wait=60_000))
        stage.wait_until_idle()
        assert [reader.read(reader.client.answer()) for _ in range(2)] == [{}, {}]
        assert reader.client.answer() is None
        produce(stage, producer, 1)
        stage.wait_until_idle()
        assert list(reader.read(reader.client.answer())) == [1]


def test_a_fetch_whose_session_is_replaced_is_answered(tmp_path: Path) -> None:
    with reading(tmp_path / "data", 2) as (stage, reader), stage.client() as other:
        reader.client.send(reader.frame(max_wait=60_000))
        stage.wait_until_idle()
        again = Reader(stage, other)
        again.session_id = reader.session_id
        again.fetch({0: 0})
        stage.wait_until_idle()
        assert reader.read(reader.client.answer()) == {}


def test_a_deleted_partition_is_told_to_a_fetch_that_waits(tmp_path: Path) -> None:
    with reading(tmp_path / "data", 2) as (stage, reader):
        reader.client.send(reader.frame(max_wait=60_000))
        stage.wait_until_idle()
        (partition, _) = partitions_of(stage, 2)
        stage.node.replicas._forget(partition)
        stage.loop.call_soon(partition.stop, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        stage.wait_until_idle()
        answer = reader.read(reader.client.answer())
        assert {i: row.error_code for i, row in answer.items()} == {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
