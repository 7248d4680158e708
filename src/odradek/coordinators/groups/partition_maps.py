"""Partitions by topic, as members have and get them: put in order and compared. Pure.

A member may have thousands of topics, and every look at one by its id is a Python call: this is paced work.
"""

from collections.abc import Callable, Collection, Mapping
from operator import attrgetter
from typing import Any
from uuid import UUID

from odradek.runtime.slices import FEW, Paced

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
    calls = 0
    for topic_id, partitions in some.items():
        if others.get(topic_id) != partitions:
            return False
        calls += FEW + len(partitions) // ENTRIES_PER_CALL
        if calls > STEP_CALLS:
            yield calls
            calls = 0
    yield calls
    return True


def have_common(some: Mapping[UUID, Collection[int]], others: Mapping[UUID, Collection[int]]) -> Paced[bool]:
    """Whether a partition is in both."""
    calls = 0
    for topic_id, partitions in some.items():
        numbers = others.get(topic_id)
        if numbers and not frozenset(partitions).isdisjoint(numbers):
            return True
        calls += FEW + len(partitions) // ENTRIES_PER_CALL
        if calls > STEP_CALLS:
            yield calls
            calls = 0
    yield calls
    return False


def is_part_of(some: Mapping[UUID, frozenset[int]], whole: Mapping[UUID, Collection[int]]) -> Paced[bool]:
    """Whether all partitions of the one are in the other, of whose topics each is there."""
    calls = 0
    for topic_id, partitions in some.items():
        numbers = whole.get(topic_id)
        if numbers is None or not partitions.issubset(numbers):
            return False
        calls += FEW + len(partitions) // ENTRIES_PER_CALL
        if calls > STEP_CALLS:
            yield calls
            calls = 0
    yield calls
    return True
