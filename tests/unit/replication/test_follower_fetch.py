"""When a follower's fetch counts as progress."""

from pathlib import Path

import pytest

from odradek.core.errors import ErrorCode
from odradek.log.log import Isolation
from odradek.replication.fetch import PartitionAnswer, read_partitions
from odradek.replication.fetch_sessions import PartitionFetch, PartitionKey
from odradek.replication.follower_fetch import FetchingReplica, record_progress
from odradek.replication.manager import ReplicaManager
from odradek.replication.partition import Partition
from odradek.runtime.slices import at_once
from tests.unit.log.support import batch
from tests.unit.replication.support import ME, TOPIC, Poked, followed, led, managed, with_partition

KEY = PartitionKey(TOPIC.name, 0)
FOLLOWER = FetchingReplica(2, broker_epoch=40)


def arrives(
    replicas: ReplicaManager, fetch: PartitionFetch, follower: FetchingReplica = FOLLOWER
) -> PartitionAnswer:
    """A follower's fetch as the node handles it: progress first, then one read."""
    at_once(record_progress(replicas, {KEY: fetch}, follower))
    read = at_once(read_partitions(replicas, {KEY: fetch}, 1 << 20, Isolation.LOG_END, follower, 8))
    (answer,) = read.answers
    return answer


def wants(offset: int, **fields: int) -> PartitionFetch:
    return PartitionFetch(offset, 1 << 20, **fields)


def led_at_two_epochs(replicas: ReplicaManager) -> Partition:
    """Epoch 5 up to offset 10, epoch 7 up to 20; broker 2 is in the ISR, 3 only in the assignment."""
    partition = with_partition(replicas, led(1, 2, replicas=(1, 2, 3), epoch=5))
    partition.append_as_leader([batch(10)], acks_all=True)
    partition.apply(led(1, 2, replicas=(1, 2, 3), epoch=7, at=1))
    partition.append_as_leader([batch(10)], acks_all=True)
    assert partition.log.high_watermark == 0
    return partition


def test_a_follower_has_everything_below_the_offset_it_asks_for(tmp_path: Path) -> None:
    replicas = managed(tmp_path)
    partition = led_at_two_epochs(replicas)
    waiting = Poked()
    partition.fetch_waiters.add(waiting, waiting.partition)
    answer = arrives(replicas, wants(12, current_leader_epoch=7, last_fetched_epoch=7))
    assert (answer.error, answer.diverging_epoch, answer.high_watermark) == (ErrorCode.NONE, None, 12)
    assert answer.size > 0
    assert waiting.times == 1
    arrives(replicas, wants(12, last_fetched_epoch=7))
    assert waiting.times == 1, "nothing moved"


def test_a_diverging_fetch_is_no_progress(tmp_path: Path) -> None:
    """The follower has 18 records of epoch 5, of which the leader has 10."""
    replicas = managed(tmp_path)
    partition = led_at_two_epochs(replicas)
    answer = arrives(replicas, wants(18, last_fetched_epoch=5))
    assert (answer.error, answer.diverging_epoch, answer.size) == (ErrorCode.NONE, (5, 10), 0)
    assert partition.log.high_watermark == 0
    arrives(replicas, wants(10, last_fetched_epoch=5))
    assert partition.log.high_watermark == 10, "it has truncated"


def test_reading_again_is_no_progress(tmp_path: Path) -> None:
    """A fetch that waits reads again when the partition moves; the follower has not said anything new."""
    replicas = managed(tmp_path)
    partition = led_at_two_epochs(replicas)
    read = read_partitions(replicas, {KEY: wants(20)}, 1 << 20, Isolation.LOG_END, FOLLOWER, 8)
    assert at_once(read).answers[0].high_watermark == 0
    assert partition.log.high_watermark == 0


@pytest.mark.parametrize(
    ("broker_id", "leader_epoch", "error"),
    [
        (9, 7, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (9, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ME, 7, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (2, 6, ErrorCode.FENCED_LEADER_EPOCH),
        (2, 8, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_only_an_assigned_replica_at_the_leader_epoch_makes_progress(
    tmp_path: Path, broker_id: int, leader_epoch: int, error: ErrorCode
) -> None:
    replicas = managed(tmp_path)
    partition = led_at_two_epochs(replicas)
    answer = arrives(replicas, wants(20, current_leader_epoch=leader_epoch), FetchingReplica(broker_id, -1))
    assert (answer.error, answer.size) == (error, 0)
    assert partition.log.high_watermark == 0


@pytest.mark.parametrize(("epoch", "counts"), [(39, False), (40, True), (41, True), (-1, True)])
def test_a_fetch_from_before_a_restart_is_refused(tmp_path: Path, epoch: int, counts: bool) -> None:
    """-1 is sent by brokers that know no epoch; a newer one is ahead of our metadata."""
    replicas = managed(tmp_path, {2: 40})
    partition = led_at_two_epochs(replicas)
    answer = arrives(replicas, wants(20), FetchingReplica(2, epoch))
    assert answer.error is (ErrorCode.NONE if counts else ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert answer.current_leader == (None if counts else (ME, 7))
    assert partition.log.high_watermark == (20 if counts else 0)


def test_a_broker_that_is_not_alive_has_no_epoch_to_compare(tmp_path: Path) -> None:
    replicas = managed(tmp_path, {3: 99})
    partition = led_at_two_epochs(replicas)
    assert arrives(replicas, wants(20)).error is ErrorCode.NONE
    assert partition.log.high_watermark == 20


def test_an_offset_outside_the_log_is_no_progress(tmp_path: Path) -> None:
    replicas = managed(tmp_path)
    partition = led_at_two_epochs(replicas)
    assert arrives(replicas, wants(21)).error is ErrorCode.OFFSET_OUT_OF_RANGE
    assert partition.log.high_watermark == 0
    arrives(replicas, wants(20))
    assert partition.log.high_watermark == 20
    replicas.delete_records(partition.topic_partition, 15)
    assert arrives(replicas, wants(14)).error is ErrorCode.OFFSET_OUT_OF_RANGE
    partition.append_as_leader([batch(1)], acks_all=True)
    arrives(replicas, wants(21))
    assert partition.log.high_watermark == 21


def test_an_epoch_that_the_leader_does_not_know_is_no_progress(tmp_path: Path) -> None:
    replicas = managed(tmp_path)
    partition = led_at_two_epochs(replicas)
    assert arrives(replicas, wants(9, last_fetched_epoch=8)).error is ErrorCode.OFFSET_OUT_OF_RANGE
    assert arrives(replicas, wants(9, last_fetched_epoch=4)).diverging_epoch == (4, 0)
    assert partition.log.high_watermark == 0


def test_a_replica_outside_the_isr_does_not_move_the_high_watermark(tmp_path: Path) -> None:
    replicas = managed(tmp_path)
    partition = led_at_two_epochs(replicas)
    assert arrives(replicas, wants(20), FetchingReplica(3, -1)).size == 0
    assert partition.log.high_watermark == 0
    arrives(replicas, wants(11))
    assert partition.log.high_watermark == 11


def test_followers_and_missing_partitions_record_nothing(tmp_path: Path) -> None:
    replicas = managed(tmp_path)
    assert arrives(replicas, wants(0)).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    partition = with_partition(replicas, followed())
    answer = arrives(replicas, wants(0))
    assert (answer.error, answer.current_leader) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, (2, 1))
    assert partition.log.high_watermark == 0
