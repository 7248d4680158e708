"""The server-side assignors `uniform` and `range`. Pure: subscriptions and previous assignments in, new
assignments out.

Every partition of every subscribed topic goes to exactly one of its subscribers. The result does not depend
on the order of the inputs. `uniform` keeps previous assignments as far as balance allows. A group may have
thousands of members and partitions, so assigning is paced work.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from odradek.coordinators.groups.consumer.partition_maps import ENTRIES_PER_CALL, by_id
from odradek.runtime.slices import FEW, STEP, Paced

Assignment = Mapping[UUID, frozenset[int]]
"""The partitions of a member by topic. Topics without partitions are omitted."""

NO_PARTITIONS: Assignment = {}


class GroupSpec(NamedTuple):
    """The input of an assignor. `had` may contain topics and partitions that no longer exist."""

    subscriptions: Mapping[str, frozenset[UUID]]
    had: Mapping[str, Assignment]
    partition_counts: Mapping[UUID, int]
    instance_ids: Mapping[str, str] = MappingProxyType({})
    """The instance ids of static members."""


Assignor = Callable[[GroupSpec], Paced[dict[str, Assignment]]]
_Shares = dict[str, dict[UUID, set[int]]]


def uniform(spec: GroupSpec) -> Paced[dict[str, Assignment]]:
    """Balance the number of partitions per member over all topics."""
    members = sorted(spec.subscriptions)
    first = spec.subscriptions[members[0]]
    for member in members:
        if spec.subscriptions[member] != first:
            return (yield from _mixed(spec, members))
    yield len(members)
    return (yield from _alike(spec, members, sorted(first, key=by_id)))


def range_(spec: GroupSpec) -> Paced[dict[str, Assignment]]:
    """Assign each topic separately, adjacent partitions to the same member, so that topics can be joined.

    Previous assignments do not count, only the order of members: static members first, by instance id.
    """
    members = sorted(spec.subscriptions, key=lambda m: _instance_first(m, spec.instance_ids.get(m)))
    yield FEW * len(members)
    shares: dict[str, dict[UUID, frozenset[int]]] = {member: {} for member in members}
    for topic, subscribers in (yield from _subscribers(spec, members)).items():
        count = spec.partition_counts[topic]
        quota, extras = divmod(count, len(subscribers))
        start = 0
        for i, member in enumerate(subscribers):
            end = start + quota + (i < extras)
            if end == start:
                break
            shares[member][topic] = frozenset(range(start, end))
            start = end
            yield FEW + quota // ENTRIES_PER_CALL
        yield 2 * FEW
    return dict(shares)


def _instance_first(member: str, instance_id: str | None) -> tuple[bool, str]:
    return instance_id is None, member if instance_id is None else instance_id


ASSIGNORS: dict[str, Assignor] = {"uniform": uniform, "range": range_}


def _frozen(shares: _Shares) -> Paced[dict[str, Assignment]]:
    frozen: dict[str, Assignment] = {}
    for member, topics in shares.items():
        own = frozen[member] = {}
        for topic, partitions in topics.items():
            if partitions:
                own[topic] = frozenset(partitions)
            yield FEW + len(partitions) // ENTRIES_PER_CALL
        yield FEW
    return frozen


def _subscribers(spec: GroupSpec, members: list[str]) -> Paced[dict[UUID, list[str]]]:
    found: dict[UUID, list[str]] = {}
    for member in members:
        for topic in sorted(spec.subscriptions[member], key=by_id):
            found.setdefault(topic, []).append(member)
            yield FEW + 1
        yield FEW
    return found


def _alike(spec: GroupSpec, members: list[str], topics: list[UUID]) -> Paced[dict[str, Assignment]]:
    """All members subscribe to the same topics: their numbers of partitions differ by at most one."""
    left: dict[UUID, set[int]] = {}
    total = 0
    for topic in topics:
        count = spec.partition_counts[topic]
        left[topic] = set(range(count))
        total += count
        yield 2 * FEW + count // ENTRIES_PER_CALL
    quota, extras = divmod(total, len(members))
    shares: _Shares = {}
    sizes: dict[str, int] = {}
    for member in members:
        kept, size = yield from _kept(left, spec.had.get(member, NO_PARTITIONS))
        may_have = quota + 1 if size > quota and extras else quota
        extras -= may_have > quota
        shares[member] = yield from _cut(kept, may_have)
        sizes[member] = min(size, may_have)
        for topic, partitions in shares[member].items():
            left[topic] -= partitions
            yield FEW
        yield STEP // 2
    free: list[tuple[UUID, int]] = []
    for topic in reversed(topics):
        free += [(topic, partition) for partition in sorted(left[topic], reverse=True)]
        yield FEW + len(left[topic]) // ENTRIES_PER_CALL
    for member in members:
        wanted = quota - sizes[member]
        if wanted >= 0 and extras:
            wanted, extras = wanted + 1, extras - 1
        for _ in range(wanted):
            topic, partition = free.pop()
            shares[member].setdefault(topic, set()).add(partition)
            yield 2 * FEW
        yield FEW
    assert not free
    return (yield from _frozen(shares))


def _kept(left: Mapping[UUID, set[int]], had: Assignment) -> Paced[tuple[dict[UUID, list[int]], int]]:
    """The previous partitions of a member that are still free, by topic, and their number."""
    kept: dict[UUID, list[int]] = {}
    size = 0
    for topic in sorted(had, key=by_id):
        free = left.get(topic)
        if free is not None:
            found = kept[topic] = sorted(free & had[topic])
            size += len(found)
            yield STEP // 2 + len(had[topic]) // ENTRIES_PER_CALL
    return kept, size


def _cut(kept: Mapping[UUID, list[int]], size: int) -> Paced[dict[UUID, set[int]]]:
    cut: dict[UUID, set[int]] = {}
    for topic, partitions in kept.items():
        cut[topic] = set(partitions[:size])
        size -= len(cut[topic])
        yield 2 * FEW
    return cut


class _Loads:
    """The number of partitions of each member, comparable: fewest first, then by name."""

    __slots__ = ("_of", "load")

    def __init__(self, members: Sequence[str]) -> None:
        self._of = {member: (0, rank) for rank, member in enumerate(members)}
        self.load = self._of.__getitem__

    def size(self, member: str) -> int:
        return self._of[member][0]

    def add(self, member: str, count: int) -> None:
        size, rank = self._of[member]
        self._of[member] = size + count, rank


def _mixed(spec: GroupSpec, members: list[str]) -> Paced[dict[str, Assignment]]:
    """Members subscribe to different topics: no partition could move to a subscriber that has two fewer.

    Free partitions go to the subscriber with the fewest partitions, topics with the fewest subscribers first.
    Then partitions of a topic move from its fullest member to its emptiest one, while this improves the
    balance.
    """
    subscribers = yield from _subscribers(spec, members)
    shares: _Shares = {member: {} for member in members}
    loads = _Loads(members)
    left: dict[UUID, set[int]] = {}
    for topic in subscribers:
        left[topic] = set(range(spec.partition_counts[topic]))
        yield 2 * FEW + len(left[topic]) // ENTRIES_PER_CALL
    for member in members:
        for topic, had in spec.had.get(member, NO_PARTITIONS).items():
            if topic in spec.subscriptions[member]:
                kept = left[topic] & had
                left[topic] -= kept
                if kept:
                    shares[member][topic] = kept
                loads.add(member, len(kept))
            yield STEP // 2 + len(had) // ENTRIES_PER_CALL
        yield FEW
    for topic in sorted(subscribers, key=lambda t: (len(subscribers[t]), t.int)):
        candidates = subscribers[topic]
        for partition in sorted(left[topic]):
            member = min(candidates, key=loads.load)
            shares[member].setdefault(topic, set()).add(partition)
            loads.add(member, 1)
            yield 2 * FEW + len(candidates) // ENTRIES_PER_CALL
        yield 2 * FEW
    moved = True
    while moved:
        moved = False
        for topic, candidates in subscribers.items():
            moved |= yield from _even_out(topic, candidates, shares, loads)
    return (yield from _frozen(shares))


def _even_out(topic: UUID, candidates: list[str], shares: _Shares, loads: _Loads) -> Paced[bool]:
    """Move partitions of a topic from its fullest member to its emptiest one. Returns whether any moved."""
    moved = False
    while True:
        owners = [member for member in candidates if topic in shares[member]]
        yield STEP // 2 + 2 * len(candidates)
        fullest = max(owners, key=loads.load, default=None)
        emptiest = min(candidates, key=loads.load)
        if fullest is None or loads.size(fullest) - loads.size(emptiest) < 2:
            return moved
        partition = max(shares[fullest][topic])
        shares[fullest][topic].remove(partition)
        if not shares[fullest][topic]:
            del shares[fullest][topic]
        shares[emptiest].setdefault(topic, set()).add(partition)
        loads.add(fullest, -1)
        loads.add(emptiest, 1)
        moved = True
