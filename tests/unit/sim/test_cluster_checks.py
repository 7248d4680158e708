"""Plants every violation that the checker of clusters claims to find, and shows it what is allowed."""

from collections.abc import Callable
from uuid import UUID

import pytest

from odradek.sim.cluster import checks
from odradek.sim.cluster.checks import Checker, missing

A, B = UUID(int=1), UUID(int=2)


def two_images(checker: Checker) -> None:
    checker.image_shown("node1", 7, "x", 6)
    checker.image_shown("node2", 7, "y", 6)


def one_node_in_two_lives(checker: Checker) -> None:
    checker.image_shown("node1", 7, "x", 6)
    checker.image_shown("node1", 7, "y", -1)


def two_leaders(checker: Checker) -> None:
    checker.leads("node1", 4)
    checker.leads("node2", 4)


def lost(checker: Checker) -> None:
    checker.topic_created(A, "a")
    checker.check_topics("node1", {B})


def back_again(checker: Checker) -> None:
    checker.topic_created(A, "a")
    checker.topic_deletes(A)
    checker.topic_deleted(A, "a")
    checker.check_topics("node1", {A})


def an_id_of_a_block(checker: Checker) -> None:
    checker.producer_ids_given(1000, 1000, "broker")
    checker.producer_ids_given(1999, 1, "producer")


def an_epoch_of_two_incarnations(checker: Checker) -> None:
    checker.broker_epoch(1, 40, A)
    checker.broker_epoch(1, 40, B)


@pytest.mark.parametrize(
    ("plant", "rule"),
    [
        (two_images, checks.SAME_IMAGE),
        (one_node_in_two_lives, checks.SAME_IMAGE),
        (lambda checker: checker.image_shown("node1", 5, "x", 6), checks.FORWARD),
        (two_leaders, checks.ONE_LEADER),
        (lost, checks.CREATED),
        (back_again, checks.DELETED),
        (an_id_of_a_block, checks.PRODUCER_IDS),
        (an_epoch_of_two_incarnations, checks.BROKER_EPOCHS),
    ],
)
def test_a_broken_rule_is_named(plant: Callable[[Checker], None], rule: str) -> None:
    checker = Checker()
    plant(checker)
    assert len(checker.violations) == 1
    assert checker.violations[0].startswith(f"{rule}: ")


def test_what_is_allowed_breaks_no_rule() -> None:
    checker = Checker()
    for node in ("node1", "node2"):
        checker.image_shown(node, 7, "x", 6)
        checker.broker_epoch(1, 40, A)
    checker.broker_epoch(1, 41, B)
    checker.leads("node1", 4)
    checker.leads("node2", 5)
    checker.leads("node1", 6)
    checker.producer_ids_given(1000, 1000, "broker")
    checker.producer_ids_given(2000, 1000, "broker")
    checker.topic_created(A, "a")
    checker.topic_deletes(A)  # asked for, and not answered: both may be
    checker.topic_created(B, "a")
    for found in ({A, B}, {B}):
        checker.check_topics("node1", found)
    assert checker.violations == []
    assert checker.counters.images_compared == 1
    assert (checker.counters.leaders, checker.counters.broker_epochs) == (3, 2)


def test_a_run_in_which_nothing_happened_proves_nothing() -> None:
    assert len(missing(Checker().counters.as_dict())) == len(checks.MUST_HAPPEN)
    assert missing(dict.fromkeys(checks.MUST_HAPPEN, 1)) == []
