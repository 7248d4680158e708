"""The server-side assignors, `uniform` and `range`. Pure: who subscribes to what and who had what, in;
who gets what, out.

Every partition of every subscribed topic goes to exactly one of its subscribers, whatever the order of the
inputs. `uniform` keeps what members have wherever balance allows it.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

Assignment = Mapping[UUID, frozenset[int]]
"""The partitions of a member by topic; a topic without partitions is left out."""

NO_PARTITIONS: Assignment = {}


class Spec(NamedTuple):
    """What an assignor is told. `had` may name topics and partitions that are gone."""

    subscriptions: Mapping[str, frozenset[UUID]]
    had: Mapping[str, Assignment]
    partition_counts: Mapping[UUID, int]
    instance_ids: Mapping[str, str] = MappingProxyType({})
    """Of static members."""


Assignor = Callable[[Spec], dict[str, Assignment]]
_Shares = dict[str, dict[UUID, set[int]]]


def uniform(spec: Spec) -> dict[str, Assignment]:
    """As many partitions for one member as for another, whatever their topics."""
    members = sorted(spec.subscriptions)
    first = spec.subscriptions[members[0]]
    if all(spec.subscriptions[member] == first for member in members):
        return _alike(spec, members, sorted(first))
    return _mixed(spec, members)


def range_(spec: Spec) -> dict[str, Assignment]:
    """Topic by topic, neighbouring partitions to the same member, so that topics can be joined.

    What members had does not count: their order alone does, static members by their instance ids first.
    """
    members = sorted(spec.subscriptions, key=lambda m: _instance_first(m, spec.instance_ids.get(m)))
    shares: dict[str, dict[UUID, frozenset[int]]] = {member: {} for member in members}
    for topic, subscribers in _subscribers(spec, members).items():
        quota, extras = divmod(spec.partition_counts[topic], len(subscribers))
        start = 0
        for i, member in enumerate(subscribers):
            end = start + quota + (i < extras)
            if end > start:
                shares[member][topic] = frozenset(range(start, end))
            start = end
    return dict(shares)


def _instance_first(member: str, instance_id: str | None) -> tuple[bool, str]:
    return instance_id is None, member if instance_id is None else instance_id


ASSIGNORS: dict[str, Assignor] = {"uniform": uniform, "range": range_}


def _frozen(shares: _Shares) -> dict[str, Assignment]:
    return {
        member: {topic: frozenset(partitions) for topic, partitions in topics.items() if partitions}
        for member, topics in shares.items()
    }


def _subscribers(spec: Spec, members: list[str]) -> dict[UUID, list[str]]:
    found: dict[UUID, list[str]] = {}
    for member in members:
        for topic in sorted(spec.subscriptions[member]):
            found.setdefault(topic, []).append(member)
    return found


def _alike(spec: Spec, members: list[str], topics: list[UUID]) -> dict[str, Assignment]:
    """All members subscribe to the same topics: nobody has more than one partition above another."""
    left = {topic: set(range(spec.partition_counts[topic])) for topic in topics}
    quota, extras = divmod(sum(spec.partition_counts[topic] for topic in topics), len(members))
    shares: _Shares = {}
    sizes: dict[str, int] = {}
    for member in members:
        had = spec.had.get(member, NO_PARTITIONS)
        kept = {topic: sorted(left[topic] & had[topic]) for topic in topics if topic in had}
        size = sum(map(len, kept.values()))
        may_have = quota + 1 if size > quota and extras else quota
        extras -= may_have > quota
        shares[member] = _cut(kept, may_have)
        sizes[member] = min(size, may_have)
        for topic, partitions in shares[member].items():
            left[topic] -= partitions
    free = [(topic, partition) for topic in topics for partition in sorted(left[topic])]
    free.reverse()
    for member in members:
        wanted = quota - sizes[member]
        if wanted >= 0 and extras:
            wanted, extras = wanted + 1, extras - 1
        for _ in range(wanted):
            topic, partition = free.pop()
            shares[member].setdefault(topic, set()).add(partition)
    assert not free
    return _frozen(shares)


def _cut(kept: Mapping[UUID, list[int]], size: int) -> dict[UUID, set[int]]:
    cut: dict[UUID, set[int]] = {}
    for topic, partitions in kept.items():
        cut[topic] = set(partitions[:size])
        size -= len(cut[topic])
    return cut


def _mixed(spec: Spec, members: list[str]) -> dict[str, Assignment]:
    """Members subscribe to different topics: no partition could move to a member with two less.

    What nobody has goes to whoever has least, topics with the fewest subscribers first; then partitions move
    from the fullest of a topic's members to the emptiest, as long as that evens them out.
    """
    subscribers = _subscribers(spec, members)
    shares: _Shares = {member: {} for member in members}
    sizes = dict.fromkeys(members, 0)
    rank = {member: i for i, member in enumerate(members)}

    def load(member: str) -> tuple[int, int]:
        return sizes[member], rank[member]

    left = {topic: set(range(spec.partition_counts[topic])) for topic in subscribers}
    for member in members:
        for topic, had in spec.had.get(member, NO_PARTITIONS).items():
            if topic in spec.subscriptions[member]:
                kept = left[topic] & had
                left[topic] -= kept
                shares[member][topic] = kept
                sizes[member] += len(kept)
    for topic in sorted(subscribers, key=lambda t: (len(subscribers[t]), t)):
        for partition in sorted(left[topic]):
            member = min(subscribers[topic], key=load)
            shares[member].setdefault(topic, set()).add(partition)
            sizes[member] += 1
    moved = True
    while moved:
        moved = False
        for topic, candidates in subscribers.items():
            while True:
                fullest = max((m for m in candidates if shares[m].get(topic)), key=load, default=None)
                emptiest = min(candidates, key=load)
                if fullest is None or sizes[fullest] - sizes[emptiest] < 2:
                    break
                partition = max(shares[fullest][topic])
                shares[fullest][topic].remove(partition)
                shares[emptiest].setdefault(topic, set()).add(partition)
                sizes[fullest] -= 1
                sizes[emptiest] += 1
                moved = True
    return _frozen(shares)
