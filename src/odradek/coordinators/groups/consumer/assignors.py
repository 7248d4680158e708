"""The server-side assignors, `uniform` and `range`. Pure: who subscribes to what and who had what, in;
who gets what, out.

Every partition of every subscribed topic goes to exactly one of its subscribers, whatever the order of the
inputs. `uniform` keeps what members have wherever balance allows it. A group may have thousands of members
and of partitions: assigning is paced work.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from odradek.coordinators.groups.consumer.partition_maps import ENTRIES_PER_CALL, by_id
from odradek.runtime.slices import FEW, STEP, Paced

Assignment = Mapping[UUID, frozenset[int]]
"""The partitions of a member by topic; a topic without partitions is left out."""

NO_PARTITIONS: Assignment = {}


class GroupSpec(NamedTuple):
    """What an assignor is told. `had` may name topics and partitions that are gone."""

    subscriptions: Mapping[str, frozenset[UUID]]
    had: Mapping[str, Assignment]
    partition_counts: Mapping[UUID, int]
    instance_ids: Mapping[str, str] = MappingProxyType({})
    """Of static members."""


Assignor = Callable[[GroupSpec], Paced[dict[str, Assignment]]]
_Shares = dict[str, dict[UUID, set[int]]]


def uniform(spec: GroupSpec) -> Paced[dict[str, Assignment]]:
    """As many partitions for one member as for another, whatever their topics."""
    members = sorted(spec.subscriptions)
    first = spec.subscriptions[members[0]]
    for member in members:
        if spec.subscriptions[member] != first:
            return (yield from _mixed(spec, members))
    yield len(members)
    return (yield from _alike(spec, members, sorted(first, key=by_id)))


def range_(spec: GroupSpec) -> Paced[dict[str, Assignment]]:
    """Topic by topic, neighbouring partitions to the same member, so that topics can be joined.

    What members had does not count: their order alone does, static members by their instance ids first.
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
    """All members subscribe to the same topics: nobody has more than one partition above another."""
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
    """What a member had that is still there to have, by topic, and how much that is."""
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
    """How much each member has. The least loaded is first; among equals, the first by name."""

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
    """Members subscribe to different topics: no partition could move to a member with two less.

    What nobody has goes to whoever has least, topics with the fewest subscribers first; then partitions move
    from the fullest of a topic's members to the emptiest, as long as that evens them out.
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
    """Move partitions of a topic from the fullest of its members to the emptiest; whether any moved."""
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
