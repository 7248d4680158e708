"""Places the replicas of new partitions: leaders round robin over the brokers, followers in other racks.
Pure.

As in Kafka, each rack gets a replica before any rack gets a second one, and a rack's fenced brokers come
last. Kafka takes leaders round robin over racks. Here every broker leads equally often.
"""

import random
from collections.abc import Iterable
from typing import NamedTuple

from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.image import BrokerRegistration
from odradek.runtime.slices import FEW, Paced


class _Place(NamedTuple):
    broker_id: int
    rack: str | None


def place_replicas(
    brokers: Iterable[BrokerRegistration], partitions: int, replication_factor: int, rng: random.Random
) -> Paced[list[tuple[int, ...]]]:
    """The replicas of each of `partitions` new partitions, the preferred leader first.

    A fenced broker never leads. A broker in controlled shutdown, or with all log directories cordoned, gets
    no replicas. Raises INVALID_REPLICATION_FACTOR if there are too few brokers.
    """
    assert replication_factor > 0, "the caller checks it"
    usable = sorted((b for b in brokers if _is_usable(b)), key=lambda b: b.id)
    active = _by_turns([_Place(b.id, b.rack) for b in usable if not b.fenced], rng)
    fenced = _by_turns([_Place(b.id, b.rack) for b in usable if b.fenced], rng)
    if not active:
        raise _invalid("All brokers are currently fenced, or have all their log directories cordoned.")
    if replication_factor > len(usable):
        raise _invalid(
            f"The target replication factor of {replication_factor} cannot be reached because "
            f"only {len(usable)} broker(s) are registered or some brokers have all their log directories "
            "cordoned."
        )
    start = rng.randrange(len(active) * max(1, len(active) - 1))
    rows = []
    for i in range(partitions):
        rows.append(_row(active, fenced, start + i, replication_factor))
        yield FEW * (2 if replication_factor == 1 else 2 + len(usable))
    return rows


def _by_turns(places: list[_Place], rng: random.Random) -> list[_Place]:
    """One broker of each rack, then the next of each, so that neighbours are in different racks."""
    by_rack: dict[str | None, list[_Place]] = {}
    for place in places:
        by_rack.setdefault(place.rack, []).append(place)
    names = sorted(by_rack, key=lambda name: (name is not None, name or ""))
    rng.shuffle(names)
    for name in names:
        rng.shuffle(by_rack[name])
    longest = max(map(len, by_rack.values()), default=0)
    return [by_rack[name][i] for i in range(longest) for name in names if i < len(by_rack[name])]


def _row(active: list[_Place], fenced: list[_Place], turn: int, replication_factor: int) -> tuple[int, ...]:
    """The replicas of one partition. In each round over the leaders the followers shift by one broker."""
    n = len(active)
    first, shift = turn % n, turn // n
    leader = active[first]
    if replication_factor == 1:
        return (leader.broker_id,)
    others = [*active[first + 1 :], *active[:first]]
    followers = [*_rotated(others, shift), *_rotated(fenced, turn)]
    held = {leader.rack: 1}
    ranked = []
    for position, (broker_id, rack) in enumerate(followers):
        before = held.get(rack, 0)
        held[rack] = before + 1
        ranked.append((before, position, broker_id))
    ranked.sort()
    return (leader.broker_id, *(broker_id for _, _, broker_id in ranked[: replication_factor - 1]))


def _rotated(places: list[_Place], by: int) -> list[_Place]:
    if not places:
        return places
    cut = by % len(places)
    return places[cut:] + places[:cut]


def _is_usable(broker: BrokerRegistration) -> bool:
    is_cordoned = bool(broker.log_dirs) and set(broker.log_dirs) <= set(broker.cordoned_log_dirs or ())
    is_stopping = broker.in_controlled_shutdown and not broker.fenced
    return not is_cordoned and not is_stopping


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, reason)
