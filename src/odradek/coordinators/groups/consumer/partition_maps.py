"""Sorts and compares maps of partitions by topic. Pure.

A member may have thousands of topics, and every lookup by id is a Python call, so this is paced work.
"""

from collections.abc import Callable, Collection, Mapping
from operator import attrgetter
from typing import Any, TypeVar
from uuid import UUID

from odradek.runtime.slices import FEW, Paced

C = TypeVar("C", bound=Collection[Any])

ENTRIES_PER_CALL = 32
"""How many entries of a set or dictionary can be read or copied in the time of one Python call."""
STEP_CALLS = 100
"""Loops over cheap entries yield after this many calls."""

by_id: Callable[[UUID], Any] = attrgetter("int")
"""A sort key for ids: the same order as the ids have, without a Python call per comparison."""


def are_same(some: Mapping[UUID, Any], others: Mapping[UUID, Any]) -> Paced[bool]:
    """Whether two maps have the same topics, each with an equal value."""
    if some is others:
        return True
    if len(some) != len(others):
        return False
    return (yield from _all(some, lambda topic_id, partitions: others.get(topic_id) == partitions))


def have_common(some: Mapping[UUID, Collection[int]], others: Mapping[UUID, Collection[int]]) -> Paced[bool]:
    """Whether the maps have a partition in common."""

    def is_apart(topic_id: UUID, partitions: Collection[int]) -> bool:
        numbers = others.get(topic_id)
        return not numbers or frozenset(partitions).isdisjoint(numbers)

    return not (yield from _all(some, is_apart))


def is_part_of(some: Mapping[UUID, frozenset[int]], whole: Mapping[UUID, Collection[int]]) -> Paced[bool]:
    """Whether `whole` has all topics and partitions of `some`."""

    def is_inside(topic_id: UUID, partitions: frozenset[int]) -> bool:
        numbers = whole.get(topic_id)
        return numbers is not None and partitions.issubset(numbers)

    return (yield from _all(some, is_inside))


def _all(some: Mapping[UUID, C], holds: Callable[[UUID, C], bool]) -> Paced[bool]:
    """Whether `holds` is true for every topic."""
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
