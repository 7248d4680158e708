"""Who leads after brokers have gone in every way, with and without eligible leader replicas and unclean
elections. tests/peer/test_random_elections.py compares the rules with Apache's."""

from collections.abc import Callable
from itertools import product

import pytest

from odradek.core.errors import ErrorCode
from odradek.metadata.image import RECOVERED, RECOVERING, RESOURCE_BROKER, RESOURCE_TOPIC
from odradek.metadata.records import FeatureLevelRecord
from tests.unit.controller.harness import Harness
from tests.unit.controller.replicated import (
    UNCLEAN,
    alter,
    brokers,
    configure,
    crash,
    elect,
    fence,
    lose_disk,
    partition,
    shut_down,
)
from tests.unit.controller.test_features import SAFE, UPGRADE, update

WAYS = {"fenced": fence, "shutting down": shut_down, "offline directory": lose_disk}
Go = Callable[[Harness, int], None]

FEATURE = "eligible.leader.replicas.version"


def settings(min_isr: int, unclean: bool) -> dict[str, str]:
    return {"min.insync.replicas": str(min_isr), "unclean.leader.election.enable": str(unclean).lower()}


@pytest.mark.parametrize("go", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(("elr", "unclean", "min_isr"), list(product((True, False), (True, False), (1, 2))))
def test_the_next_member_of_the_isr_leads_and_who_goes_leaves_it(
    go: Go, elr: bool, unclean: bool, min_isr: int
) -> None:
    h = brokers(3, elr=elr, configs=settings(min_isr, unclean))
    go(h, 1)
    now = partition(h)
    assert (now.leader, now.isr, now.elr, now.last_known_elr) == (2, (2, 3), (), ())
    assert (now.leader_epoch, now.leader_recovery_state) == (1, RECOVERED)


@pytest.mark.parametrize("go", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(
    ("elr", "unclean", "min_isr", "leader", "isr", "eligible", "last_known", "state"),
    [
        # the last member of the ISR goes, 2 is alive but behind
        (True, False, 1, -1, (), (1,), (1,), RECOVERED),
        (True, True, 1, 2, (2,), (), (), RECOVERING),
        (False, False, 1, -1, (1,), (), (), RECOVERED),
        (False, True, 1, 2, (2,), (), (), RECOVERING),
        # min ISR 2: 2 left the ISR while it was complete
        (True, False, 2, 2, (2,), (1,), (), RECOVERED),
        (True, True, 2, 2, (2,), (1,), (), RECOVERED),
        (False, False, 2, -1, (1,), (), (), RECOVERED),
        (False, True, 2, 2, (2,), (), (), RECOVERING),
    ],
)
def test_the_last_member_of_the_isr_goes(
    go: Go,
    elr: bool,
    unclean: bool,
    min_isr: int,
    leader: int,
    isr: tuple[int, ...],
    eligible: tuple[int, ...],
    last_known: tuple[int, ...],
    state: int,
) -> None:
    h = brokers(2, elr=elr, configs=settings(min_isr, unclean))
    alter(h, [1])
    go(h, 1)
    now = partition(h)
    assert (now.leader, now.isr, now.elr, now.last_known_elr) == (leader, isr, eligible, last_known)
    assert now.leader_recovery_state == state


@pytest.mark.parametrize("go", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("elr", [True, False])
def test_who_cannot_lead_is_not_elected_uncleanly_either(go: Go, elr: bool) -> None:
    h = brokers(3, elr=elr, configs=settings(1, False))
    alter(h, [1])
    go(h, 2)
    fence(h, 1)
    assert partition(h).leader == -1
    fence(h, 3)
    assert elect(h, UNCLEAN) == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    h.heartbeat(3)
    assert elect(h, UNCLEAN) == 0
    assert (partition(h).leader, partition(h).isr) == (3, (3,))


def test_a_crash_takes_a_broker_out_of_every_isr_and_elr() -> None:
    h = brokers(3, configs=settings(3, False))
    crash(h, 2)
    assert (partition(h).isr, partition(h).elr) == ((1, 3), ()), "2 was eligible until it came back"
    crash(h, 1)
    assert (partition(h).leader, partition(h).isr, partition(h).elr) == (3, (3,), ())
    crash(h, 3)
    assert (partition(h).leader, partition(h).isr, partition(h).elr) == (-1, (), ())
    assert partition(h).last_known_elr == (3,)
    h.heartbeat(1)
    assert partition(h).leader == -1, "it crashed, and did not lead last"
    h.heartbeat(3)
    now = partition(h)
    assert (now.leader, now.isr, now.last_known_elr, now.leader_recovery_state) == (3, (3,), (), RECOVERING)


def test_the_isr_of_a_leader_that_recovers_stays_one_until_it_has_recovered() -> None:
    h = brokers(2, configs=settings(1, True))
    alter(h, [1])
    fence(h, 1)
    assert partition(h).leader_recovery_state == RECOVERING
    h.heartbeat(1)
    refused = alter(h, [2, 1], leader_recovery_state=RECOVERING)
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    answer = alter(h, [2], leader_recovery_state=RECOVERED)
    assert (answer.error_code, answer.leader_recovery_state) == (0, RECOVERED)
    assert alter(h, [2], leader_recovery_state=RECOVERING).error_code == ErrorCode.INVALID_REQUEST
    assert alter(h, [2, 1]).error_code == 0
    assert (partition(h).isr, partition(h).leader_recovery_state) == ((2, 1), RECOVERED)


def test_recovered_and_joined_in_one_proposal() -> None:
    h = brokers(2, configs=settings(1, True))
    alter(h, [1])
    fence(h, 1)
    h.heartbeat(1)
    assert alter(h, [2, 1], leader_recovery_state=RECOVERED).error_code == 0
    assert (partition(h).isr, partition(h).leader_recovery_state) == ((2, 1), RECOVERED)


# --- settings in the image ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resource", "name"), [(RESOURCE_TOPIC, "t"), (RESOURCE_BROKER, ""), (RESOURCE_BROKER, "1")]
)
def test_an_unclean_election_is_allowed_by_the_topic_by_all_brokers_or_by_the_controllers_node(
    resource: int, name: str
) -> None:
    """The controller's own configuration has none of these settings: it may be no broker."""
    h = brokers(2, {"node.id": "1"})
    alter(h, [1])
    configure(h, resource, name, unclean_leader_election_enable="true")
    fence(h, 1)
    assert (partition(h).leader, partition(h).leader_recovery_state) == (2, RECOVERING)


def test_a_topic_overrides_what_all_brokers_have() -> None:
    h = brokers(2, configs={"unclean.leader.election.enable": "false"})
    alter(h, [1])
    configure(h, RESOURCE_BROKER, "", unclean_leader_election_enable="true")
    fence(h, 1)
    assert partition(h).leader == -1


def test_min_isr_of_all_brokers_decides_who_is_eligible() -> None:
    h = brokers(3)
    configure(h, RESOURCE_BROKER, "", min_insync_replicas="3")
    fence(h, 2)
    assert partition(h).elr == (2,)


@pytest.mark.parametrize(("resource", "name"), [(RESOURCE_TOPIC, "t"), (RESOURCE_BROKER, "")])
def test_another_min_isr_clears_the_eligible_leaders(resource: int, name: str) -> None:
    h = brokers(3, configs={} if resource == RESOURCE_BROKER else {"min.insync.replicas": "3"})
    if resource == RESOURCE_BROKER:
        configure(h, RESOURCE_BROKER, "", min_insync_replicas="3")
    fence(h, 2)
    assert partition(h).elr == (2,)
    configure(h, resource, name, min_insync_replicas="2")
    assert partition(h).elr == ()
    assert h.kinds() == ["ConfigRecord", "ClearElrRecord"]


def test_other_settings_leave_the_eligible_leaders() -> None:
    h = brokers(3, configs={"min.insync.replicas": "3"})
    fence(h, 2)
    configure(h, RESOURCE_TOPIC, "t", retention_ms="1000")
    assert partition(h).elr == (2,)


# --- the feature is switched off ----------------------------------------------------------------------


def test_who_was_eligible_leads_after_the_feature_was_switched_off_as_nobody_else_can() -> None:
    h = brokers(2, configs=settings(1, False))
    alter(h, [1])
    fence(h, 1)
    assert (partition(h).isr, partition(h).elr) == ((), (1,))
    h.apply([FeatureLevelRecord(name=FEATURE, feature_level=0)])
    fence(h, 2)
    h.heartbeat(2)
    assert partition(h).elr == (1,), "who else is there changes nothing"
    h.heartbeat(1)
    now = partition(h)
    assert (now.leader, now.isr, now.elr, now.leader_recovery_state) == (1, (1,), (), RECOVERED)


def test_without_the_feature_nobody_stays_eligible_who_is_behind() -> None:
    h = brokers(3, configs=settings(3, False))
    alter(h, [1])
    assert partition(h).elr == (2, 3)
    h.apply([FeatureLevelRecord(name=FEATURE, feature_level=0)])
    alter(h, [1, 3])
    assert partition(h).elr == ()


def test_who_was_eligible_long_ago_is_not_when_the_feature_is_switched_on_again() -> None:
    """Replica 2 has missed what was written with the smaller min ISR."""
    h = brokers(2, configs=settings(2, False))
    alter(h, [1])
    assert partition(h).elr == (2,)
    assert update(h, (FEATURE, 0, SAFE)) == (0, None)
    configure(h, RESOURCE_TOPIC, "t", min_insync_replicas="1")
    assert update(h, (FEATURE, 1, UPGRADE)) == (0, None)
    assert (partition(h).isr, partition(h).elr) == ((1,), ())
    fence(h, 1)
    assert (partition(h).leader, partition(h).elr) == (-1, (1,))


def test_who_is_eligible_in_place_of_an_isr_is_so_still_when_the_feature_is_switched_on_again() -> None:
    h = brokers(2, configs=settings(1, False))
    alter(h, [1])
    fence(h, 1)
    assert update(h, (FEATURE, 0, SAFE)) == (0, None)
    assert update(h, (FEATURE, 1, UPGRADE)) == (0, None)
    h.heartbeat(1)
    assert (partition(h).leader, partition(h).leader_recovery_state) == (1, RECOVERED)
