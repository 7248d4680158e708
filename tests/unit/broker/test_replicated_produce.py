"""Produces to a partition with followers: the test speaks for the followers, and for the controller."""

import asyncio
import dataclasses
import gzip
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from odradek.core.errors import ErrorCode
from odradek.core.types import TopicPartition
from odradek.metadata.image import PartitionRegistration
from odradek.replication.partition import Partition
from odradek.wire.api_keys import ApiKey
from tests.hostile.names import RECORDS
from tests.hostile.stage import Client, Stage, staged
from tests.support.batches import batch, record
from tests.support.produce import produce_values
from tests.support.raw import request_bytes
from tests.unit.broker.test_publishing import answer_of, create

T = TypeVar("T")
TOPIC = "replicated"
REPLICAS = (1, 2, 3)
FETCH_VERSION = 12
GZIPPED = batch(
    payload=gzip.compress(record(0, random.Random(1).randbytes(5_000))),
    attributes=1,
    timestamp=1_750_000_000_000,
)
"""Enough to be checked away from the loop."""


def replicated(stage: Stage, client: Client, *isr: int, partitions: int = 1) -> Partition:
    """The first partition of a topic whose replicas the test speaks for."""
    create(stage, client, TOPIC, partitions)
    found = [stage.node.replicas.partition(TopicPartition(TOPIC, index)) for index in range(partitions)]
    for partition in found:
        change_isr(partition, *isr)
    return found[0]


def change_isr(partition: Partition, *isr: int) -> None:
    partition.apply(
        PartitionRegistration(REPLICAS, isr, 1, partition.leader_epoch, partition.partition_epoch + 1)
    )


@contextmanager
def during_checks(stage: Stage, happens: Callable[[], None]) -> Iterator[None]:
    """Have something happen each time that records are checked away from the loop."""
    offload = stage.node.runtime.offload

    def meanwhile(work: Callable[[], T]) -> "asyncio.Future[T]":
        happens()
        return offload(work)

    stage.node.runtime.offload = meanwhile
    try:
        yield
    finally:
        stage.node.runtime.offload = offload


def produce_frame(acks: int = -1, records: bytes = RECORDS) -> bytes:
    return request_bytes(ApiKey.PRODUCE, 9, produce_values(TOPIC, records, acks=acks))


def produced(frame: bytes | None) -> tuple[int, int]:
    (topic,) = answer_of(ApiKey.PRODUCE, 9, frame).responses
    return topic.partition_responses[0].error_code, topic.partition_responses[0].base_offset


def fetch_frame(replica_id: int, offset: int, max_wait_ms: int = 0, partitions: int = 1) -> bytes:
    rows: list[dict[str, Any]] = [
        {
            "partition": index,
            "current_leader_epoch": -1,
            "fetch_offset": offset,
            "last_fetched_epoch": -1,
            "log_start_offset": 0,
            "partition_max_bytes": 1 << 20,
        }
        for index in range(partitions)
    ]
    values = {
        "replica_id": replica_id,
        "max_wait": max_wait_ms,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [{"topic": TOPIC, "partitions": rows}],
        "forgotten_topics_data": [],
        "rack_id": "",
    }
    return request_bytes(ApiKey.FETCH, FETCH_VERSION, values)


def fetched(frame: bytes | None) -> Any:
    (topic,) = answer_of(ApiKey.FETCH, FETCH_VERSION, frame).responses
    return topic.partitions[0]


def test_a_produce_is_answered_when_every_in_sync_follower_has_asked_for_more(tmp_path: Path) -> None:
    with staged(tmp_path / "data") as stage, stage.client() as client, stage.client() as follower:
        replicated(stage, client, 1, 2, 3)
        client.send(produce_frame())
        stage.wait_until_idle()
        assert fetched(stage.ask(follower, fetch_frame(2, 0))).records
        assert fetched(stage.ask(follower, fetch_frame(3, 0))).records
        stage.ask(follower, fetch_frame(2, 1))
        assert client.answer() is None, "one of them has not got it yet"
        assert fetched(stage.ask(follower, fetch_frame(3, 1))).high_watermark == 1
        stage.wait_until_idle()
        assert produced(client.answer()) == (0, 0)


def test_a_fetch_that_waits_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read again when the partition moves, but its follower has said nothing new."""
    recorded: list[tuple[int, int]] = []
    record_fetch = Partition.record_fetch

    def counted(partition: Partition, replica_id: int, fetch_offset: int, *others: int) -> None:
        recorded.append((replica_id, fetch_offset))
        record_fetch(partition, replica_id, fetch_offset, *others)

    monkeypatch.setattr(Partition, "record_fetch", counted)
    with staged(tmp_path / "data") as stage, stage.client() as client, stage.client() as follower:
        replicated(stage, client, 1, 2)
        follower.send(fetch_frame(2, 0, max_wait_ms=60_000))
        stage.wait_until_idle()
        assert produced(stage.ask(client, produce_frame(acks=1))) == (0, 0)
        stage.wait_until_idle()
        assert fetched(follower.answer()).records, "it was read again"
        assert recorded == [(2, 0)]


def test_min_isr_is_checked_when_a_produce_comes_back_from_its_check(tmp_path: Path) -> None:
    """gzip is checked away from the loop. Meanwhile a follower leaves the ISR."""
    with staged(tmp_path / "data") as stage, stage.client() as client, stage.client() as other:
        partition = replicated(stage, client, 1, 2)
        partition.configure(dataclasses.replace(partition.log.config, min_insync_replicas=2))
        with during_checks(stage, lambda: change_isr(partition, 1)):
            answer = produced(stage.ask(client, produce_frame(records=GZIPPED)))
        assert answer[0] == ErrorCode.NOT_ENOUGH_REPLICAS
        assert partition.log.log_end_offset == 0
        assert partition.metrics.failed_produces == 1
        assert produced(stage.ask(client, produce_frame()))[0] == ErrorCode.NOT_ENOUGH_REPLICAS
        assert produced(stage.ask(other, produce_frame(acks=1, records=GZIPPED))) == (0, 0)
        assert partition.log.high_watermark == 0


def test_produces_with_and_without_acks_all_in_one_receive_keep_their_order(tmp_path: Path) -> None:
    with staged(tmp_path / "data") as stage, stage.client() as client:
        partition = replicated(stage, client, 1)
        client.send(b"".join(produce_frame(acks) for acks in (1, -1, -1, 1, -1)))
        stage.wait_until_idle()
        assert [produced(client.answer()) for _ in range(5)] == [(0, offset) for offset in range(5)]
        partition.configure(dataclasses.replace(partition.log.config, min_insync_replicas=2))
        client.send(b"".join(produce_frame(acks) for acks in (1, -1, -1, 1, -1)))
        stage.wait_until_idle()
        refused = (ErrorCode.NOT_ENOUGH_REPLICAS, -1)
        assert [produced(client.answer()) for _ in range(5)] == [(0, 5), refused, refused, (0, 6), refused]


def test_a_follower_may_name_more_partitions_than_are_read_in_one_go(tmp_path: Path) -> None:
    with staged(tmp_path / "data") as stage, stage.client() as client, stage.client() as follower:
        many = 2 * stage.node.slices.few_entries
        partition = replicated(stage, client, 1, 2, partitions=many)
        assert produced(stage.ask(client, produce_frame(acks=1))) == (0, 0)
        assert fetched(stage.ask(follower, fetch_frame(2, 0, partitions=many))).records
        stage.ask(follower, fetch_frame(2, 1, partitions=many))
        assert partition.log.high_watermark == 1


@pytest.mark.parametrize("next_leader", [1, 2])
def test_an_append_of_an_earlier_leader_epoch_is_not_acknowledged(tmp_path: Path, next_leader: int) -> None:
    """The first of two partitions is appended; while the second one is checked, the first has an election.

    What it holds at that offset later may be another record.
    """
    with staged(tmp_path / "data") as stage, stage.client() as client:
        first = replicated(stage, client, 1, 2, partitions=2)
        change_isr(stage.node.replicas.partition(TopicPartition(TOPIC, 1)), 1)

        def elect() -> None:
            if first.log.log_end_offset:
                first.apply(
                    PartitionRegistration(
                        REPLICAS, (1,) if next_leader == 1 else (2,), next_leader, first.leader_epoch + 1, 10
                    )
                )

        values = produce_values(TOPIC, GZIPPED, timeout_ms=600_000)
        values["topic_data"][0]["partition_data"] = [{"index": i, "records": GZIPPED} for i in range(2)]
        with during_checks(stage, elect):
            answer = stage.ask(client, request_bytes(ApiKey.PRODUCE, 9, values))
        (topic,) = answer_of(ApiKey.PRODUCE, 9, answer).responses
        codes = [row.error_code for row in topic.partition_responses]
        assert codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE]


def test_what_was_committed_by_too_few_replicas_is_not_acknowledged(tmp_path: Path) -> None:
    """The first of two partitions is appended and committed; while the second one is checked, the first is
    under min ISR."""
    with staged(tmp_path / "data") as stage, stage.client() as client:
        first = replicated(stage, client, 1, partitions=2)

        def raise_min_isr() -> None:
            if first.log.high_watermark:
                first.configure(dataclasses.replace(first.log.config, min_insync_replicas=2))

        values = produce_values(TOPIC, GZIPPED, timeout_ms=600_000)
        values["topic_data"][0]["partition_data"] = [{"index": i, "records": GZIPPED} for i in range(2)]
        with during_checks(stage, raise_min_isr):
            answer = stage.ask(client, request_bytes(ApiKey.PRODUCE, 9, values))
        (topic,) = answer_of(ApiKey.PRODUCE, 9, answer).responses
        codes = [row.error_code for row in topic.partition_responses]
        assert codes == [ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.NONE]
        assert first.log.high_watermark == 1
