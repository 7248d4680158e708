"""A coordinator's view of its partition, at the epoch it was elected at."""

import asyncio
from pathlib import Path

import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.metrics import TopicMetrics
from odradek.core.types import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, TopicPartition
from odradek.log.log import Log
from odradek.records.batch import iter_batches, iter_records
from odradek.records.control import EndTransactionMarker
from odradek.replication.led_log import LedLog
from odradek.replication.partition import Partition
from tests.unit.log.support import NOW_MS, LogRuntime, config
from tests.unit.replication.support import ME, Surroundings, followed, led, opened, refused


def of_topic(path: Path, topic: str) -> LedLog:
    tp = TopicPartition(topic, 0)
    log = Log.open(LogRuntime(), str(path / str(tp)), tp, None, config())
    partition = Partition(log, ME, TopicMetrics(), Surroundings().context)
    partition.apply(led())
    return LedLog(partition)


def test_records_are_appended_as_one_batch(tmp_path: Path) -> None:
    log = LedLog(opened(tmp_path, led(epoch=3)))
    assert log.leader_epoch == 3
    assert log.append([(b"k", b"v"), (b"l", None)], NOW_MS) == 2
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (0, 2, 2)
    data = log.read(0, 1)
    (located,) = iter_batches(data)
    assert (located.producer_id, located.is_transactional) == (-1, False)
    assert [(r.timestamp, r.key, r.value) for r in iter_records(data, located)] == [
        (NOW_MS, b"k", b"v"),
        (NOW_MS, b"l", None),
    ]
    assert log.read(2, 100) == b""


@pytest.mark.parametrize(("topic", "sequence"), [(GROUP_METADATA_TOPIC, 0), (TRANSACTION_STATE_TOPIC, -1)])
def test_batches_have_the_sequence_that_apaches_coordinators_write(
    tmp_path: Path, topic: str, sequence: int
) -> None:
    log = of_topic(tmp_path, topic)
    log.append([(b"k", b"v")], NOW_MS)
    (located,) = iter_batches(log.read(0, 1))
    assert located.base_sequence == sequence


def test_offsets_in_a_transaction_are_ended_by_a_marker(tmp_path: Path) -> None:
    partition = opened(tmp_path, led())
    log = LedLog(partition)
    assert log.append([(b"k", b"v")], NOW_MS, (7, 2)) == 1
    (located,) = iter_batches(log.read(0, 1))
    assert (located.producer_id, located.producer_epoch, located.is_transactional) == (7, 2, True)
    assert partition.log.last_stable_offset == 0
    assert log.append_marker((7, 2), EndTransactionMarker(True, 1), 0, NOW_MS) == 2
    assert partition.log.last_stable_offset == 2


def test_a_batch_may_be_as_large_as_the_topic_allows(tmp_path: Path) -> None:
    log = LedLog(opened(tmp_path, led()))
    log.append([(b"k", b"v" * 100)], NOW_MS)
    size = len(log.read(0, 1))
    exact = LedLog(opened(tmp_path / "b", led(), max_message_bytes=size))
    assert exact.max_batch_bytes == size
    exact.append([(b"k", b"v" * 100)], NOW_MS)
    with refused(ErrorCode.RECORD_LIST_TOO_LARGE):
        exact.append([(b"k", b"v" * 101)], NOW_MS)
    assert exact.log_end_offset == 1


@pytest.mark.parametrize("later", [followed(2, epoch=1), led(epoch=1, at=1)], ids=["resigned", "re-elected"])
def test_nothing_is_written_at_another_epoch(tmp_path: Path, later: object) -> None:
    partition = opened(tmp_path, led())
    log = LedLog(partition)
    partition.apply(later)  # type: ignore[arg-type]
    with refused(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        log.append([(b"k", b"v")], NOW_MS)
    with refused(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        log.append_marker((7, 0), EndTransactionMarker(True, 0), 0, NOW_MS)
    assert partition.log.log_end_offset == 0


def test_a_commit_is_waited_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        partition = opened(tmp_path, led(1, 2))
        log = LedLog(partition)
        end_offset = log.append([(b"k", b"v")], NOW_MS)
        waiting = log.when_committed(end_offset)
        assert not waiting.done()
        partition.record_fetch(2, end_offset)
        await asyncio.wait_for(waiting, 5)
        assert log.when_committed(end_offset).done()

    asyncio.run(scenario())


def test_a_wait_at_another_epoch_fails_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        partition = opened(tmp_path, led(1, 2))
        log = LedLog(partition)
        end_offset = log.append([(b"k", b"v")], NOW_MS)
        during = log.when_committed(end_offset)
        partition.apply(followed(2, epoch=1))
        for waiting in (during, log.when_committed(end_offset)):
            assert waiting.done()
            error = waiting.exception()
            assert isinstance(error, KafkaError) and error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER

    asyncio.run(scenario())


def test_a_follower_has_no_led_log(tmp_path: Path) -> None:
    with refused(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        LedLog(opened(tmp_path, followed()))
