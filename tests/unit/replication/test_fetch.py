"""One pass over the partitions of a fetch: what each answers, within the limits of all."""

from pathlib import Path

import pytest

from odradek.core.errors import ErrorCode
from odradek.log.log import Isolation
from odradek.replication.fetch import UNKNOWN, FetchRead, read_partitions
from odradek.replication.fetch_sessions import PartitionFetch, PartitionKey
from odradek.replication.manager import ReplicaManager
from odradek.runtime.slices import at_once
from tests.unit.log.support import batch, marker, transactional
from tests.unit.replication.support import ME, TOPIC, followed, led, managed, with_partition

MUCH = 1 << 20
SIZE = len(batch().buffer)


def key(index: int) -> PartitionKey:
    return PartitionKey(TOPIC.name, index)


def filled(path: Path, partitions: int, batches: int = 2) -> ReplicaManager:
    replicas = managed(path)
    for index in range(partitions):
        partition = with_partition(replicas, led(epoch=3), index)
        partition.append_as_leader([batch() for _ in range(batches)], acks_all=True)
    return replicas


def wants(offset: int = 0, max_bytes: int = MUCH, **fields: int) -> PartitionFetch:
    return PartitionFetch(offset, max_bytes, **fields)


def read(
    replicas: ReplicaManager,
    *fetches: PartitionFetch,
    max_bytes: int = MUCH,
    isolation: Isolation = Isolation.HIGH_WATERMARK,
    most_files: int = 100,
) -> FetchRead:
    wanted = {key(index): fetch for index, fetch in enumerate(fetches)}
    return at_once(read_partitions(replicas, wanted, max_bytes, isolation, None, most_files))


def test_a_partition_answers_with_its_records_and_offsets(tmp_path: Path) -> None:
    replicas = filled(tmp_path, 1)
    partition = replicas.partition_of(*key(0))
    found = read(replicas, wants(1))
    (answer,) = found.answers
    assert (answer.key, answer.error, answer.partition) == (key(0), ErrorCode.NONE, partition)
    assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (2, 2, 0)
    assert answer.records is not None and len(answer.records.read()) == answer.size == SIZE
    assert answer.diverging_epoch is None and answer.current_leader is None
    assert (found.size, found.must_answer) == (SIZE, False)
    replicas.delete_records(partition.topic_partition, 1)
    assert read(replicas, wants(2)).answers[0].log_start_offset == 1


def test_a_partition_without_news_is_answered_without_records(tmp_path: Path) -> None:
    found = read(filled(tmp_path, 1), wants(2))
    (answer,) = found.answers
    assert (answer.error, answer.records, answer.size) == (ErrorCode.NONE, None, 0)
    assert (found.size, found.must_answer) == (0, False)


def test_the_limits_are_the_partitions_and_the_fetchs(tmp_path: Path) -> None:
    replicas = filled(tmp_path, 3, batches=4)
    assert [a.size for a in read(replicas, wants(max_bytes=2 * SIZE), wants()).answers] == [
        2 * SIZE,
        4 * SIZE,
    ]
    found = read(replicas, wants(max_bytes=2 * SIZE), wants(), wants(), max_bytes=3 * SIZE)
    assert [a.size for a in found.answers] == [2 * SIZE, SIZE, 0]
    assert found.size == 3 * SIZE


def test_the_first_partition_with_records_gives_a_batch_above_every_limit(tmp_path: Path) -> None:
    replicas = filled(tmp_path, 3)
    found = read(replicas, wants(2), wants(max_bytes=1), wants(max_bytes=1), max_bytes=1)
    assert [a.size for a in found.answers] == [0, SIZE, 0]


def test_records_of_only_so_many_partitions_are_given(tmp_path: Path) -> None:
    """Each keeps a file open."""
    replicas = filled(tmp_path, 4)
    found = read(replicas, wants(2), wants(max_bytes=SIZE), wants(max_bytes=SIZE), wants(), most_files=2)
    assert [a.size for a in found.answers] == [0, SIZE, SIZE, 0]


def test_an_error_is_told_at_once_with_the_leader_to_ask(tmp_path: Path) -> None:
    replicas = filled(tmp_path, 1)
    with_partition(replicas, followed(2, epoch=4), 1)
    found = read(replicas, wants(current_leader_epoch=2), wants(current_leader_epoch=4))
    assert [a.error for a in found.answers] == [
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ]
    assert [a.current_leader for a in found.answers] == [(ME, 3), (2, 4)]
    assert found.must_answer and found.size == 0
    (answer,) = read(replicas, wants(current_leader_epoch=9)).answers
    assert (answer.error, answer.current_leader) == (ErrorCode.UNKNOWN_LEADER_EPOCH, None)
    assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (UNKNOWN,) * 3
    assert answer.partition is not None


def test_who_compares_replicas_reads_a_follower_too(tmp_path: Path) -> None:
    """Replica id -2, which Apache's replica verification has: no follower, and not bound by a watermark."""
    replicas = filled(tmp_path, 1)
    with_partition(replicas, followed(2, epoch=4), 0)
    assert read(replicas, wants()).answers[0].error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    (answer,) = read(replicas, wants(), isolation=Isolation.LOG_END).answers
    assert (answer.error, answer.size) == (ErrorCode.NONE, 2 * SIZE)


def test_a_partition_that_is_not_here_is_unknown(tmp_path: Path) -> None:
    found = read(managed(tmp_path), wants())
    (answer,) = found.answers
    assert (answer.error, answer.partition) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
    assert found.must_answer


def test_a_consumer_is_told_where_its_log_diverges(tmp_path: Path) -> None:
    replicas = filled(tmp_path, 1)
    found = read(replicas, wants(2, last_fetched_epoch=2))
    (answer,) = found.answers
    assert (answer.diverging_epoch, answer.records, answer.size) == ((2, 0), None, 0)
    assert answer.high_watermark == 2 and found.must_answer
    assert read(replicas, wants(1, last_fetched_epoch=3)).size == SIZE


def test_the_isolation_bounds_what_is_read(tmp_path: Path) -> None:
    replicas = filled(tmp_path, 1)
    partition = replicas.partition_of(*key(0))
    partition.append_as_leader([transactional(0)], acks_all=True)
    committed = read(replicas, wants(), isolation=Isolation.TXN_COMMITTED).answers[0]
    assert (committed.size, committed.last_stable_offset, committed.high_watermark) == (2 * SIZE, 2, 3)
    assert read(replicas, wants()).size > 2 * SIZE
    partition.append_own(marker(committed=False))
    assert read(replicas, wants(), isolation=Isolation.TXN_COMMITTED).answers[0].aborted == [(7, 2)]
    assert read(replicas, wants()).answers[0].aborted is None


@pytest.mark.parametrize(("count", "records", "pauses"), [(20, True, 4), (20, False, 1), (16, True, 3)])
def test_many_partitions_are_read_with_pauses(tmp_path: Path, count: int, records: bool, pauses: int) -> None:
    """A partition that gives records takes longer: five of them, or sixteen without, are read in one go.

    A session that changes in a pause does not disturb the pass.
    """
    replicas = filled(tmp_path, 1)
    wanted = {key(index): wants(0 if records else 2) for index in range(count)}
    for index in range(1, count):
        partition = with_partition(replicas, led(epoch=3), index)
        partition.append_as_leader([batch() for _ in range(2)], acks_all=True)
    reading = read_partitions(replicas, wanted, MUCH, Isolation.HIGH_WATERMARK, None, 100)
    costs = []
    try:
        while True:
            costs.append(next(reading))
            wanted.pop(key(len(costs)))
    except StopIteration as done:
        found = done.value
    assert len(costs) == pauses
    assert [a.key for a in found.answers] == [key(index) for index in range(count)]
