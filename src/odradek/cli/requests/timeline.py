"""The life of a transactional id as events in order, and as a picture with a lane for each place. Pure."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from odradek.cli.terminal.output import cell
from odradek.cli.terminal.times import format_duration
from odradek.core.types import TopicPartition

WIDTH = 64
COORDINATOR = "coordinator"


class What(StrEnum):
    INIT = "init"
    FENCED = "fenced"
    BEGIN = "begin"
    ADDED = "partition added"
    BATCHES = "batches"
    PREPARE_COMMIT = "prepare commit"
    PREPARE_ABORT = "prepare abort"
    COMMIT_MARKER = "commit marker"
    ABORT_MARKER = "abort marker"
    COMMITTED = "committed"
    ABORTED = "aborted"
    EXPIRED = "expired"


class Event(NamedTuple):
    """Something that happened, on a partition or (without one) on the coordinator."""

    time_ms: int
    what: What
    tp: TopicPartition | None
    offset: int | None
    records: int | None
    producer_id: int
    producer_epoch: int


_MARKS = {
    What.INIT: "i",
    What.FENCED: "!",
    What.BEGIN: "[",
    What.ADDED: "+",
    What.BATCHES: "▪",
    What.PREPARE_COMMIT: "c",
    What.PREPARE_ABORT: "a",
    What.COMMIT_MARKER: "C",
    What.ABORT_MARKER: "A",
    What.COMMITTED: "]",
    What.ABORTED: "]",
    What.EXPIRED: "x",
}
_BEGINS = frozenset({What.BEGIN, What.ADDED, What.BATCHES})
_ENDS = frozenset({What.COMMITTED, What.ABORTED, What.COMMIT_MARKER, What.ABORT_MARKER, What.EXPIRED})
LEGEND = "i init  [ begin  + partition added  ▪ batches  c/a prepare  C/A marker  ] done  ! fenced  x expired"


def draw(events: Sequence[Event]) -> str:
    """A lane for the coordinator and one for each partition; lines run while a transaction is open there."""
    first, last = events[0].time_ms, max(event.time_ms for event in events)
    span = max(1, last - first)
    names: dict[str, list[Event]] = {COORDINATOR: []}
    for event in events:
        names.setdefault(COORDINATOR if event.tp is None else cell(str(event.tp)), []).append(event)
    margin = max(len(name) for name in names)
    lines = [f"{name.ljust(margin)}  {_lane(lane, first, span)}".rstrip() for name, lane in names.items()]
    axis = "0" + format_duration(last - first).rjust(WIDTH - 1)
    return "\n".join([*lines, f"{''.ljust(margin)}  {axis}", f"{''.ljust(margin)}  {LEGEND}"]) + "\n"


def _lane(events: Sequence[Event], first_ms: int, span_ms: int) -> str:
    cells = [" "] * WIDTH
    opened: int | None = None
    places = []
    for event in events:
        at = (event.time_ms - first_ms) * (WIDTH - 1) // span_ms
        places.append((at, event.what))
        if event.what in _BEGINS and opened is None:
            opened = at
        if event.what in _ENDS and opened is not None:
            cells[opened : at + 1] = "─" * (at + 1 - opened)
            opened = None
    if opened is not None:
        cells[opened:] = "─" * (WIDTH - opened)
    taken: set[int] = set()
    for at, what in places:
        # Events closer together than a cell stand beside each other, as long as there is room.
        while at in taken and at < WIDTH - 1:
            at += 1
        taken.add(at)
        cells[at] = _MARKS[what]
    return "".join(cells)
