"""What a leader knows of its followers, and what that commits."""

from pathlib import Path

import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.replication.leader import PartitionLeader
from odradek.replication.partition import Partition
from tests.unit.log.support import append, batch, config
from tests.unit.replication.support import ME, Poked, led, opened, refused


def leading(path: Path, *isr: int, records: int = 10, **changes: int) -> tuple[Partition, PartitionLeader]:
    """Brokers 1, 2 and 3 have replicas; records are in the log already."""
    partition = opened(path, led(*isr, replicas=(1, 2, 3)), **changes)
    partition.append_as_leader([batch(records)], acks_all=False)
    return partition, partition.require_leader()


def outcomes(leader: PartitionLeader, offset: int) -> list[KafkaError | None]:
    seen: list[KafkaError | None] = []
    leader.commit_waiters.add(offset, seen.append)
    return seen


def test_the_high_watermark_follows_the_slowest_in_sync_replica(tmp_path: Path) -> None:
    partition, leader = leading(tmp_path, 1, 2, 3)
    assert not leader.alone
    assert not leader.record_fetch(2, 9), "3 was not heard yet"
    assert leader.record_fetch(3, 4)
    assert partition.log.high_watermark == 4
    assert not leader.record_fetch(2, 10)
    assert leader.record_fetch(3, 8)
    assert partition.log.high_watermark == 8


def test_the_high_watermark_never_goes_back(tmp_path: Path) -> None:
    partition, leader = leading(tmp_path, 1, 2)
    leader.record_fetch(2, 8)
    assert not leader.record_fetch(2, 3)
    assert partition.log.high_watermark == 8


def test_waits_end_when_their_offset_is_committed(tmp_path: Path) -> None:
    _, leader = leading(tmp_path, 1, 2)
    early, late = outcomes(leader, 5), outcomes(leader, 6)
    leader.record_fetch(2, 5)
    assert (early, late) == ([None], [])


def test_a_smaller_isr_commits_what_its_members_have(tmp_path: Path) -> None:
    partition, leader = leading(tmp_path, 1, 2, 3)
    leader.record_fetch(2, 6)
    waiting = outcomes(leader, 6)
    partition.apply(led(1, 2, replicas=(1, 2, 3), at=1))
    assert partition.leader is leader, "the same leader epoch"
    assert partition.log.high_watermark == 6
    assert waiting == [None]
    partition.apply(led(1, replicas=(1, 2, 3), at=2))
    assert partition.log.high_watermark == 10


def test_nothing_is_committed_under_min_isr(tmp_path: Path) -> None:
    partition, leader = leading(tmp_path, 1, 2, min_insync_replicas=2)
    assert leader.at_min_isr and not leader.under_min_isr
    partition.apply(led(1, replicas=(1, 2, 3), at=1))
    assert leader.under_min_isr and not leader.at_min_isr
    assert not leader.advance_high_watermark()
    assert partition.log.high_watermark == 0
    assert leader.not_enough_replicas().code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert leader.not_enough_replicas().message == (
        "The size of the current ISR (1,) is insufficient to satisfy the min.isr requirement of 2 "
        "for partition orders-0"
    )
    partition.apply(led(1, 2, replicas=(1, 2, 3), at=2))
    leader.record_fetch(2, 7)
    assert partition.log.high_watermark == 7


def test_min_isr_is_at_most_the_number_of_replicas(tmp_path: Path) -> None:
    leader = opened(tmp_path, led(1, 2), min_insync_replicas=5).require_leader()
    assert (leader.min_isr, leader.at_min_isr, leader.under_min_isr) == (2, True, False)


def test_min_isr_follows_the_topics_configuration(tmp_path: Path) -> None:
    partition, leader = leading(tmp_path, 1, 2)
    partition.configure(config(min_insync_replicas=3))
    assert leader.under_min_isr
    partition.configure(config(min_insync_replicas=1))
    assert not leader.under_min_isr and not leader.at_min_isr


def test_a_smaller_min_isr_commits_what_waits(tmp_path: Path) -> None:
    partition, leader = leading(tmp_path, 1, min_insync_replicas=2)
    waiting, seen = Poked(), outcomes(leader, 10)
    partition.fetch_waiters.add(waiting, waiting.partition)
    partition.configure(config(min_insync_replicas=1))
    assert partition.log.high_watermark == 10
    assert (waiting.times, seen) == (1, [None])


def test_a_replica_that_left_the_assignment_starts_from_nothing_when_it_is_back(tmp_path: Path) -> None:
    partition, leader = leading(tmp_path, 1, 2)
    leader.record_fetch(3, 9)
    leader.record_fetch(2, 5)
    partition.apply(led(1, 2, replicas=(1, 2), at=1))
    partition.apply(led(1, 2, 3, replicas=(1, 2, 3), at=2))
    leader.record_fetch(2, 10)
    assert partition.log.high_watermark == 5, "what it had is not known"
    leader.record_fetch(3, 10)
    assert partition.log.high_watermark == 10


def test_acknowledgements_wait_for_a_flush_where_the_topic_asks_for_it(tmp_path: Path) -> None:
    partition, leader = leading(tmp_path, 1, 2, flush_messages=1)
    assert leader.flushes
    flushed: list[KafkaError | None] = []
    leader.flush_waiters.add(10, flushed.append)
    leader.record_fetch(2, 10)
    assert partition.log.high_watermark == 0 and flushed == []
    partition.log.flush()
    assert partition.log.high_watermark == 10 and flushed == [None]


def test_a_new_leader_is_caught_up_when_all_it_was_elected_with_is_committed(tmp_path: Path) -> None:
    partition = opened(tmp_path)
    append(partition.log, batch(3))
    partition.log.append_as_leader([batch(4)], 0)
    partition.apply(led(1, 2, epoch=1))
    leader = partition.require_leader()
    assert leader.epoch_start_offset == 7
    leader.record_fetch(2, 6)
    assert not leader.is_caught_up
    leader.record_fetch(2, 7)
    assert leader.is_caught_up


@pytest.mark.parametrize("broker_id", [ME, 4])
def test_only_other_replicas_of_the_assignment_follow(tmp_path: Path, broker_id: int) -> None:
    _, leader = leading(tmp_path, 1, 2)
    leader.require_replica(3, -1)
    with refused(ErrorCode.UNKNOWN_LEADER_EPOCH):
        leader.require_replica(broker_id, 0)
    with refused(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        leader.require_replica(broker_id, -1)


@pytest.mark.parametrize(("replica_id", "offset"), [(4, 0), (ME, 0), (2, 11), (2, -1)])
def test_progress_that_cannot_be_is_a_fault_of_ours(tmp_path: Path, replica_id: int, offset: int) -> None:
    _, leader = leading(tmp_path, 1, 2)
    with pytest.raises(AssertionError):
        leader.record_fetch(replica_id, offset)


@pytest.mark.parametrize(
    "registration",
    [
        led(2, replicas=(1, 2)),
        led(1, 4, replicas=(1, 2)),
        led(1, 2, epoch=1),
        led(1, 2)._replace(leader=2),
    ],
    ids=["leader outside the ISR", "ISR outside the assignment", "another epoch", "another leader"],
)
def test_metadata_that_cannot_be_is_refused(tmp_path: Path, registration: object) -> None:
    _, leader = leading(tmp_path, 1, 2)
    before = leader.isr
    with pytest.raises(AssertionError):
        leader.update(registration)  # type: ignore[arg-type]
    assert leader.isr == before


def test_a_leader_that_resigns_fails_every_wait(tmp_path: Path) -> None:
    _, leader = leading(tmp_path, 1, 2)
    seen = outcomes(leader, 10)
    leader.flush_waiters.add(10, seen.append)
    leader.resign(ErrorCode.KAFKA_STORAGE_ERROR)
    assert [error and error.code for error in seen] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
