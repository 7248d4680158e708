"""Jepsen's anomalies of a queue like Kafka, found in what its clients did (operations.py). Pure.

Each judge returns a list of messages, empty if there is nothing to find. tests/unit/sim/test_anomalies.py
plants what each one claims to find. Producers must be idempotent, or have one request in flight: others may
reorder and repeat. In the end somebody must have read every partition to its end.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from odradek.core.types import TopicPartition
from odradek.sim.checkers.operations import Operations, Outcome, Send


class Evidence:
    """What all clients together know of each partition."""

    def __init__(self, operations: Operations) -> None:
        self.sends = operations.sends
        self.runs = operations.runs
        self.sent: dict[bytes, Send] = {send.value: send for send in operations.sends}
        assert len(self.sent) == len(operations.sends), "values are unique"
        self.read: dict[bytes, set[tuple[TopicPartition, int]]] = {}
        """Where consumers found each value."""
        self.log: dict[TopicPartition, dict[int, set[bytes]]] = {}
        """The values at each offset, by consumers and by acknowledgements that still hold."""
        self.highest_read: dict[TopicPartition, int] = {}
        for run in operations.runs:
            at = self.log.setdefault(run.tp, {})
            for offset, value in run.polled:
                at.setdefault(offset, set()).add(value)
                self.read.setdefault(value, set()).add((run.tp, offset))
                self.highest_read[run.tp] = max(offset, self.highest_read.get(run.tp, -1))
        for send in operations.sends:
            if send.outcome is Outcome.ACKNOWLEDGED and send.offset is not None:
                self.log.setdefault(send.tp, {}).setdefault(send.offset, set()).add(send.value)
        self.offsets: dict[TopicPartition, list[int]] = {tp: sorted(at) for tp, at in self.log.items()}
        """Offsets that have a value. All others may be markers, aborted records, or gaps of compaction."""

    def places(self, send: Send) -> set[tuple[TopicPartition, int]]:
        """Every place that anybody knows of for a record."""
        found = set(self.read.get(send.value, ()))
        if send.outcome is Outcome.ACKNOWLEDGED and send.offset is not None:
            found.add((send.tp, send.offset))
        return found

    def between(self, tp: TopicPartition, low: int, high: int) -> list[int]:
        """Offsets with a value above the lower and below the higher one."""
        offsets = self.offsets.get(tp, [])
        return offsets[bisect_right(offsets, low) : bisect_left(offsets, high)]


def lost_writes(evidence: Evidence) -> list[str]:
    """An acknowledged record that nobody read, although somebody read its offset or a later one.

    Without an offset, any read of the partition counts: in the end all is read.
    """
    return [
        f"{_named(send)} was acknowledged, nobody read it, and {send.tp} was read up to {highest}"
        for send in evidence.sends
        if send.outcome is Outcome.ACKNOWLEDGED and send.value not in evidence.read
        for highest in (evidence.highest_read.get(send.tp, -1),)
        if (send.offset or 0) <= highest
    ]


def unseen(evidence: Evidence) -> list[str]:
    """An acknowledged record that nobody read in the end, and nothing after it either."""
    return [
        f"{_named(send)} was acknowledged, and no consumer came so far"
        for send in evidence.sends
        if send.outcome is Outcome.ACKNOWLEDGED and send.value not in evidence.read
        if (send.offset or 0) > evidence.highest_read.get(send.tp, -1)
    ]


def duplicates(evidence: Evidence) -> list[str]:
    """A record at two places."""
    return [
        f"{_named(send)} is at {_shown(places)}"
        for send in evidence.sends
        if len(places := evidence.places(send)) > 1
    ]


def inconsistent_offsets(evidence: Evidence) -> list[str]:
    """An offset with two records: two consumers, or a consumer and an acknowledgement, do not agree."""
    return [
        f"{tp} {offset} is {' and '.join(map(repr, sorted(values)))}"
        for tp, at in evidence.log.items()
        for offset, values in sorted(at.items())
        if len(values) > 1
    ]


def aborted_reads(evidence: Evidence) -> list[str]:
    """A record that failed, or whose transaction was aborted, was read."""
    return [
        f"{_named(evidence.sent[value])} failed and was read at {_shown(places)}"
        for value, places in evidence.read.items()
        if value in evidence.sent and evidence.sent[value].outcome is Outcome.FAILED
    ]


def invented_reads(evidence: Evidence) -> list[str]:
    """A value that nobody sent, or not to this partition, was read. Jepsen has no name for it."""
    return [
        f"{value!r} was read at {tp} {offset}, and nobody sent it there"
        for value, places in evidence.read.items()
        for tp, offset in sorted(places)
        if value not in evidence.sent or evidence.sent[value].tp != tp
    ]


def nonmonotonic_sends(evidence: Evidence) -> list[str]:
    """Two records of a producer in one partition are not in the order of sending."""
    found = []
    last: dict[tuple[str, TopicPartition], tuple[int, Send]] = {}
    for send in evidence.sends:
        places = evidence.places(send)
        if len(places) != 1:
            continue  # not in the log, or a duplicate
        ((tp, offset),) = places
        before = last.get((send.client, tp))
        if before is not None and before[0] > offset:
            found.append(f"{_named(send)} is at {tp} {offset}, before {before[1].value!r} at {before[0]}")
        last[send.client, tp] = (offset, send)
    return found


def nonmonotonic_polls(evidence: Evidence) -> list[str]:
    """A consumer got an offset that is not above the last one it got in the same run."""
    return [
        f"{run.client} got {run.tp} {after.offset} after {before.offset}"
        for run in evidence.runs
        for before, after in zip(run.polled, run.polled[1:], strict=False)
        if after.offset <= before.offset
    ]


def poll_skips(evidence: Evidence) -> list[str]:
    """A consumer passed offsets at which there are records, in the same run."""
    return [
        f"{run.client} got {run.tp} {after.offset} after {before.offset}, without {skipped[:5]}"
        for run in evidence.runs
        for before, after in zip(run.polled, run.polled[1:], strict=False)
        if after.offset > before.offset + 1
        if (skipped := evidence.between(run.tp, before.offset, after.offset))
    ]


JUDGES: Final[Mapping[str, Callable[[Evidence], list[str]]]] = MappingProxyType(
    {
        "lost write": lost_writes,
        "unseen": unseen,
        "duplicate": duplicates,
        "inconsistent offsets": inconsistent_offsets,
        "aborted read": aborted_reads,
        "invented read": invented_reads,
        "nonmonotonic send": nonmonotonic_sends,
        "nonmonotonic poll": nonmonotonic_polls,
        "poll skip": poll_skips,
    }
)


def anomalies(operations: Operations) -> dict[str, list[str]]:
    """By their names; empty if there are none."""
    evidence = Evidence(operations)
    return {name: found for name, judge in JUDGES.items() if (found := judge(evidence))}


def _named(send: Send) -> str:
    at = "" if send.offset is None else f" (offset {send.offset})"
    return f"{send.value!r} of {send.client} to {send.tp}{at}"


def _shown(places: set[tuple[TopicPartition, int]]) -> str:
    return ", ".join(f"{tp} {offset}" for tp, offset in sorted(places))
