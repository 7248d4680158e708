"""The checker of owners finds a partition that is assigned twice, and nothing if it was revoked."""

from odradek.core.types import TopicPartition
from odradek.sim.checkers.owners import SESSION_TIMEOUT_MS, Owners

SESSION_S = SESSION_TIMEOUT_MS / 1000
A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def test_a_partition_given_twice_is_found() -> None:
    owners = Owners()
    assert owners.given("g", "one", {A, B}, asked=1.0, now=1.1) == []
    assert owners.given("other", "two", {A}, asked=1.0, now=1.1) == []
    (found,) = owners.given("g", "two", {B}, asked=2.0, now=2.1)
    assert "t-1 was assigned to two, but one owns it until 7.000 s" in found


def test_a_member_that_was_told_to_give_up_a_partition_has_it_until_it_says_so() -> None:
    owners = Owners()
    owners.given("g", "one", {A, B}, asked=1.0, now=1.1)
    owners.given("g", "one", {A}, asked=2.0, now=2.1)
    assert owners.given("g", "two", {B}, asked=2.2, now=2.3)
    owners.keeps("g", "one", {A})
    assert owners.given("g", "two", {B}, asked=2.4, now=2.5) == []
    assert owners.given("g", "two", {A, B}, asked=2.6, now=2.7)


def test_a_silent_member_has_its_partitions_for_a_session() -> None:
    owners = Owners()
    owners.given("g", "one", {A}, asked=1.0, now=1.5)
    assert owners.given("g", "two", {A}, asked=1.0, now=1.0 + SESSION_S - 0.01)
    owners.gone("g", "two")
    assert owners.given("g", "two", {A}, asked=1.0, now=1.0 + SESSION_S) == []


def test_nobody_owns_anything_after_leaving_or_a_loss() -> None:
    owners = Owners()
    owners.given("g", "one", {A}, asked=1.0, now=1.5)
    owners.gone("g", "one")
    assert owners.given("g", "two", {A}, asked=1.6, now=1.7) == []
    owners.forget()
    assert owners.given("g", "three", {A}, asked=1.8, now=1.9) == []
