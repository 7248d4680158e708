"""Whether the decided batches of a stream cover its input without a gap and without an overlap. Pure."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from odradek.core.types import TopicPartition
from odradek.spark.ledger import Decision, Range, Stream
from odradek.spark.planning import Offsets, from_json
from odradek.spark.proving.violations import DUPLICATE, LOST, UNKNOWN, Violation

CHECK = "ranges"
History = Sequence[tuple[Stream, Decision]]


class Span(NamedTuple):
    """Offsets of an input partition that a batch was made of; the end is not included."""

    batch: int
    start: int
    end: int


class Covered(NamedTuple):
    """What a stream has taken of its input. `spans` are those of which both ends are known: where a stream
    begins with its first batch, no checkpoint tells."""

    starts: Offsets
    ends: Offsets
    spans: dict[TopicPartition, list[Span]]
    violations: list[Violation]


def decisions_between(history: History, source: str, sink: str) -> dict[Stream, list[Decision]]:
    """The decisions of streams that read one topic and write the other, by batch."""
    found: dict[Stream, list[Decision]] = {}
    for stream, decision in history:
        found.setdefault(stream, []).append(decision)
    return {
        stream: sorted(decisions, key=lambda decision: decision.batch)
        for stream, decisions in found.items()
        if any(sink in topics_of(d) for d in decisions) and any(_reads(d, source) for d in decisions)
    }


def topics_of(decision: Decision) -> set[str]:
    return {topic for participant in decision.participants for topic, _ in participant.partitions}


def _reads(decision: Decision, source: str) -> bool:
    return any(tp.topic == source for line in decision.range.end for tp in _offsets(line))


def _offsets(line: str) -> Offsets:
    """A source's offsets; none where it is of another kind."""
    try:
        return from_json(json.loads(line))[0]
    except (ValueError, TypeError, AttributeError):
        return {}


def once_each(stream: Stream, decisions: Iterable[Decision]) -> tuple[list[Decision], list[Violation]]:
    """The run that takes over tells the last decision again; one that differs would be a second commit."""
    kept: dict[int, Decision] = {}
    violations: list[Violation] = []
    for decision in decisions:
        known = kept.setdefault(decision.batch, decision)
        if (known.range, known.participants) != (decision.range, decision.participants):
            rows = sum(p.rows for p in decision.participants)
            told = f"batch {decision.batch} was decided twice, with other transactions the second time"
            violations.append(
                Violation(CHECK, DUPLICATE, rows, str(stream), decision.batch, str(decision.range), told)
            )
    return [kept[batch] for batch in sorted(kept)], violations


def check_ranges(stream: Stream, decisions: Sequence[Decision], source: str) -> Covered:
    """Each batch begins where the one before it ended, in every partition of the input."""
    return _Walk(stream, source).run(decisions)


class _Walk:
    def __init__(self, stream: Stream, source: str) -> None:
        self._stream = stream
        self._source = source
        self._at: dict[tuple[int, TopicPartition], int] = {}
        self._covered = Covered({}, {}, {}, [])

    def run(self, decisions: Sequence[Decision]) -> Covered:
        previous: int | None = None
        for decision in decisions:
            if previous is not None and decision.batch != previous + 1:
                missing = f"{previous + 1}" if decision.batch == previous + 2 else f"{previous + 1} and more"
                told = f"batch {missing} was never decided, and batch {decision.batch} was"
                self._add(LOST, 0, decision.batch, "", told)
            previous = decision.batch
            if decision.range.is_known:
                self._take(decision.batch, decision.range, is_first=decision is decisions[0])
            elif decision.participants:
                told = f"which offsets batch {decision.batch} was made of was not recorded"
                self._add(UNKNOWN, 0, decision.batch, "", told)
        return self._covered

    def _add(self, kind: str, count: int, batch: int, place: str, told: str) -> None:
        self._covered.violations.append(Violation(CHECK, kind, count, str(self._stream), batch, place, told))

    def _take(self, batch: int, range_: Range, *, is_first: bool) -> None:
        """The lines of a range are the query's sources, in the same order every time."""
        for number, line in enumerate(range_.end):
            ends = self._of_source(line)
            starts = self._of_source(range_.start[number]) if number < len(range_.start) else {}
            for tp in sorted(set(starts) | set(ends)):
                self._take_partition(batch, number, tp, starts.get(tp), ends.get(tp), is_first)

    def _of_source(self, line: str) -> Offsets:
        return {tp: offset for tp, offset in _offsets(line).items() if tp.topic == self._source}

    def _take_partition(
        self, batch: int, number: int, tp: TopicPartition, start: int | None, end: int | None, is_first: bool
    ) -> None:
        covered, reached = self._covered, self._at.get((number, tp))
        if end is None:
            self._add(LOST, 0, batch, str(tp), f"batch {batch} left {tp} out, which was read before")
            return
        if reached is not None and start is not None and start != reached:
            kind, low, high = (LOST, reached, start) if start > reached else (DUPLICATE, start, reached)
            told = (
                f"batch {batch} begins at offset {start} of {tp}, and the batches before it end at {reached}"
            )
            self._add(kind, high - low, batch, f"{tp} offsets {low} to {high - 1}", told)
        if start is not None and end < start:
            told = f"batch {batch} ends at offset {end} of {tp}, before its start {start}"
            self._add(DUPLICATE, start - end, batch, str(tp), told)
        if tp not in covered.ends and start is not None and is_first:
            covered.starts[tp] = start
        begin = start if start is not None else reached
        if begin is not None and begin < end:
            covered.spans.setdefault(tp, []).append(Span(batch, begin, end))
        self._at[number, tp] = end
        covered.ends[tp] = max(end, covered.ends.get(tp, 0))


def check_overlaps(covered: Mapping[Stream, Covered]) -> list[Violation]:
    """Two streams between the same topics that took the same offsets: such as a query that was begun anew."""
    violations: list[Violation] = []
    seen: dict[TopicPartition, list[tuple[Span, Stream]]] = {}
    for stream, found in covered.items():
        for tp, spans in sorted(found.spans.items()):
            for span in spans:
                for other, owner in seen.get(tp, ()):
                    low, high = max(span.start, other.start), min(span.end, other.end)
                    if owner != stream and low < high:
                        place = f"{tp} offsets {low} to {high - 1}"
                        told = (
                            f"{place} are in batch {span.batch} of {stream}, "
                            f"and in batch {other.batch} of {owner}"
                        )
                        violations.append(
                            Violation(CHECK, DUPLICATE, high - low, str(stream), span.batch, place, told)
                        )
        for tp, spans in found.spans.items():
            seen.setdefault(tp, []).extend((span, stream) for span in spans)
    return violations
