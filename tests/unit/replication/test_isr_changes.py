"""A leader that proposes to change its ISR, and what the controller's answer does. The test is the
controller."""

from pathlib import Path
from typing import Any

import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.image import RECOVERED, RECOVERING
from odradek.replication.isr import CommittedIsr, PendingExpand, PendingShrink
from odradek.replication.leader import PartitionLeader
from odradek.replication.partition import Partition
from odradek.wire import responses
from tests.unit.log.support import batch
from tests.unit.replication.support import MAX_LAG_MS, ME, TOPIC, Poked, Surroundings, led, opened


class Story:
    """A leader of 10 records. Brokers 2 and 3 are alive, with epochs 20 and 30."""

    def __init__(self, path: Path, *isr: int, **changes: Any) -> None:
        self.around = Surroundings({1: 10, 2: 20, 3: 30})
        self.partition: Partition = opened(path, led(*isr, replicas=(1, 2, 3)), self.around, **changes)
        self.partition.append_as_leader([batch(10)], acks_all=False)
        self.leader: PartitionLeader = self.partition.require_leader()

    @property
    def high_watermark(self) -> int:
        return self.partition.log.high_watermark

    def fetch(self, replica_id: int, offset: int, epoch: int | None = None) -> None:
        self.partition.record_fetch(replica_id, offset, 0, 10 * replica_id if epoch is None else epoch)

    def pass_ms(self, ms: int) -> None:
        self.around.clock.ms += ms
        self.leader.tick()

    def proposal(self) -> list[tuple[int, int]] | None:
        """Send what is proposed: the ISR with broker epochs."""
        request = self.around.proposed()
        if request is None:
            return None
        (topic,) = request.topics
        (row,) = topic.partitions
        assert (request.broker_id, request.broker_epoch, topic.topic_id) == (ME, 10, TOPIC.id)
        assert (row.partition_index, row.leader_epoch) == (0, self.leader.epoch)
        assert row.leader_recovery_state == RECOVERED
        assert row.partition_epoch == self.leader.partition_epoch
        assert list(row.new_isr) == [state.broker_id for state in row.new_isr_with_epochs]
        return [(state.broker_id, state.broker_epoch) for state in row.new_isr_with_epochs]

    def answer(self, *isr: int, epoch: int = 0, at: int = 1, error: ErrorCode = ErrorCode.NONE) -> bool:
        """Answer what was sent. Returns whether it is to be sent again."""
        types = responses.alter_partition
        row = types.PartitionData(
            partition_index=0,
            error_code=error,
            leader_id=ME,
            leader_epoch=epoch,
            isr=isr,
            partition_epoch=at,
        )
        topic = types.TopicData(topic_id=TOPIC.id, partitions=[row])
        return self.around.answer(types.AlterPartitionResponse(topics=[topic]))


# --- expand -------------------------------------------------------------------------------------------


def test_a_replica_with_all_committed_records_is_proposed(tmp_path: Path) -> None:
    story = Story(tmp_path, 1, 2)
    story.fetch(2, 6)
    story.fetch(3, 5)
    assert type(story.leader.isr) is CommittedIsr and story.proposal() is None, "one record short"
    story.fetch(3, 6)
    assert type(story.leader.isr) is PendingExpand
    assert story.proposal() == [(1, 10), (2, 20), (3, 30)]
    story.fetch(2, 10)
    assert story.high_watermark == 6, "3 counts at once"
    assert story.around.metrics.isr.expands == 0
    assert not story.answer(1, 2, 3)
    assert story.leader.isr == CommittedIsr((1, 2, 3)) and story.leader.partition_epoch == 1
    assert story.around.metrics.isr.expands == 1
    story.fetch(3, 10)
    assert story.high_watermark == 10


def test_a_replica_joins_only_when_it_has_reached_the_leader_epoch(tmp_path: Path) -> None:
    """What was committed under the last leader may lie above the new leader's high watermark."""
    story = Story(tmp_path, 1, 2)
    story.partition.apply(led(1, 2, replicas=(1, 2, 3), epoch=1, at=1))
    leader = story.partition.require_leader()
    assert (story.high_watermark, leader.epoch_start_offset) == (0, 10)
    story.fetch(3, 9)
    assert story.around.proposed() is None
    story.fetch(3, 10)
    assert story.around.proposed() is not None


@pytest.mark.parametrize("change", ["fenced", "in_controlled_shutdown"])
def test_a_replica_whose_broker_may_not_lead_is_not_proposed(tmp_path: Path, change: str) -> None:
    story = Story(tmp_path, 1, 2)
    story.around.register(3, 30, **{change: True})
    story.fetch(3, 10)
    assert story.proposal() is None
    story.around.register(3, 30)
    story.fetch(3, 10)
    assert story.proposal() is not None


@pytest.mark.parametrize(("sent", "joins"), [(30, True), (-1, True), (31, False)])
def test_the_fetch_must_have_the_epoch_of_the_registration(tmp_path: Path, sent: int, joins: bool) -> None:
    story = Story(tmp_path, 1, 2)
    story.fetch(3, 10, epoch=sent)
    proposal = story.proposal()
    assert (proposal is not None) is joins
    if proposal is not None:
        assert proposal == [(1, 10), (2, -1), (3, sent)], "2 has not fetched yet"


def test_a_fetch_from_before_a_restart_says_nothing(tmp_path: Path) -> None:
    """The leader has heard of the restart before its metadata shows it."""
    story = Story(tmp_path, 1, 2)
    story.fetch(2, 5, epoch=21)
    story.fetch(2, 10, epoch=20)
    assert story.high_watermark == 5
    story.fetch(2, 6, epoch=21)
    assert story.high_watermark == 6


def test_an_unknown_broker_is_not_proposed(tmp_path: Path) -> None:
    story = Story(tmp_path, 1, 2)
    story.around.image = story.around.image._replace(brokers={})
    story.fetch(3, 10)
    assert story.proposal() is None


def test_one_change_at_a_time(tmp_path: Path) -> None:
    story = Story(tmp_path, 1)
    story.fetch(2, 10)
    story.fetch(3, 10)
    assert story.proposal() == [(1, 10), (2, 20)]
    story.answer(1, 2)
    assert story.proposal() is None, "3 joins with its next fetch"
    story.fetch(3, 10)
    assert story.proposal() == [(1, 10), (2, 20), (3, 30)]


def test_a_replica_outside_that_keeps_up_holds_the_high_watermark_back(tmp_path: Path) -> None:
    """It may be in the ISR already, and the answer is on its way."""
    story = Story(tmp_path, 1)
    assert story.leader.alone
    story.fetch(2, 10)
    story.proposal()
    story.answer(error=ErrorCode.INELIGIBLE_REPLICA)
    assert story.leader.isr == CommittedIsr((1,)) and not story.leader.alone
    story.partition.append_as_leader([batch(5)], acks_all=True)
    assert story.high_watermark == 10
    story.around.register(2, 20, fenced=True)
    story.leader.tick()
    assert story.high_watermark == 15, "a fenced broker cannot join"


def test_a_replica_outside_that_falls_behind_is_not_waited_for(tmp_path: Path) -> None:
    story = Story(tmp_path, 1)
    story.fetch(2, 10)
    story.proposal()
    story.answer(error=ErrorCode.INELIGIBLE_REPLICA)
    story.partition.append_as_leader([batch(5)], acks_all=True)
    waiting = Poked()
    story.partition.fetch_waiters.add(waiting, waiting.partition)
    story.pass_ms(MAX_LAG_MS)
    assert story.high_watermark == 10 and waiting.times == 0
    story.pass_ms(1)
    assert story.high_watermark == 15 and waiting.times == 1
    assert story.leader.alone, "it has stopped to fetch"
    story.fetch(2, 3)
    assert not story.leader.alone
    story.partition.append_as_leader([batch(1)], acks_all=True)
    assert story.high_watermark == 16, "it is far behind"


def test_a_leader_after_an_unclean_election_is_recovered_with_its_first_change(tmp_path: Path) -> None:
    """Without it the controller would let nobody join."""
    story = Story(tmp_path, 1)
    recovering = led(1, replicas=(1, 2, 3), epoch=1, at=1)._replace(leader_recovery_state=RECOVERING)
    story.partition.apply(recovering)
    story.fetch(2, 10)
    request = story.around.proposed()
    assert request is not None
    (row,) = request.topics[0].partitions
    assert (row.leader_recovery_state, list(row.new_isr)) == (RECOVERED, [1, 2])


# --- shrink -------------------------------------------------------------------------------------------


def test_a_member_that_does_not_keep_up_leaves_when_the_controller_says_so(tmp_path: Path) -> None:
    story = Story(tmp_path, 1, 2, 3)
    story.fetch(2, 10)
    story.fetch(3, 4)
    story.pass_ms(MAX_LAG_MS)
    assert story.proposal() is None, "it has the time of a new leader's ISR"
    story.pass_ms(1)
    assert type(story.leader.isr) is PendingShrink
    assert story.proposal() == [(1, 10), (2, 20)]
    assert story.high_watermark == 4, "3 counts until the answer"
    waiting = Poked()
    story.partition.fetch_waiters.add(waiting, waiting.partition)
    assert not story.answer(1, 2)
    assert story.high_watermark == 10 and waiting.times == 1
    assert story.around.metrics.isr.shrinks == 1
    assert story.leader.is_under_replicated


def test_silence_alone_is_no_lag(tmp_path: Path) -> None:
    """A follower at the log end waits for records; without any, it has nothing to fetch."""
    story = Story(tmp_path, 1, 2)
    story.fetch(2, 10)
    story.pass_ms(10 * MAX_LAG_MS)
    assert story.proposal() is None
    story.partition.append_as_leader([batch(1)], acks_all=False)
    story.pass_ms(0)
    assert story.proposal() == [(1, 10)]


def test_all_members_that_lag_leave_together(tmp_path: Path) -> None:
    story = Story(tmp_path, 1, 2, 3)
    story.pass_ms(MAX_LAG_MS + 1)
    assert story.proposal() == [(1, 10)]
    story.answer(1)
    assert story.leader.alone and story.high_watermark == 10


def test_a_new_leader_epoch_gives_members_their_time_again(tmp_path: Path) -> None:
    story = Story(tmp_path, 1, 2)
    story.around.clock.ms += MAX_LAG_MS + 1
    story.partition.apply(led(1, 2, replicas=(1, 2, 3), epoch=1, at=1))
    story.partition.require_leader().tick()
    assert story.around.proposed() is None


def test_the_allowed_lag_is_that_of_the_configuration(tmp_path: Path) -> None:
    story = Story(tmp_path, 1, 2)
    story.around.context.max_lag_ms = 50
    story.pass_ms(51)
    assert story.proposal() == [(1, 10)]


def test_under_min_isr_nothing_is_committed_until_a_replica_has_joined(tmp_path: Path) -> None:
    story = Story(tmp_path, 1, 2, min_insync_replicas=2)
    story.pass_ms(MAX_LAG_MS + 1)
    story.proposal()
    story.answer(1)
    assert story.leader.under_min_isr and not story.leader.has_enough_replicas
    assert story.high_watermark == 0
    story.fetch(2, 10)
    assert story.leader.under_min_isr, "proposed is not committed"
    assert story.leader.has_enough_replicas, "but the high watermark waits for both"
    assert story.high_watermark == 0
    story.proposal()
    story.answer(1, 2, at=2)
    assert not story.leader.under_min_isr and story.leader.at_min_isr
    assert story.high_watermark == 10


# --- answers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_a_change_that_was_not_applied_is_taken_back(tmp_path: Path, error: ErrorCode) -> None:
    story = Story(tmp_path, 1, 2)
    story.fetch(3, 10)
    story.proposal()
    assert not story.answer(error=error)
    assert story.leader.isr == CommittedIsr((1, 2))
    assert story.around.metrics.isr.failed_updates == 1
    story.fetch(3, 10)
    assert story.proposal() is not None, "its next fetch proposes it again"


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
    ],
)
def test_a_change_that_may_have_been_applied_stands_until_the_metadata_shows_it(
    tmp_path: Path, error: ErrorCode
) -> None:
    story = Story(tmp_path, 1, 2)
    story.fetch(3, 10)
    story.proposal()
    assert not story.answer(error=error)
    assert type(story.leader.isr) is PendingExpand
    story.fetch(2, 10)
    story.partition.append_as_leader([batch(5)], acks_all=True)
    story.fetch(2, 15)
    assert story.high_watermark == 10, "3 may be in the ISR"
    assert story.proposal() is None
    story.partition.apply(led(1, 2, replicas=(1, 2, 3), at=1))
    assert story.leader.isr == CommittedIsr((1, 2))
    assert story.around.metrics.isr.failed_updates == 1


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NOT_CONTROLLER])
def test_after_other_errors_the_same_change_is_sent_again(tmp_path: Path, error: ErrorCode) -> None:
    story = Story(tmp_path, 1, 2)
    story.fetch(3, 10)
    first = story.proposal()
    assert story.answer(error=error)
    assert story.proposal() == first
    assert not story.answer(1, 2, 3)
    assert story.leader.isr == CommittedIsr((1, 2, 3))


def test_a_request_without_an_answer_is_sent_again(tmp_path: Path) -> None:
    story = Story(tmp_path, 1, 2)
    story.fetch(3, 10)
    first = story.proposal()
    story.around.context.proposals.failed()
    assert story.proposal() == first


def test_the_metadata_may_be_faster_than_the_answer(tmp_path: Path) -> None:
    story = Story(tmp_path, 1, 2)
    story.fetch(3, 10)
    story.proposal()
    story.partition.apply(led(1, 2, 3, replicas=(1, 2, 3), at=1))
    assert story.leader.isr == CommittedIsr((1, 2, 3))
    assert story.around.metrics.isr.expands == 1
    assert not story.answer(1, 2, 3)
    assert story.around.metrics.isr.expands == 1, "counted once"


def test_the_answer_may_be_faster_than_the_metadata(tmp_path: Path) -> None:
    """By then the leader may propose the next change, which the metadata of the first must not undo: its
    controller may have applied it."""
    story = Story(tmp_path, 1)
    story.fetch(2, 10)
    story.proposal()
    story.answer(1, 2)
    story.fetch(3, 10)
    assert story.proposal() == [(1, 10), (2, 20), (3, 30)]
    story.partition.apply(led(1, 2, replicas=(1, 2, 3), at=1))
    assert type(story.leader.isr) is PendingExpand
    story.answer(1, 2, 3, at=2)
    story.partition.apply(led(1, 2, replicas=(1, 2, 3), at=1))
    assert story.leader.isr == CommittedIsr((1, 2, 3))


def test_an_answer_after_the_next_election_is_ignored(tmp_path: Path) -> None:
    story = Story(tmp_path, 1, 2)
    story.fetch(3, 10)
    story.proposal()
    story.partition.apply(led(1, 2, replicas=(1, 2, 3), epoch=1, at=1))
    story.answer(1, 2, 3)
    assert story.partition.require_leader().isr == CommittedIsr((1, 2))
    assert story.leader.isr == CommittedIsr((1, 2))


def test_a_change_of_a_leader_that_resigned_is_not_sent(tmp_path: Path) -> None:
    story = Story(tmp_path, 1, 2)
    story.fetch(3, 10)
    story.partition.stop(ErrorCode.KAFKA_STORAGE_ERROR)
    assert story.around.proposed() is None


@pytest.mark.parametrize(
    ("isr", "epoch", "at"),
    [((1, 2, 3), 1, 1), ((1, 2, 3), 0, -1), ((2, 3), 0, 1), ((1, 2, 4), 0, 1)],
    ids=["newer leader epoch", "older partition epoch", "without the leader", "outside the assignment"],
)
def test_an_answer_that_does_not_fit_waits_for_the_metadata(
    tmp_path: Path, isr: tuple[int, ...], epoch: int, at: int
) -> None:
    story = Story(tmp_path, 1, 2)
    story.fetch(3, 10)
    story.proposal()
    assert not story.answer(*isr, epoch=epoch, at=at)
    assert type(story.leader.isr) is PendingExpand
    assert story.around.metrics.isr.failed_updates == 1


def test_a_replica_that_leaves_the_assignment_takes_its_proposal_along(tmp_path: Path) -> None:
    story = Story(tmp_path, 1, 2)
    story.fetch(3, 10)
    story.proposal()
    story.partition.apply(led(1, 2, replicas=(1, 2), at=0))
    assert story.leader.isr == CommittedIsr((1, 2))
    story.answer(1, 2, 3)
    assert story.leader.isr == CommittedIsr((1, 2))


def test_a_produce_waits_for_a_replica_that_is_to_join(tmp_path: Path) -> None:
    story = Story(tmp_path, 1)
    story.fetch(2, 10)
    seen: list[KafkaError | None] = []
    story.partition.append_as_leader([batch(1)], acks_all=True)
    story.leader.commit_waiters.add(11, seen.append)
    assert not story.leader.alone and seen == []
    story.fetch(2, 11)
    assert seen == [None]


# --- the low watermark ----------------------------------------------------------------------------------


def test_the_low_watermark_is_the_smallest_log_start_of_replicas_that_are_alive(tmp_path: Path) -> None:
    story = Story(tmp_path, 1, 2)
    story.fetch(2, 10)
    story.fetch(3, 10)
    story.partition.log.increment_log_start_offset(6)
    assert story.leader.low_watermark == 0
    story.partition.record_fetch(2, 10, 6, 20)
    assert story.leader.low_watermark == 0, "3 has not deleted anything"
    story.around.register(3, 30, fenced=True)
    assert story.leader.low_watermark == 6
    story.around.register(3, 30)
    seen: list[KafkaError | None] = []
    story.leader.low_watermark_waiters.add(6, seen.append)
    story.partition.record_fetch(3, 10, 5, 30)
    assert seen == []
    story.partition.record_fetch(3, 10, 6, 30)
    assert seen == [None]


def test_a_replica_that_has_not_fetched_has_deleted_nothing(tmp_path: Path) -> None:
    story = Story(tmp_path, 1, 2)
    assert story.leader.low_watermark == -1
    seen: list[KafkaError | None] = []
    story.leader.low_watermark_waiters.add(0, seen.append)
    for broker_id in (2, 3):
        story.around.register(broker_id, 10 * broker_id, fenced=True)
    story.leader.tick()
    assert seen == [None]
