"""What must be equal in all replicas of a partition when everything is healed and nobody writes. Pure."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from odradek.sim.replication import rules

Fail = Callable[[str, str], None]


class Producer(NamedTuple):
    """What a replica knows of the last batch of a producer."""

    epoch: int
    last_sequence: int
    last_offset: int


class Resting(NamedTuple):
    """A replica at rest. Everything from `start` on, below the high watermark."""

    start: int
    high_watermark: int
    end: int
    batches: Mapping[int, bytes]
    """By base offset, byte for byte."""
    epochs: tuple[tuple[int, int], ...]
    """(leader epoch, start offset), up to that of the last record."""
    producers: Mapping[int, "Producer"]
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
        _compare_producers(text, _of_records(first, start), _of_records(other, start), fail)
        if first.aborted != other.aborted:
            fail(rules.SAME_ABORTED, f"{text} differ in {sorted(first.aborted ^ other.aborted)}")


def _of_records(replica: Resting, start: int) -> dict[int, Producer]:
    """Producers with records above `start`. A replica that began there never saw the others."""
    return {n: producer for n, producer in replica.producers.items() if producer.last_offset >= start}


def _compare_producers(
    text: str, ours: Mapping[int, Producer], theirs: Mapping[int, Producer], fail: Fail
) -> None:
    for producer_id in sorted(ours.keys() | theirs.keys()):
        if ours.get(producer_id) != theirs.get(producer_id):
            shown = f"{ours.get(producer_id)} and {theirs.get(producer_id)}"
            fail(rules.SAME_PRODUCERS, f"{text} have of producer {producer_id}: {shown}")
            return


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
