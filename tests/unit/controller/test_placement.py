"""New replicas are spread over racks and leaders over brokers; a fenced broker is the last choice."""

import random
from collections import Counter
from itertools import pairwise
from uuid import UUID

import pytest

from odradek.controller.placement import place_replicas
from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.image import BrokerRegistration
from odradek.runtime.slices import at_once


def broker(broker_id: int, rack: str | None = None, **changes: object) -> BrokerRegistration:
    registration = BrokerRegistration(
        id=broker_id,
        epoch=broker_id,
        incarnation_id=UUID(int=broker_id),
        endpoints={},
        rack=rack,
        fenced=False,
        in_controlled_shutdown=False,
        log_dirs=(UUID(int=1000 + broker_id),),
        cordoned_log_dirs=None,
        features={},
    )
    return registration._replace(**changes)  # type: ignore[arg-type]


def place(
    brokers: list[BrokerRegistration], partitions: int, replication_factor: int, seed: int = 7
) -> list[tuple[int, ...]]:
    return at_once(place_replicas(brokers, partitions, replication_factor, random.Random(seed)))


def racks(sizes: dict[str, int]) -> list[BrokerRegistration]:
    """Brokers 1, 2, ... so many of each rack."""
    names = [name for name, size in sizes.items() for _ in range(size)]
    return [broker(i + 1, name) for i, name in enumerate(names)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sizes", [{"a": 2, "b": 2, "c": 2}, {"a": 1, "b": 3, "c": 2}])
def test_three_replicas_lie_in_three_racks(sizes: dict[str, int], seed: int) -> None:
    brokers = racks(sizes)
    rack_of = {b.id: b.rack for b in brokers}
    for row in place(brokers, 30, 3, seed):
        assert len({rack_of[n] for n in row}) == 3


def test_more_replicas_than_racks_use_every_rack_and_no_broker_twice() -> None:
    brokers = racks({"a": 2, "b": 3})
    rack_of = {b.id: b.rack for b in brokers}
    for row in place(brokers, 20, 4):
        assert len(set(row)) == 4
        assert Counter(rack_of[n] for n in row) == {"a": 2, "b": 2}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "brokers", [racks({"a": 2, "b": 2}), racks({"a": 1, "b": 3}), [broker(n) for n in range(5)]]
)
@pytest.mark.parametrize("replication_factor", [1, 2, 3])
def test_every_broker_leads_equally_often(
    brokers: list[BrokerRegistration], replication_factor: int, seed: int
) -> None:
    rows = place(brokers, 6 * len(brokers), replication_factor, seed)
    assert set(Counter(row[0] for row in rows).values()) == {6}
    assert len({row[0] for row in rows[: len(brokers)]}) == len(brokers)


def test_the_partitions_of_one_leader_have_different_followers() -> None:
    rows = place(racks({"a": 2, "b": 2, "c": 2}), 60, 2)
    for leader in range(1, 7):
        assert len({row[1] for row in rows if row[0] == leader}) == 4, "everybody of the other racks"


def test_leaders_go_from_rack_to_rack() -> None:
    brokers = racks({"a": 2, "b": 2, "c": 2})
    rack_of = {b.id: b.rack for b in brokers}
    leaders = [rack_of[row[0]] for row in place(brokers, 12, 1)]
    assert all(one != next_one for one, next_one in pairwise(leaders))


def test_brokers_without_a_rack_are_a_rack_of_their_own() -> None:
    rows = place([broker(1), broker(2), broker(3, "a")], 10, 2)
    assert all(3 in row for row in rows)


def test_a_fenced_broker_is_taken_only_when_its_rack_has_no_other_and_never_leads() -> None:
    brokers = [broker(1, "a"), broker(2, "a", fenced=True), broker(3, "b"), broker(4, "b", fenced=True)]
    assert all(set(row) == {1, 3} for row in place(brokers, 8, 2))
    for row in place(brokers, 8, 3):
        assert row[0] in (1, 3)
        assert {1, 3} < set(row)
    assert {row[2] for row in place(brokers, 8, 3)} == {2, 4}


def test_a_rack_of_fenced_brokers_is_used_before_a_second_broker_of_a_rack() -> None:
    brokers = [broker(1, "a"), broker(2, "a"), broker(3, "b", fenced=True)]
    assert all(3 in row and row[0] != 3 for row in place(brokers, 8, 2))


def test_a_broker_that_stops_takes_nothing_until_it_has_stopped() -> None:
    stopping = broker(3, in_controlled_shutdown=True)
    assert all(3 not in row for row in place([broker(1), broker(2), stopping], 6, 2))
    stopped = stopping._replace(fenced=True)
    assert all(3 in row for row in place([broker(1), broker(2), stopped], 6, 3))


def test_a_broker_whose_directories_are_all_cordoned_takes_nothing() -> None:
    directory = UUID(int=1003)
    cordoned = broker(3, log_dirs=(directory,), cordoned_log_dirs=(directory,))
    assert all(3 not in row for row in place([broker(1), broker(2), cordoned], 6, 2))


@pytest.mark.parametrize(
    ("brokers", "message"),
    [
        ([], "All brokers are currently fenced, or have all their log directories cordoned."),
        (
            [broker(1, fenced=True)],
            "All brokers are currently fenced, or have all their log directories cordoned.",
        ),
        (
            [broker(1), broker(2, fenced=True)],
            "The target replication factor of 3 cannot be reached because only 2 broker(s) are registered or "
            "some brokers have all their log directories cordoned.",
        ),
    ],
)
def test_too_few_brokers_are_an_invalid_replication_factor(
    brokers: list[BrokerRegistration], message: str
) -> None:
    with pytest.raises(KafkaError) as refused:
        place(brokers, 1, 3)
    assert (refused.value.code, refused.value.message) == (ErrorCode.INVALID_REPLICATION_FACTOR, message)
