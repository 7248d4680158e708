"""What `pipeline run` shows while it runs: a line that is redrawn, or a plain one now and then."""

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from odradek.cli.commands import pipeline
from odradek.spark.pipelines.pipeline import Told


class Terminal:
    def __init__(self, is_live: bool) -> None:
        self.is_live = is_live
        self.notes: list[str] = []
        self.drawn: list[str] = []
        self.note, self.redraw = self.notes.append, self.drawn.append


class Running:
    """Every look finds another batch, until there are no more."""

    def __init__(self, batches: int) -> None:
        self._left = iter(range(batches))
        self._batch: int | None = 0

    @property
    def is_active(self) -> bool:
        self._batch = next(self._left, None)
        return self._batch is not None

    def failure(self) -> None:
        return None

    def told(self) -> list[Told]:
        assert self._batch is not None
        return [Told("enriched", self._batch, 1_200, 2_400.4, 500, 7)]


def follow(monkeypatch: pytest.MonkeyPatch, terminal: Terminal, batches: int) -> None:
    """A look per second."""

    def seconds() -> Iterator[float]:
        yield from range(1_000)

    clock = seconds()
    monkeypatch.setattr(pipeline, "_LOOK_S", 0)
    monkeypatch.setattr(pipeline, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    session: Any = SimpleNamespace(terminal=terminal)
    running: Any = Running(batches)
    pipeline._follow(session, running, threading.Event())


def test_on_a_terminal_every_batch_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(is_live=True)
    follow(monkeypatch, terminal, 3)
    assert terminal.drawn == [
        f"enriched: batch {batch} committed, 1,200 rows, 2,400 rows/s, 500 ms, lag 7" for batch in range(3)
    ]
    assert terminal.notes == []


def test_elsewhere_a_line_every_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(is_live=False)
    follow(monkeypatch, terminal, 25)
    assert [line.split(" committed")[0] for line in terminal.notes] == [
        "enriched: batch 0",
        "enriched: batch 10",
        "enriched: batch 20",
    ]
