"""A replica takes its roles, appends what it may, and refuses the rest."""

import asyncio
from pathlib import Path

import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.metrics import TopicMetrics
from odradek.log.log import AppendInfo, Isolation
from odradek.records.check import CheckedRecords
from odradek.records.control import EndTransactionMarker
from odradek.replication.partition import Partition
from tests.unit.log.support import NOW_MS, batch, config, idempotent, records, transactional
from tests.unit.replication.support import ME, Poked, followed, led, opened, refused


def wait_of(partition: Partition, offset: int) -> list[KafkaError | None]:
    seen: list[KafkaError | None] = []
    partition.require_leader().commit_waiters.add(offset, seen.append)
    return seen


# --- roles ------------------------------------------------------------------------------------------------


def test_a_replica_without_metadata_has_no_role(tmp_path: Path) -> None:
    partition = opened(tmp_path)
    assert not partition.is_leader and not partition.is_leading
    assert (partition.leader_id, partition.leader_epoch, partition.partition_epoch) == (-1, -1, -1)
    with refused(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        partition.require_leader()


def test_a_new_leader_begins_its_epoch_where_its_log_ends(tmp_path: Path) -> None:
    partition = opened(tmp_path, led(epoch=3))
    partition.append_as_leader([batch(4)], acks_all=True)
    assert partition.apply(led(epoch=5, at=1))
    partition.append_as_leader([batch(1)], acks_all=True)
    assert partition.require_leader().epoch_start_offset == 4
    assert partition.log.end_offset_for_epoch(3) == (3, 4)
    assert partition.log.end_offset_for_epoch(5) == (5, 5)


def test_a_new_leader_commits_what_it_has_if_it_is_alone(tmp_path: Path) -> None:
    partition = opened(tmp_path)
    partition.log.append_as_leader([batch(4)], 0)
    partition.apply(led(epoch=1))
    assert partition.log.high_watermark == 4


def test_a_new_epoch_forgets_the_followers_and_fails_those_who_wait(tmp_path: Path) -> None:
    partition = opened(tmp_path, led(1, 2))
    partition.append_as_leader([batch(4)], acks_all=True)
    partition.record_fetch(2, 2)
    before, waiting = partition.leader, wait_of(partition, 4)
    assert partition.apply(led(1, 2, epoch=1, at=1))
    assert partition.leader is not before
    assert [error and error.code for error in waiting] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    partition.append_as_leader([batch(1)], acks_all=True)
    assert partition.log.high_watermark == 2, "what the follower has now is not known"


def test_whoever_waits_hears_of_the_new_leader(tmp_path: Path) -> None:
    partition = opened(tmp_path, led(1, 2))
    partition.append_as_leader([batch(4)], acks_all=True)
    seen: list[tuple[int, int, bool]] = []
    partition.require_leader().commit_waiters.add(
        4, lambda _: seen.append((partition.leader_id, partition.leader_epoch, partition.is_leader))
    )
    fetch = Poked()
    partition.fetch_waiters.add(fetch, fetch.partition)
    assert partition.apply(followed(2, epoch=1))
    assert seen == [(2, 1, False)]
    assert fetch.times == 1


def test_metadata_that_is_older_than_what_is_known_changes_nothing(tmp_path: Path) -> None:
    partition = opened(tmp_path, led(1, 2, at=5))
    assert not partition.apply(led(1, at=4))
    assert partition.require_leader().isr.members == (1, 2)
    assert not partition.apply(led(1, replicas=(1, 2), at=5)), "the epoch stays"
    assert partition.require_leader().isr.members == (1,)


def test_leader_epochs_never_go_back(tmp_path: Path) -> None:
    partition = opened(tmp_path, led(epoch=3))
    with pytest.raises(AssertionError):
        partition.apply(led(epoch=2, at=1))
    with pytest.raises(AssertionError):
        partition.apply(followed(2, epoch=3))
    assert opened(tmp_path / "b", followed(2, epoch=3)).leader is None


def test_only_the_leader_of_the_callers_epoch_answers(tmp_path: Path) -> None:
    partition = opened(tmp_path, led(epoch=3))
    assert partition.require_leader() is partition.require_leader(3) is partition.leader
    with refused(ErrorCode.FENCED_LEADER_EPOCH):
        partition.require_leader(2)
    with refused(ErrorCode.UNKNOWN_LEADER_EPOCH):
        partition.require_leader(4)
    partition.apply(followed(2, epoch=4))
    with refused(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        partition.require_leader(4)


def test_a_leader_whose_directory_failed_does_not_lead(tmp_path: Path) -> None:
    partition = opened(tmp_path, led())
    assert partition.is_leading
    partition.log.fail(OSError(5, "broken"), "testing")
    assert partition.is_leader and not partition.is_leading


def test_stopping_fails_every_wait(tmp_path: Path) -> None:
    partition = opened(tmp_path, led(1, 2))
    partition.append_as_leader([batch(1)], acks_all=True)
    waiting, fetch = wait_of(partition, 1), Poked()
    partition.fetch_waiters.add(fetch, fetch.partition)
    partition.stop(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert [error and error.code for error in waiting] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert not partition.is_leader and fetch.times == 1 and partition.log.settling.on_settled is None
    opened(tmp_path / "b").stop(ErrorCode.KAFKA_STORAGE_ERROR)  # in no role


def test_a_new_configuration_counts_for_log_rules_and_leader(tmp_path: Path) -> None:
    partition = opened(tmp_path)
    partition.configure(config(max_message_bytes=100))
    assert partition.rules.max_message_bytes == partition.log.config.max_message_bytes == 100
    partition.apply(led(1, 2))
    partition.configure(config(flush_messages=1))
    assert partition.require_leader().flushes
    partition.configure(config(min_insync_replicas=2))
    assert not partition.require_leader().flushes and partition.require_leader().at_min_isr


# --- in ---------------------------------------------------------------------------------------------------


def test_an_append_is_counted_and_wakes_fetches(tmp_path: Path) -> None:
    partition, fetch = opened(tmp_path, led()), Poked()
    partition.append_as_leader([batch(2)], acks_all=True)
    partition.fetch_waiters.add(fetch, fetch.partition)
    sets = [batch(3), batch(1)]
    size = sum(len(s.buffer) for s in sets)
    before = partition.metrics.bytes_in
    first, second = partition.append_as_leader(sets, acks_all=True)
    assert isinstance(first, AppendInfo) and isinstance(second, AppendInfo)
    assert (first.first_offset, first.last_offset, second.first_offset) == (2, 4, 5)
    assert partition.metrics.messages_in == 6
    assert partition.metrics.bytes_in == before + size
    assert fetch.times == 1
    assert partition.log.high_watermark == 6


def test_an_append_that_writes_nothing_wakes_nobody(tmp_path: Path) -> None:
    partition, fetch = opened(tmp_path, led()), Poked()
    partition.append_as_leader([idempotent(0)], acks_all=True)
    partition.fetch_waiters.add(fetch, fetch.partition)
    (again,) = partition.append_as_leader([idempotent(0)], acks_all=True)
    assert isinstance(again, AppendInfo) and again.duplicate
    assert fetch.times == 0 and partition.metrics.messages_in == 1


def test_under_min_isr_only_acks_all_is_refused(tmp_path: Path) -> None:
    partition = opened(tmp_path, led(1, replicas=(1, 2)), min_insync_replicas=2)
    with refused(ErrorCode.NOT_ENOUGH_REPLICAS):
        partition.append_as_leader([batch()], acks_all=True)
    with refused(ErrorCode.NOT_ENOUGH_REPLICAS):
        partition.append_own(batch())
    assert partition.log.log_end_offset == 0
    partition.append_as_leader([batch()], acks_all=False)
    assert (partition.log.log_end_offset, partition.log.high_watermark) == (1, 0)


def test_each_checked_set_has_its_outcome(tmp_path: Path) -> None:
    partition = opened(tmp_path, led())
    bad = KafkaError(ErrorCode.CORRUPT_MESSAGE)
    outcomes = partition.append_checked([batch(2), bad, batch(1)], acks_all=True)
    assert [o.first_offset if isinstance(o, AppendInfo) else o for o in outcomes] == [0, bad, 2]
    assert (partition.metrics.produces, partition.metrics.failed_produces) == (3, 1)
    assert partition.append_checked([bad], acks_all=True) == [bad]
    (duplicate,) = partition.append_checked([batch(1)], acks_all=True)
    assert isinstance(duplicate, AppendInfo)
    assert (partition.metrics.produces, partition.metrics.failed_produces) == (5, 2)


@pytest.mark.parametrize("acks_all", [True, False])
def test_checked_sets_are_refused_where_nothing_may_be_appended(tmp_path: Path, acks_all: bool) -> None:
    follower = opened(tmp_path / "a", followed())
    outcomes = follower.append_checked([batch(), batch()], acks_all=acks_all)
    assert [o.code for o in outcomes if isinstance(o, KafkaError)] == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2
    assert follower.metrics.failed_produces == 2
    lonely = opened(tmp_path / "b", led(1, replicas=(1, 2)), min_insync_replicas=2)
    (outcome,) = lonely.append_checked([batch()], acks_all=acks_all)
    if acks_all:
        assert isinstance(outcome, KafkaError) and outcome.code is ErrorCode.NOT_ENOUGH_REPLICAS
    else:
        assert isinstance(outcome, AppendInfo)


def test_a_follower_appends_nothing_of_its_own(tmp_path: Path) -> None:
    with refused(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        opened(tmp_path, followed()).append_own(batch())


def test_what_the_log_refuses_of_the_nodes_own_is_raised(tmp_path: Path) -> None:
    partition = opened(tmp_path, led())
    partition.append_own(idempotent(0, epoch=4))
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        partition.append_own(idempotent(0, epoch=3))


def test_a_marker_ends_the_transaction_and_voids_its_guard(tmp_path: Path) -> None:
    partition = opened(tmp_path, led())
    partition.append_as_leader([transactional(0, 2)], acks_all=True)
    assert partition.log.last_stable_offset == 0
    guard = partition.verification.begin(7)
    info = partition.append_marker((7, 0), EndTransactionMarker(True, 3), 0, NOW_MS)
    assert (info.first_offset, partition.log.last_stable_offset) == (2, 3)
    assert not partition.verification.holds(guard)
    read = partition.read(2, 1 << 20, Isolation.LOG_END, True)
    assert read.slice is not None
    marker = CheckedRecords(read.slice.read(), []).buffer
    assert marker[22] == 0x30, "transactional and control"
    assert records(partition.log)[-1].timestamp == NOW_MS


def test_a_commit_is_waited_for_only_where_it_is_to_come(tmp_path: Path) -> None:
    async def scenario() -> None:
        partition = opened(tmp_path, led(1, 2))
        partition.append_as_leader([batch(3)], acks_all=True)
        partition.record_fetch(2, 2)
        assert partition.when_committed(2, None) is None
        waiting = partition.when_committed(3, None)
        assert waiting is not None
        partition.record_fetch(2, 3)
        await asyncio.wait_for(waiting, 5)
        partition.apply(followed(2, epoch=1))
        with refused(ErrorCode.NOT_LEADER_OR_FOLLOWER):
            partition.when_committed(4, None)

    asyncio.run(scenario())


def test_progress_of_a_follower_wakes_those_who_read_committed_records(tmp_path: Path) -> None:
    partition, fetch = opened(tmp_path, led(1, 2)), Poked()
    partition.append_as_leader([batch(3)], acks_all=True)
    partition.fetch_waiters.add(fetch, fetch.partition)
    partition.record_fetch(2, 0)
    assert fetch.times == 0
    partition.record_fetch(2, 2)
    assert fetch.times == 1
    partition.apply(followed(2, epoch=1))
    with refused(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        partition.record_fetch(2, 3)


def test_a_flush_wakes_those_who_read_committed_records(tmp_path: Path) -> None:
    partition, fetch = opened(tmp_path, led(), flush_messages=1), Poked()
    partition.append_as_leader([batch(3)], acks_all=True)
    assert partition.log.high_watermark == 0
    partition.fetch_waiters.add(fetch, fetch.partition)
    partition.log.flush()
    assert (partition.log.high_watermark, fetch.times) == (3, 1)
    partition.append_as_leader([batch(3)], acks_all=True)
    partition.apply(followed(2, epoch=1))
    partition.log.flush()
    assert partition.log.high_watermark == 3, "a follower commits nothing by itself"


# --- out --------------------------------------------------------------------------------------------------


def test_where_the_log_of_a_caller_parts_from_the_leaders(tmp_path: Path) -> None:
    """Epoch 1 ends at 10, epoch 4 at 20."""
    partition = opened(tmp_path, led(epoch=1))
    partition.append_as_leader([batch(10)], acks_all=True)
    partition.apply(led(epoch=4, at=1))
    partition.append_as_leader([batch(10)], acks_all=True)
    assert partition.diverging_epoch(1, 10) is None
    assert partition.diverging_epoch(4, 20) is None
    assert partition.diverging_epoch(4, 5) is None
    assert partition.diverging_epoch(1, 11) == (1, 10), "it has more of the epoch than the leader"
    assert partition.diverging_epoch(3, 10) == (1, 10), "it has an epoch that the leader has not"
    assert partition.diverging_epoch(4, 21) == (4, 20)
    with refused(ErrorCode.OFFSET_OUT_OF_RANGE):
        partition.diverging_epoch(5, 3)


def test_a_partition_counts_for_its_topic(tmp_path: Path) -> None:
    partition = opened(tmp_path)
    assert isinstance(partition.metrics, TopicMetrics)
    assert (partition.broker_id, partition.topic_partition) == (ME, partition.log.topic_partition)
