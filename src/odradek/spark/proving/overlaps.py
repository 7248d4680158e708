"""Whether two streams read the same offsets of the input, or more offsets than it has. Pure."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import NamedTuple

from odradek.core.types import TopicPartition
from odradek.spark.ledger.ledger import Decision, Stream
from odradek.spark.proving.ranges import CHECK, Covered, Span
from odradek.spark.proving.violations import DUPLICATE, UNKNOWN, Violation
from odradek.spark.source.planning import Offsets

INPUTS = "inputs"
"""A check of its own: it sees the same offsets as the ranges, counted in another way."""


class _Taken(NamedTuple):
    """Offsets that batches of a stream took, one after another."""

    start: int
    end: int
    stream: Stream
    spans: list[Span]

    def batch_at(self, offset: int) -> int:
        return next(span.batch for span in self.spans if span.start <= offset < span.end)


def check_overlaps(covered: Mapping[Stream, Covered]) -> list[Violation]:
    """Two streams between the same topics that read the same offsets, such as a query that was restarted from
    scratch."""
    violations: list[Violation] = []
    for tp in sorted({tp for found in covered.values() for tp in chain(found.spans, found.first)}):
        taken = [
            part for stream, found in covered.items() for part in _joined(stream, found.spans.get(tp, ()))
        ]
        violations += _overlaps(tp, sorted(taken, key=lambda part: (part.start, part.end)))
        violations += _unknown_overlaps(tp, covered)
    return violations


def _joined(stream: Stream, spans: Iterable[Span]) -> list[_Taken]:
    """A query may read a topic twice, and join it with itself: what it took counts once."""
    joined: list[_Taken] = []
    for span in sorted(spans, key=lambda span: span.start):
        if joined and span.start <= joined[-1].end:
            last = joined[-1]
            last.spans.append(span)
            joined[-1] = last._replace(end=max(last.end, span.end))
        else:
            joined.append(_Taken(span.start, span.end, stream, [span]))
    return joined


def _overlaps(tp: TopicPartition, taken: Iterable[_Taken]) -> list[Violation]:
    """From the lowest start upwards: what lies below the highest end so far was taken before."""
    violations: list[Violation] = []
    furthest: _Taken | None = None
    for part in taken:
        if furthest is not None and part.start < furthest.end:
            low, high = part.start, min(part.end, furthest.end)
            place = f"{tp} offsets {low} to {high - 1}"
            batch = part.batch_at(low)
            told = (
                f"{place} are in {_batches(part, low, high)} of {part.stream}, "
                f"and in {_batches(furthest, low, high)} of {furthest.stream}"
            )
            violations.append(Violation(CHECK, DUPLICATE, high - low, str(part.stream), batch, place, told))
        if furthest is None or part.end > furthest.end:
            furthest = part
    return violations


def _batches(part: _Taken, low: int, high: int) -> str:
    first, last = part.batch_at(low), part.batch_at(high - 1)
    return f"batch {first}" if first == last else f"batches {first} to {last}"


def _unknown_overlaps(tp: TopicPartition, covered: Mapping[Stream, Covered]) -> list[Violation]:
    violations: list[Violation] = []
    for stream, found in covered.items():
        first = found.first.get(tp)
        if first is None:
            continue
        for other, beside in covered.items():
            begins = [span.start for span in (*beside.spans.get(tp, ()), *_first_of(beside, tp))]
            if other == stream or not begins or min(begins) >= first.end:
                continue
            if tp in beside.first and str(other) < str(stream):
                continue  # told of the other already
            told = (
                f"the start of batch {first.batch} of {stream} in {tp} is not recorded, and {other} read "
                f"offsets below its end, {first.end}, too"
            )
            violations.append(Violation(CHECK, UNKNOWN, 0, str(stream), first.batch, str(tp), told))
    return violations


def _first_of(found: Covered, tp: TopicPartition) -> tuple[Span, ...]:
    return (found.first[tp],) if tp in found.first else ()


def check_bounds(
    covered: Mapping[Stream, Covered], log_starts: Mapping[TopicPartition, int], log_ends: Offsets
) -> list[Violation]:
    """No stream has read what the topic never held; nor all of them together more than it held."""
    violations: list[Violation] = []
    totals: dict[TopicPartition, int] = {}
    for stream, found in covered.items():
        for tp, end in sorted(found.ends.items()):
            held = log_ends.get(tp, 0)
            if end > held:
                told = f"offsets up to {end} of {tp} are in batches of {stream}, but {tp} ends at {held}"
                violations.append(Violation(INPUTS, UNKNOWN, end - held, str(stream), None, str(tp), told))
            begin = found.starts.get(tp, log_starts.get(tp, 0))
            totals[tp] = totals.get(tp, 0) + max(0, min(end, held) - begin)
    for tp, total in sorted(totals.items()):
        held = log_ends.get(tp, 0)
        if total > held:
            told = f"{total} offsets of {tp} are in batches, but it has had only {held}"
            violations.append(Violation(INPUTS, DUPLICATE, total - held, None, None, str(tp), told))
    return violations


def check_known(unknown: Mapping[Stream, list[Decision]], sink: str) -> list[Violation]:
    """A stream that wrote to the output, and of which nobody knows what it read, may have read the input."""
    violations: list[Violation] = []
    for stream, decisions in sorted(unknown.items()):
        told = (
            f"{stream} wrote to {sink}, but which offsets it read is not recorded: a plain write, or one "
            "whose checkpoint could not be read"
        )
        violations.append(Violation(CHECK, UNKNOWN, 0, str(stream), decisions[0].batch, sink, told))
    return violations
