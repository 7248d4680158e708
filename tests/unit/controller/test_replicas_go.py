"""Brokers with replicas that lose a directory, start again or are forgotten: who leads then, and from which
ISR."""

from odradek.core.errors import ErrorCode
from odradek.metadata.image import PartitionRegistration
from odradek.metadata.records import PartitionChangeRecord
from odradek.metadata.replay import Replayer
from odradek.metadata.snapshot import image_records
from odradek.runtime.slices import at_once
from tests.unit.controller.harness import Harness, log_dir
from tests.unit.controller.replicated import SESSION_MS, alter, assign, brokers, disk, elect, fence, partition
from tests.unit.controller.test_unregistering import unregister


def test_a_failed_directory_takes_its_replicas_out_of_the_isr_and_no_others() -> None:
    h = brokers(3)
    h.create("other", -1, -1, assignments={0: [1, 2]})
    assign(h, 1, disk(1, 1), "other")
    h.heartbeat(1, offline_log_dirs=[disk(1, 0)])
    assert (partition(h).leader, partition(h).isr) == (2, (2, 3))
    assert (partition(h, "other").leader, partition(h, "other").isr) == (1, (1, 2))
    assert h.image.brokers[1].log_dirs == (disk(1, 1),)
    assert alter(h, [2, 3, 1]).error_code == 0, "only the leader's replica is looked at, as in Kafka"
    assert elect(h) == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "its directory is offline"


def test_a_failed_directory_of_a_follower_leaves_the_leader_alone() -> None:
    h = brokers(3)
    epoch = partition(h).leader_epoch
    h.heartbeat(3, offline_log_dirs=[disk(3, 0)])
    assert (partition(h).leader, partition(h).isr, partition(h).leader_epoch) == (1, (1, 2), epoch)


def test_a_broker_that_stops_reports_a_failed_directory_too() -> None:
    h = brokers(3)
    h.create("u", -1, -1, assignments={0: [1, 2]})
    h.heartbeat(1, want_shut_down=True)
    h.heartbeat(1, want_shut_down=True, offline_log_dirs=[disk(1, 0)])
    assert h.image.brokers[1].log_dirs == (disk(1, 1),)


def test_a_new_incarnation_of_a_broker_that_is_not_fenced_yet_leads_nothing() -> None:
    """It stopped cleanly, and nobody was there to hear of it."""
    h = brokers(3)
    before = h.image.brokers[1]
    assert not before.fenced
    answer = h.register(1, 2, before.epoch, log_dirs=[disk(1, 0), disk(1, 1)])
    assert answer.error_code == 0
    assert (partition(h).leader, partition(h).isr) == (2, (2, 3))
    assert h.image.brokers[1].fenced
    h.heartbeat(1)
    assert partition(h).leader == 2
    assert alter(h, [2, 3, 1]).error_code == 0


def test_a_new_incarnation_that_does_not_prove_a_clean_stop_waits_for_the_session() -> None:
    h = brokers(3)
    assert h.register(1, 2).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert partition(h).leader == 1
    h.now_ms += SESSION_MS - 1
    h.heartbeat(2)
    h.heartbeat(3)
    h.now_ms += 1
    assert h.register(1, 2, log_dirs=[disk(1, 0)]).error_code == 0
    assert (partition(h).leader, partition(h).isr, partition(h).elr) == (2, (2, 3), ())


def test_an_old_incarnation_may_change_nothing_any_more() -> None:
    h = brokers(3)
    old = h.image.brokers[1].epoch
    h.register(1, 2, old, log_dirs=[disk(1, 0)])
    assert h.heartbeat(1, broker_epoch=old).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_broker_that_is_forgotten_stays_eligible_but_comes_back_as_one_that_lost_its_records() -> None:
    h = brokers(2, configs={"min.insync.replicas": "2"})
    fence(h, 2)
    assert partition(h).elr == (2,)
    h.now_ms += SESSION_MS
    h.heartbeat(1)
    assert unregister(h, 2).error_code == 0
    assert partition(h).elr == (2,)
    fence(h, 1)
    assert partition(h).leader == -1, "nobody can be elected who is not registered"
    h.register(2, 2, log_dirs=[disk(2, 0)])
    assert partition(h).elr == (1,)


def moving(h: Harness) -> PartitionRegistration:
    """A reassignment from broker 1 to broker 3 that Apache's controller has begun."""
    topic = h.image.topics_by_name["t"]
    h.apply(
        [
            PartitionChangeRecord(
                partition_id=0,
                topic_id=topic.id,
                replicas=(3, 1, 2),
                adding_replicas=(3,),
                removing_replicas=(1,),
                directories=(log_dir(3), log_dir(1), log_dir(2)),
            )
        ]
    )
    return partition(h)


def test_a_reassignment_of_another_controller_is_kept_through_changes_and_snapshots() -> None:
    h = Harness()
    for broker_id in (1, 2, 3):
        h.start_broker(broker_id)
    h.create("t", -1, -1, assignments={0: [1, 2]})
    before = moving(h)
    assert (before.adding, before.removing, before.isr) == ((3,), (1,), (1, 2))
    alter(h, [1])
    fence(h, 1)
    now = partition(h)
    assert (now.replicas, now.adding, now.removing) == ((3, 1, 2), (3,), (1,))
    again = Replayer()
    records = list(image_records(h.image))
    again.take(at_once(again.stage(records, last_offset=9, epoch=1, timestamp_ms=0)))
    assert again.image.topics_by_name["t"].partitions[0] == now
