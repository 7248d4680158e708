"""Partitions by topic, as members have and get them: put in order and compared. Pure.

A member may have thousands of topics, and every look at one by its id is a Python call: this is paced work.
"""

from collections.abc import Callable, Collection, Mapping
from operator import attrgetter
from typing import Any, TypeVar
from uuid import UUID

from odradek.runtime.slices import FEW, Paced

C = TypeVar("C", bound=Collection[Any])

ENTRIES_PER_CALL = 32
"""Entries of a set or a dictionary that are looked at, or copied, in the time of a Python call."""
STEP_CALLS = 100
"""Loops over cheap entries gather so many calls before they let others run."""

by_id: Callable[[UUID], Any] = attrgetter("int")
"""Sorts ids as they sort by themselves, without a Python call for each comparison."""


def are_same(some: Mapping[UUID, Any], others: Mapping[UUID, Any]) -> Paced[bool]:
    """Whether two maps have the same topics, each with an equal value."""
    if some is others:
        return True
    if len(some) != len(others):
        return False
    return (yield from _all(some, lambda topic_id, partitions: others.get(topic_id) == partitions))


def have_common(some: Mapping[UUID, Collection[int]], others: Mapping[UUID, Collection[int]]) -> Paced[bool]:
    """Whether a partition is in both."""

    def is_apart(topic_id: UUID, partitions: Collection[int]) -> bool:
        numbers = others.get(topic_id)
        return not numbers or frozenset(partitions).isdisjoint(numbers)

    return not (yield from _all(some, is_apart))


def is_part_of(some: Mapping[UUID, frozenset[int]], whole: Mapping[UUID, Collection[int]]) -> Paced[bool]:
    """Whether all partitions of the one are in the other, of whose topics each is there."""

    def is_inside(topic_id: UUID, partitions: frozenset[int]) -> bool:
        numbers = whole.get(topic_id)
        return numbers is not None and partitions.issubset(numbers)

    return (yield from _all(some, is_inside))


def _all(some: Mapping[UUID, C], holds: Callable[[UUID, C], bool]) -> Paced[bool]:
    """Whether something holds of every topic with its partitions."""
    calls = 0
    for topic_id, partitions in some.items():
        if not holds(topic_id, partitions):
            return False
        calls += 1 + FEW + len(partitions) // ENTRIES_PER_CALL
        if calls > STEP_CALLS:
            yield calls
            calls = 0
    yield calls
    return True
