"""Checkers of a node's data: pure functions from what clients saw to violations.

Each returns a list of messages, empty if there is no violation. tests/unit/sim/test_checkers.py checks that
each one finds its violation.
"""

from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple, Protocol

from odradek.core.types import TopicPartition
from odradek.sim.checkers.history import Batch, Commit, CommitLog, Fate, Presence

Records = Mapping[int, bytes]
"""Values by offset."""


def _short(value: bytes | None) -> str:
    return "nothing" if value is None else repr(bytes(value[:24]))


def missing_records(tp: TopicPartition, expected: Records, present: Records) -> list[str]:
    """Every record that must have survived is at its offset, with its content."""
    return [
        f"{tp}: offset {offset} must hold {_short(value)} but holds {_short(present.get(offset))}"
        for offset, value in expected.items()
        if present.get(offset) != value
    ]


def invented_records(tp: TopicPartition, present: Records, sent: Mapping[bytes, Batch]) -> list[str]:
    """Every present record was sent to this partition and not refused."""
    found = []
    for offset, value in present.items():
        batch = sent.get(value)
        if batch is None:
            found.append(f"{tp}: offset {offset} holds {_short(value)}, which nobody sent")
        elif batch.tp != tp:
            found.append(f"{tp}: offset {offset} holds {_short(value)}, which was sent to {batch.tp}")
        elif batch.fate is Fate.REFUSED:
            found.append(f"{tp}: offset {offset} holds {_short(value)}, which the broker refused")
    return found


def wrong_start(tp: TopicPartition, log_start: int, trimmed: int) -> list[str]:
    """A log starts no later than the highest DeleteRecords offset."""
    if log_start <= trimmed:
        return []
    return [f"{tp}: the log starts at {log_start}, but no record above {trimmed} was deleted"]


def wrong_topics(known: Mapping[str, tuple[Presence, int]], present: Container[str], asked: int) -> list[str]:
    """Topics exist if their creation was acknowledged, and do not if their deletion was.

    `asked` is the position in the history at which they were listed. Later changes prove nothing.
    """
    found = []
    for name, (presence, changed) in known.items():
        if changed < asked:
            if presence is Presence.PRESENT and name not in present:
                found.append(f"topic {name} was created but does not exist")
            if presence is Presence.ABSENT and name in present:
                found.append(f"topic {name} was deleted but still exists")
    return found


def holes(tp: TopicPartition, present: Records, log_start: int, log_end: int) -> list[str]:
    """The offsets are exactly those between log start and log end."""
    missing = [offset for offset in range(log_start, log_end) if offset not in present]
    beyond = [offset for offset in present if not log_start <= offset < log_end]
    return [f"{tp}: offset {offset} of {log_start}..{log_end} cannot be read" for offset in missing] + [
        f"{tp}: offset {offset} was read outside {log_start}..{log_end}" for offset in beyond
    ]


def broken_order(tp: TopicPartition, present: Records, sent: Mapping[bytes, Batch]) -> list[str]:
    """Records of an idempotent producer are present at most once, in the order of sending."""
    found = []
    last: dict[str, tuple[int, int]] = {}
    for offset in sorted(present):
        value = present[offset]
        batch = sent.get(value)
        if batch is None or not batch.idempotent:
            continue
        number = batch.first + batch.values.index(value)
        before, at = last.get(batch.producer, (-1, -1))
        if number == before:
            found.append(f"{tp}: record {number} of {batch.producer} is at {at} and again at {offset}")
        elif number < before:
            found.append(
                f"{tp}: record {number} of {batch.producer} at {offset} comes after {before} at {at}"
            )
        last[batch.producer] = max((before, at), (number, offset))
    return found


def lost_commits(name: str, log: CommitLog, found: int, asked: int) -> list[str]:
    """The committed offset is that of the last acknowledged commit, or of one that may follow it.

    `asked` is the position in the history at which the offset was requested.
    """
    answered = [commit for place, commit in log.acknowledged if place < asked]
    if not answered:
        return _unless_possible(name, found, [log.known, *(commit.offset for commit in log.sent)])
    last = max(answered, key=_order)
    acknowledged = {commit.number for commit in answered}
    possible = [c.offset for c in log.sent if c.number not in acknowledged or _order(c) >= _order(last)]
    return _unless_possible(name, found, possible)


def _order(commit: Commit) -> tuple[int, int]:
    return commit.generation, commit.number


def lost_flushed_commits(name: str, log: CommitLog, found: int, flushed: int) -> list[str]:
    """After a power loss the committed offset is the flushed one (-1: none), or one that was sent."""
    return _unless_possible(name, found, [flushed, *(commit.offset for commit in log.sent)])


def _unless_possible(name: str, found: int, possible: list[int]) -> list[str]:
    if found in possible:
        return []
    return [f"{name}: the committed offset is {found}, it can only be one of {sorted(set(possible))[-8:]}"]


def zombie_commits(log: CommitLog) -> list[str]:
    """After a generation has committed, no later commit of an older generation is accepted.

    Each era counts its own generations, because a power loss may set them back.
    """
    found = []
    newest = log.newest
    for place, commit in log.acknowledged:
        if newest is not None and commit.era != newest[1].era:
            newest = None
        if newest is not None and commit.generation < newest[1].generation and commit.number > newest[0]:
            found.append(
                f"{commit.group} on {commit.tp}: generation {commit.generation} committed {commit.offset} "
                f"after generation {newest[1].generation} had committed {newest[1].offset}"
            )
        if newest is None or commit.generation > newest[1].generation:
            newest = (place, commit)
    return found


class LogView(Protocol):
    """The offsets of a live log."""

    @property
    def topic_partition(self) -> TopicPartition: ...
    @property
    def log_start_offset(self) -> int: ...
    @property
    def last_stable_offset(self) -> int: ...
    @property
    def high_watermark(self) -> int: ...
    @property
    def log_end_offset(self) -> int: ...


class Marks(NamedTuple):
    log_start: int
    high_watermark: int
    log_end: int


class LogInvariants:
    """Invariants of live logs, at every moment and over time until a node restarts."""

    def __init__(self) -> None:
        self._last: dict[TopicPartition, Marks] = {}

    def check(self, logs: Iterable[LogView]) -> list[str]:
        found = []
        for log in logs:
            tp = log.topic_partition
            start, stable = log.log_start_offset, log.last_stable_offset
            high, end = log.high_watermark, log.log_end_offset
            if not start <= stable <= high <= end:
                found.append(
                    f"{tp}: not log_start {start} <= last_stable {stable} <= high_watermark {high} "
                    f"<= log_end {end}"
                )
            last = self._last.get(tp)
            if last is not None:
                if high < last.high_watermark:
                    found.append(f"{tp}: high_watermark went back from {last.high_watermark} to {high}")
                if start < last.log_start:
                    found.append(f"{tp}: log_start went back from {last.log_start} to {start}")
                if end < last.log_end:
                    found.append(f"{tp}: log_end went back from {last.log_end} to {end} on a leader")
            self._last[tp] = Marks(start, high, end)
        return found

    def new_life(self) -> None:
        self._last.clear()
