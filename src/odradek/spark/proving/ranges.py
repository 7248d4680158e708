"""Whether the decided batches of a stream cover its input without a gap and without an overlap. Pure."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from odradek.core.types import TopicPartition
from odradek.spark.ledger.ledger import Decision, Range, Stream, topics_of
from odradek.spark.proving.violations import DUPLICATE, LOST, UNKNOWN, Violation
from odradek.spark.source.planning import TOPICS, Offsets, from_json, starts_of

CHECK = "ranges"
History = Sequence[tuple[Stream, Decision]]


class Span(NamedTuple):
    """Offsets of an input partition that a batch was made of; the end is not included."""

    batch: int
    start: int
    end: int


class Covered(NamedTuple):
    """What a stream has taken of its input. `spans` are those of which both ends are known; `first` are the
    batches of which only the end is: those of checkpoints that do not tell where the stream began."""

    starts: Offsets
    ends: Offsets
    spans: dict[TopicPartition, list[Span]]
    first: dict[TopicPartition, Span]
    violations: list[Violation]


class Writers(NamedTuple):
    """The streams that wrote to the output, by what is known of their input."""

    between: dict[Stream, list[Decision]]
    """They read the input."""
    elsewhere: dict[Stream, list[Decision]]
    """They read other topics, and not the input."""
    unknown: dict[Stream, list[Decision]]
    """No decision of theirs says what they read."""


def writers_of(history: History, source: str, sink: str) -> Writers:
    """The decisions by stream and batch."""
    found: dict[Stream, list[Decision]] = {}
    for stream, decision in history:
        found.setdefault(stream, []).append(decision)
    writers = Writers({}, {}, {})
    for stream, decisions in found.items():
        if not any(sink in topics_of(d) for d in decisions):
            continue
        kept = sorted(decisions, key=lambda decision: decision.batch)
        if any(_reads(d, source) for d in decisions):
            writers.between[stream] = kept
        elif any(d.range.is_known for d in decisions):
            writers.elsewhere[stream] = kept
        else:
            writers.unknown[stream] = kept
    return writers


def _reads(decision: Decision, source: str) -> bool:
    return any(tp.topic == source for line in decision.range.end for tp in _Line(line).offsets)


class _Line:
    """The offsets of a source, as a checkpoint has them; empty where it is a source of another kind."""

    def __init__(self, line: str) -> None:
        self.offsets: Offsets = {}
        self.starts: Offsets = {}
        self.ids: Mapping[str, str] = {}
        try:
            value = json.loads(line)
            self.offsets = from_json(value)[0]
            self.starts = starts_of(value)
            self.ids = value.get(TOPICS, {})
        except (ValueError, TypeError, AttributeError):
            pass


def once_each(stream: Stream, decisions: Iterable[Decision]) -> tuple[list[Decision], list[Violation]]:
    """The run that takes over tells the last decision again; one that differs would be a second commit."""
    kept: dict[int, Decision] = {}
    violations: list[Violation] = []
    for decision in decisions:
        known = kept.setdefault(decision.batch, decision)
        if (known.range, known.participants) != (decision.range, decision.participants):
            rows = sum(p.rows for p in decision.participants)
            told = f"batch {decision.batch} was decided twice, with different transactions"
            violations.append(
                Violation(CHECK, DUPLICATE, rows, str(stream), decision.batch, str(decision.range), told)
            )
    return [kept[batch] for batch in sorted(kept)], violations


def check_ranges(
    stream: Stream, decisions: Sequence[Decision], source: str, topic_id: str | None = None
) -> Covered:
    """Each batch begins where the one before it ended, in every partition of the input. `topic_id` is the
    input's: an earlier topic of the same name had other records."""
    return _Walk(stream, source, topic_id).run(decisions)


class _Walk:
    def __init__(self, stream: Stream, source: str, topic_id: str | None) -> None:
        self._stream = stream
        self._source = source
        self._topic_id = topic_id
        self._at: dict[tuple[int, TopicPartition], int] = {}
        self._strange: set[str] = set()
        self._covered = Covered({}, {}, {}, {}, [])

    def run(self, decisions: Sequence[Decision]) -> Covered:
        previous: int | None = None
        for decision in decisions:
            if previous is not None and decision.batch != previous + 1:
                missing = f"{previous + 1}" if decision.batch == previous + 2 else f"{previous + 1} and more"
                told = f"batch {missing} was never decided, but batch {decision.batch} was"
                self._add(LOST, 0, decision.batch, "", told)
            previous = decision.batch
            if decision.range.is_known:
                self._take(decision.batch, decision.range, is_first=decision is decisions[0])
            elif decision.participants:
                told = f"the offsets of batch {decision.batch} were not recorded"
                self._add(UNKNOWN, 0, decision.batch, "", told)
        return self._covered

    def _add(self, kind: str, count: int, batch: int, place: str, told: str) -> None:
        self._covered.violations.append(Violation(CHECK, kind, count, str(self._stream), batch, place, told))

    def _take(self, batch: int, range_: Range, *, is_first: bool) -> None:
        """The lines of a range are the query's sources, in the same order every time."""
        for number, line in enumerate(range_.end):
            end, has_start = _Line(line), number < len(range_.start)
            ends, begun = self._of_source(end), self._of_input(end.starts)
            starts = self._of_source(_Line(range_.start[number])) if has_start else {}
            self._note_strange(batch, end)
            for tp in sorted(set(starts) | set(ends)):
                # A partition that was new in a later batch begins at 0 where nothing else is said.
                start = starts.get(tp, begun.get(tp, 0 if has_start else None))
                self._take_partition(batch, number, tp, start, ends.get(tp), is_first)

    def _of_source(self, line: _Line) -> Offsets:
        return self._of_input(line.offsets) if self._is_same(line) else {}

    def _of_input(self, offsets: Offsets) -> Offsets:
        return {tp: offset for tp, offset in offsets.items() if tp.topic == self._source}

    def _is_same(self, line: _Line) -> bool:
        return self._topic_id is None or line.ids.get(self._source, self._topic_id) == self._topic_id

    def _note_strange(self, batch: int, line: _Line) -> None:
        id_ = line.ids.get(self._source)
        if self._is_same(line) or id_ is None or id_ in self._strange:
            return
        self._strange.add(id_)
        told = (
            f"batch {batch} read an earlier topic {self._source} (id {id_}), which was deleted: its records "
            "cannot be checked"
        )
        self._add(UNKNOWN, 0, batch, self._source, told)

    def _take_partition(
        self, batch: int, number: int, tp: TopicPartition, start: int | None, end: int | None, is_first: bool
    ) -> None:
        covered, reached = self._covered, self._at.get((number, tp))
        if end is None:
            self._add(LOST, 0, batch, str(tp), f"batch {batch} left out {tp}, which was read before")
            return
        if reached is not None and start is not None and start != reached:
            kind, low, high = (LOST, reached, start) if start > reached else (DUPLICATE, start, reached)
            told = (
                f"batch {batch} begins at offset {start} of {tp}, but the batches before it end at {reached}"
            )
            self._add(kind, high - low, batch, f"{tp} offsets {low} to {high - 1}", told)
        if start is not None and end < start:
            told = f"batch {batch} ends at offset {end} of {tp}, before its start {start}"
            self._add(DUPLICATE, start - end, batch, str(tp), told)
        if tp not in covered.ends and start is not None and is_first:
            covered.starts[tp] = start
        begin = start if start is not None else reached
        if begin is None:
            covered.first[tp] = Span(batch, 0, end)
        elif begin < end:
            covered.spans.setdefault(tp, []).append(Span(batch, begin, end))
        self._at[number, tp] = end
        covered.ends[tp] = max(end, covered.ends.get(tp, 0))
