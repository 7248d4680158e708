"""What must be equal in all replicas of a partition when everything is healed and nobody writes. Pure."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from odradek.sim.replication import rules

Fail = Callable[[str, str], None]


class Resting(NamedTuple):
    """A replica at rest. Everything from `start` on, below the high watermark."""

    start: int
    high_watermark: int
    end: int
    batches: Mapping[int, bytes]
    """By base offset, byte for byte."""
    epochs: tuple[tuple[int, int], ...]
    """(leader epoch, start offset), up to that of the last record."""
    producers: Mapping[int, object]
    aborted: frozenset[tuple[int, int]]
    """(producer id, first offset) of aborted transactions."""


def check_at_rest(name: str, replicas: Mapping[int, Resting], fail: Fail, *, is_compacted: bool) -> None:
    """Every replica is equal to the first one, above the highest log start."""
    (first_id, first), *others = sorted(replicas.items())
    start = max(replica.start for replica in replicas.values())
    for node, other in others:
        text = f"{name}: {first_id} and {node}"
        if (first.high_watermark, first.end) != (other.high_watermark, other.end):
            bounds = f"{first.high_watermark}/{first.end} and {other.high_watermark}/{other.end}"
            fail(rules.LIVENESS, f"{text} have high watermark and log end {bounds}")
            continue
        if not is_compacted:
            _compare_batches(text, _above(first.batches, start), _above(other.batches, start), fail)
        ours, theirs = _epochs_above(first, start), _epochs_above(other, start)
        if ours != theirs:
            fail(rules.SAME_EPOCHS, f"{text} have {ours} and {theirs}")
        if first.producers != other.producers:
            differing = sorted(
                key
                for key in first.producers.keys() | other.producers.keys()
                if first.producers.get(key) != other.producers.get(key)
            )
            shown = first.producers.get(differing[0]), other.producers.get(differing[0])
            fail(rules.SAME_PRODUCERS, f"{text} have of producer {differing[0]}: {shown[0]} and {shown[1]}")
        if first.aborted != other.aborted:
            fail(rules.SAME_ABORTED, f"{text} differ in {sorted(first.aborted ^ other.aborted)}")


def _above(batches: Mapping[int, bytes], start: int) -> dict[int, bytes]:
    return {base: data for base, data in batches.items() if base >= start}


def _compare_batches(text: str, ours: Mapping[int, bytes], theirs: Mapping[int, bytes], fail: Fail) -> None:
    for base in sorted(ours.keys() | theirs.keys()):
        if ours.get(base) != theirs.get(base):
            lengths = [None if data is None else len(data) for data in (ours.get(base), theirs.get(base))]
            fail(rules.SAME_BATCHES, f"{text} differ at {base}: {lengths[0]} and {lengths[1]} bytes")
            return


def _epochs_above(replica: Resting, start: int) -> list[tuple[int, int]]:
    """Epochs as they look from `start`: the one that is running there begins there."""
    found: list[tuple[int, int]] = []
    for epoch, begin in replica.epochs:
        if begin <= start:
            found.clear()
            begin = start
        found.append((epoch, begin))
    return found
