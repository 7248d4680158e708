"""The next leader: a member of the ISR, of the ELR, the last known leader, and only then any replica."""

from collections.abc import Collection
from uuid import UUID

from odradek.controller.elections import Election, ElectionRules, change_partition
from odradek.metadata.image import RECOVERING, PartitionRegistration
from odradek.metadata.records import PartitionChangeRecord

TOPIC = UUID(int=7000)


def elect(
    partition: PartitionRegistration,
    alive: Collection[int],
    *,
    isr: tuple[int, ...] = (),
    unclean: bool = True,
    elr: bool = True,
    min_isr: int = 1,
) -> PartitionChangeRecord | None:
    rules = ElectionRules(
        lambda n: n in alive,
        elr_enabled=elr,
        min_isr=min_isr,
        election=Election.UNCLEAN if unclean else Election.ONLINE,
    )
    return change_partition(TOPIC, 0, partition, isr, rules)


def leaderless(**fields: tuple[int, ...]) -> PartitionRegistration:
    return PartitionRegistration(
        replicas=(1, 2, 3), isr=(), leader=-1, leader_epoch=4, partition_epoch=9, **fields
    )


def test_the_last_known_leader_goes_before_an_unclean_election() -> None:
    record = elect(leaderless(last_known_elr=(3,)), alive=(1, 2, 3))
    assert record is not None
    assert (record.leader, record.isr, record.leader_recovery_state) == (3, (3,), RECOVERING)
    assert record.last_known_elr == ()


def test_an_unclean_election_is_held_when_the_last_known_leader_is_not_there() -> None:
    record = elect(leaderless(last_known_elr=(3,)), alive=(1, 2))
    assert record is not None
    assert (record.leader, record.isr, record.leader_recovery_state) == (1, (1,), RECOVERING)


def test_an_eligible_leader_goes_before_the_last_known_one() -> None:
    record = elect(leaderless(elr=(2,), last_known_elr=(3,)), alive=(1, 2, 3))
    assert record is not None
    assert (record.leader, record.isr, record.leader_recovery_state) == (2, (2,), -1)


def test_the_last_known_leader_waits_while_an_eligible_one_may_come_back() -> None:
    assert elect(leaderless(elr=(2,), last_known_elr=(3,)), alive=(1, 3), unclean=False) is None


def test_several_last_known_replicas_name_no_leader() -> None:
    record = elect(leaderless(last_known_elr=(2, 3)), alive=(1, 2, 3))
    assert record is not None
    assert record.leader == 1
    assert elect(leaderless(last_known_elr=(2, 3)), alive=(1, 2, 3), unclean=False) is None


def test_without_eligible_leaders_nobody_asks_for_the_last_known_one() -> None:
    record = elect(leaderless(last_known_elr=(3,)), alive=(1, 2, 3), elr=False)
    assert record is not None
    assert record.leader == 1


def test_who_led_last_is_remembered_even_when_the_isr_is_not_empty() -> None:
    led = PartitionRegistration(replicas=(1, 2), isr=(1, 2), leader=1, leader_epoch=0, partition_epoch=0)
    record = elect(led, alive=(), isr=(2,), unclean=False)
    assert record is not None
    assert (record.leader, record.isr, record.last_known_elr) == (-1, (2,), (1,))
