"""Plants every violation that the checker of replication claims to find, and shows it what is allowed."""

from collections.abc import Callable, Iterable
from uuid import UUID

import pytest

from odradek.core.types import NO_LEADER
from odradek.metadata.image import PartitionRegistration
from odradek.sim.replication import rules
from odradek.sim.replication.at_rest import Producer, Resting, check_at_rest
from odradek.sim.replication.checker import Checker
from odradek.sim.replication.replica_log import Batch
from odradek.sim.replication.rules import missing
from odradek.sim.replication.truth import LeaderView, PartitionTruth

KEY = (UUID(int=7), 0)


def batches(first: int, end: int, epoch: int = 0, salt: int = 0) -> list[Batch]:
    return [Batch(offset, offset + 1, 1000 * salt + offset, epoch) for offset in range(first, end)]


class Stage:
    """One partition on brokers 1, 2 and 3. Broker 1 leads in epoch 0 with everybody in the ISR."""

    def __init__(
        self, *, unclean: bool = False, is_flushed: bool = False, is_compacted: bool = False
    ) -> None:
        self.checker = Checker()
        self.truth: PartitionTruth = self.checker.add(
            KEY, "t-0", is_compacted=is_compacted, is_flushed=is_flushed
        )
        self.unclean = unclean
        self.views: dict[int, LeaderView] = {}
        self.state = PartitionRegistration((1, 2, 3), (1, 2, 3), 1, 0, 0)
        self.truth.decided(self.state, allow_unclean=unclean)

    def decide(
        self,
        *,
        isr: tuple[int, ...] | None = None,
        elr: tuple[int, ...] | None = None,
        leader: int | None = None,
        last_known: tuple[int, ...] = (),
        leader_epoch: int | None = None,
        partition_epoch: int | None = None,
    ) -> None:
        old = self.state
        if leader_epoch is None:
            leader_epoch = old.leader_epoch + (leader is not None)
        self.state = old._replace(
            isr=old.isr if isr is None else isr,
            elr=old.elr if elr is None else elr,
            leader=old.leader if leader is None else leader,
            last_known_elr=last_known,
            leader_epoch=leader_epoch,
            partition_epoch=old.partition_epoch + 1 if partition_epoch is None else partition_epoch,
        )
        self.truth.decided(self.state, allow_unclean=self.unclean)

    def append(self, nodes: Iterable[int], new: list[Batch]) -> None:
        for node in nodes:
            self.truth.replica(node).append(new)

    def lead(
        self,
        high_watermark: int,
        *,
        node: int = 1,
        epoch: int = 0,
        members: tuple[int, ...] = (1, 2, 3),
        maximal: tuple[int, ...] | None = None,
        min_isr: int = 1,
    ) -> None:
        view = LeaderView(epoch, high_watermark, members, maximal or members, min_isr)
        before = self.views.get(node, view._replace(high_watermark=0))
        self.views[node] = view
        self.truth.led(node, view, before)

    def commit(self, end: int) -> None:
        """All replicas have the records below, and the leader knows it."""
        start = self.truth.replica(1).end
        self.append((1, 2, 3), batches(start, end))
        self.lead(end)

    def reopen(self, node: int, kept: int) -> None:
        """A node that lost its power opens what is left of its log."""
        replica = self.truth.replica(node)
        replica.returned([b for b in replica.log if b.end <= kept], 0, kept)
        self.truth.check()

    def truncate(self, node: int, kept: int) -> None:
        replica = self.truth.replica(node)
        replica.replace([b for b in replica.log if b.end <= kept], 0, kept)
        self.truth.check()

    @property
    def violations(self) -> list[str]:
        return self.checker.violations


# --- what it must find --------------------------------------------------------------------------------


def a_leader_lacks_a_fixed_record() -> Stage:
    stage = Stage()
    stage.append((1, 2), batches(0, 5))
    stage.append((3,), batches(0, 3))
    stage.decide(isr=(1, 2))
    stage.lead(5, members=(1, 2))
    stage.decide(leader=3, isr=(3,), partition_epoch=7)
    return stage


def a_member_of_the_isr_truncates_a_fixed_record() -> Stage:
    stage = Stage()
    stage.commit(5)
    stage.truncate(2, 4)
    return stage


def a_replica_joins_the_isr_without_a_fixed_record() -> Stage:
    stage = Stage()
    stage.decide(isr=(1, 2))
    stage.append((1, 2), batches(0, 5))
    stage.append((3,), batches(0, 4))
    stage.lead(5, members=(1, 2))
    stage.decide(isr=(1, 2, 3))
    return stage


def a_power_loss_of_one_replica_loses_a_record() -> Stage:
    """It registers as clean, and stays in the ELR."""
    stage = Stage()
    stage.commit(5)
    stage.decide(isr=(), elr=(1, 2), leader=NO_LEADER)
    stage.checker.power_lost(2)
    stage.reopen(2, 3)
    return stage


def a_flushed_record_is_lost_by_all() -> Stage:
    stage = Stage(is_flushed=True)
    stage.commit(5)
    for node in (1, 2, 3):
        stage.checker.power_lost(node)
    stage.decide(isr=(1,), leader=NO_LEADER)
    stage.decide(leader=1)
    stage.reopen(1, 4)
    return stage


def an_outsider_is_elected() -> Stage:
    stage = Stage()
    stage.decide(isr=(1,))
    stage.decide(isr=(2,), leader=2)
    return stage


def a_maximal_isr_lacks_a_member() -> Stage:
    stage = Stage()
    stage.lead(0, members=(1, 2, 3), maximal=(1, 2))
    return stage


def a_high_watermark_passes_the_end_of_a_member() -> Stage:
    stage = Stage()
    stage.decide(isr=(1, 2))
    stage.append((1, 2), batches(0, 5))
    stage.append((3,), batches(0, 4))
    stage.lead(5, members=(1, 2), maximal=(1, 2, 3))
    return stage


def a_high_watermark_moves_under_min_isr() -> Stage:
    stage = Stage()
    stage.decide(isr=(1,))
    stage.append((1,), batches(0, 5))
    stage.lead(0, members=(1,), min_isr=2)
    stage.lead(5, members=(1,), min_isr=2)
    return stage


def an_acknowledged_batch_is_not_fixed() -> Stage:
    stage = Stage()
    stage.commit(5)
    stage.append((1,), batches(5, 6))
    stage.truth.acknowledged(1, 5, batches(5, 6)[0].crc, stage.truth.mark(1))
    return stage


def another_batch_was_acknowledged() -> Stage:
    stage = Stage()
    stage.commit(5)
    stage.truth.acknowledged(1, 4, 77, stage.truth.mark(1))
    return stage


def a_deposed_leader_commits_what_its_successor_lacks() -> Stage:
    stage = Stage()
    stage.commit(5)
    stage.append((1,), batches(5, 6))
    stage.decide(leader=2, isr=(2, 3))
    stage.lead(6, members=(1,))
    return stage


def a_leader_epoch_goes_back() -> Stage:
    stage = Stage()
    stage.decide(leader=2, leader_epoch=3)
    stage.decide(leader=1, leader_epoch=2)
    return stage


def a_partition_epoch_stands_still() -> Stage:
    stage = Stage()
    stage.decide(isr=(1, 2), partition_epoch=0)
    return stage


def a_leader_changes_within_an_epoch() -> Stage:
    stage = Stage()
    stage.decide(leader=2, leader_epoch=0)
    return stage


def a_broker_epoch_goes_back() -> Stage:
    stage = Stage()
    stage.checker.broker_epoch(1, 9)
    stage.checker.broker_epoch(1, 8)
    return stage


def an_offset_is_used_again() -> Stage:
    stage = Stage()
    stage.commit(5)
    stage.truth.replica(2).replace([*batches(0, 4), *batches(4, 6, epoch=1, salt=1)], 0, 6)
    stage.decide(leader=2)
    return stage


def a_sequence_is_missing() -> Stage:
    stage = Stage()
    for offset, sequence in enumerate((0, 1, 3)):
        stage.append((1, 2, 3), [Batch(offset, offset + 1, offset, 0, 42, 0, sequence)])
    stage.lead(3)
    return stage


def a_new_producer_epoch_does_not_begin_at_zero() -> Stage:
    stage = Stage()
    for offset, (epoch, sequence) in enumerate(((0, 0), (1, 1))):
        stage.append((1, 2, 3), [Batch(offset, offset + 1, offset, 0, 42, epoch, sequence)])
    stage.lead(2)
    return stage


def a_consumer_reads_above_the_high_watermark() -> Stage:
    stage = Stage()
    stage.commit(5)
    stage.append((1,), batches(5, 6))
    stage.truth.read(1, 5, batches(5, 6)[0].crc, stage.truth.mark(1))
    return stage


PLANTED: dict[Callable[[], Stage], str] = {
    a_leader_lacks_a_fixed_record: rules.NEVER_LOST,
    a_member_of_the_isr_truncates_a_fixed_record: rules.NEVER_LOST,
    a_replica_joins_the_isr_without_a_fixed_record: rules.NEVER_LOST,
    a_power_loss_of_one_replica_loses_a_record: rules.NEVER_LOST,
    a_flushed_record_is_lost_by_all: rules.NEVER_LOST,
    a_deposed_leader_commits_what_its_successor_lacks: rules.NEVER_LOST,
    an_outsider_is_elected: rules.CLEAN,
    a_maximal_isr_lacks_a_member: rules.MAXIMAL,
    a_high_watermark_passes_the_end_of_a_member: rules.LEAST_END,
    a_high_watermark_moves_under_min_isr: rules.MIN_ISR,
    an_acknowledged_batch_is_not_fixed: rules.ACKNOWLEDGED,
    another_batch_was_acknowledged: rules.ACKNOWLEDGED,
    a_leader_epoch_goes_back: rules.EPOCHS,
    a_partition_epoch_stands_still: rules.EPOCHS,
    a_leader_changes_within_an_epoch: rules.EPOCHS,
    a_broker_epoch_goes_back: rules.EPOCHS,
    an_offset_is_used_again: rules.OFFSETS,
    a_sequence_is_missing: rules.SEQUENCES,
    a_new_producer_epoch_does_not_begin_at_zero: rules.SEQUENCES,
    a_consumer_reads_above_the_high_watermark: rules.READ,
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_violation_is_found_once_by_its_rule(plant: Callable[[], Stage]) -> None:
    violations = plant().violations
    assert len(violations) == 1, violations
    assert violations[0].startswith(PLANTED[plant])


# --- what is allowed ----------------------------------------------------------------------------------


def test_a_killed_leader_is_replaced_by_one_of_the_isr() -> None:
    stage = Stage()
    stage.commit(5)
    stage.append((1,), batches(5, 9))
    stage.decide(leader=2, isr=(2, 3))
    stage.truncate(1, 5)
    stage.append((2, 3), batches(5, 8, epoch=1, salt=1))
    stage.lead(8, node=2, epoch=1, members=(2, 3))
    assert stage.violations == []
    assert stage.truth.fixed_end == 8
    assert stage.checker.counters.losses == 0


def test_a_deposed_leader_may_commit_what_its_successor_has() -> None:
    stage = Stage()
    stage.append((1, 2, 3), batches(0, 5))
    stage.decide(leader=2, isr=(2, 3))
    stage.lead(5)
    assert stage.violations == []
    assert stage.truth.fixed_end == 5


def test_records_are_lost_if_the_whole_isr_lost_its_power() -> None:
    stage = Stage()
    stage.commit(5)
    for node in (1, 2, 3):
        stage.checker.power_lost(node)
    stage.decide(isr=(1,), leader=NO_LEADER)
    stage.reopen(1, 3)
    stage.decide(leader=1)
    assert stage.violations == []
    assert stage.checker.counters.losses == 1
    assert stage.truth.fixed_end == 3


def test_a_leader_that_is_elected_while_it_is_away_is_judged_when_it_is_back() -> None:
    stage = Stage()
    stage.commit(5)
    for node in (1, 2, 3):
        stage.checker.power_lost(node)
    stage.decide(isr=(1,), leader=NO_LEADER)
    stage.decide(leader=1)
    assert stage.truth.fixed_end == 5
    stage.reopen(1, 3)
    assert stage.violations == []
    assert stage.truth.fixed_end == 3


def test_the_last_known_leader_may_have_lost_records_with_its_power() -> None:
    stage = Stage()
    stage.commit(5)
    stage.decide(isr=(1,))
    stage.checker.power_lost(1)
    stage.decide(isr=(), elr=(), leader=NO_LEADER, last_known=(1,))
    stage.reopen(1, 2)
    stage.decide(isr=(1,), leader=1)
    assert stage.violations == []
    assert stage.checker.counters.losses == 1


def test_an_unclean_election_may_lose_records_and_what_the_old_leader_acknowledges() -> None:
    stage = Stage(unclean=True)
    stage.decide(isr=(1,))
    stage.append((1,), batches(0, 5))
    stage.lead(5, members=(1,))
    stage.decide(isr=(2,), leader=2)
    stage.append((1,), batches(5, 6))
    stage.lead(6, members=(1,))
    stage.truth.acknowledged(1, 5, batches(5, 6)[0].crc, stage.truth.mark(1))
    assert stage.violations == []
    assert stage.checker.counters.unclean_elections == 1
    assert stage.truth.fixed_end == 0


def test_an_answer_that_was_on_its_way_when_records_were_lost_proves_nothing() -> None:
    stage = Stage(unclean=True)
    mark = stage.truth.mark(1)
    stage.commit(5)
    stage.decide(isr=(1,))
    stage.truth.replica(2).replace(batches(0, 4), 0, 4)
    stage.decide(isr=(2,), leader=2)
    stage.truth.acknowledged(1, 4, batches(4, 5)[0].crc, mark)
    assert stage.violations == []


def test_records_below_the_log_start_may_be_missing() -> None:
    stage = Stage()
    stage.decide(isr=(1, 2))
    stage.append((1, 2), batches(0, 5))
    stage.lead(5, members=(1, 2))
    stage.truth.replica(3).replace(batches(3, 5), 3, 5)
    stage.decide(isr=(1, 2, 3))
    stage.truth.acknowledged(1, 2, 99, stage.truth.mark(1))
    assert stage.violations == []


def test_a_compacted_log_may_have_other_batches_below_its_end() -> None:
    stage = Stage(is_compacted=True)
    stage.commit(5)
    stage.truth.replica(2).replace(batches(4, 5, salt=3), 0, 5)
    stage.truth.check()
    assert stage.violations == []
    stage.truth.replica(2).replace([], 0, 4)
    stage.truth.check()
    assert stage.violations[0].startswith(rules.NEVER_LOST)


def test_a_run_without_trouble_proves_nothing() -> None:
    assert len(missing(Checker().counters.as_dict())) == 4


# --- at rest ------------------------------------------------------------------------------------------

RESTING = Resting(
    start=0,
    high_watermark=3,
    end=3,
    batches={0: b"a", 1: b"b", 2: b"c"},
    epochs=((0, 0), (4, 2)),
    producers={7: Producer(0, 5, 2)},
    aborted=frozenset({(7, 1)}),
)


@pytest.mark.parametrize(
    ("other", "rule"),
    [
        (RESTING._replace(high_watermark=2), rules.LIVENESS),
        (RESTING._replace(end=4), rules.LIVENESS),
        (RESTING._replace(batches={0: b"a", 1: b"B", 2: b"c"}), rules.SAME_BATCHES),
        (RESTING._replace(batches={0: b"a", 2: b"c"}), rules.SAME_BATCHES),
        (RESTING._replace(epochs=((0, 0), (3, 2))), rules.SAME_EPOCHS),
        (RESTING._replace(epochs=((0, 0),)), rules.SAME_EPOCHS),
        (RESTING._replace(producers={7: Producer(0, 4, 2)}), rules.SAME_PRODUCERS),
        (RESTING._replace(producers={}), rules.SAME_PRODUCERS),
        (RESTING._replace(aborted=frozenset()), rules.SAME_ABORTED),
    ],
)
def test_replicas_that_differ_at_rest_are_found(other: Resting, rule: str) -> None:
    checker = Checker()
    check_at_rest("t-0", {1: RESTING, 2: other}, checker.fail, is_compacted=False)
    assert len(checker.violations) == 1
    assert checker.violations[0].startswith(rule)


def test_replicas_at_rest_may_differ_below_the_log_start() -> None:
    checker = Checker()
    other = RESTING._replace(start=1, batches={1: b"b", 2: b"c"}, epochs=((0, 1), (4, 2)))
    first = RESTING._replace(producers={**RESTING.producers, 9: Producer(0, 0, 0)})
    check_at_rest("t-0", {1: first, 2: other, 3: first}, checker.fail, is_compacted=False)
    assert checker.violations == []
