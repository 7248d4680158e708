"""The picture of a run, as one SVG: orders over time, kills, batches, and what the proof says. Pure.

Okabe and Ito's palette, for light and dark pages; every mark has a title; nothing outside the file is needed.
"""

from collections.abc import Callable, Sequence
from math import ceil
from typing import NamedTuple
from xml.sax.saxutils import escape

from odradek.spark.demo.proof import Proof
from odradek.spark.demo.story import DRIVER, Counts, Story

WIDTH, HEIGHT = 1200, 675
_MARGIN = 40
_LEFT, _RIGHT, _TOP, _BOTTOM = 124, 1148, 262, 540
_PAPER, _INK, _GREY, _PALE = "paper", "ink", "grey", "pale"
_BLUE, _ORANGE, _GREEN, _RED, _PURPLE = "blue", "orange", "green", "red", "purple"
# On a light page, on a dark one: the reader's system says which it is.
_COLOURS = {
    _PAPER: ("#ffffff", "#0d1117"),
    _INK: ("#15202b", "#e6edf3"),
    _GREY: ("#5b6470", "#9aa4b0"),
    _PALE: ("#e3e6ea", "#30363d"),
    _BLUE: ("#0072b2", "#56b4e9"),
    _ORANGE: ("#c08400", "#e69f00"),
    _GREEN: ("#009e73", "#2bb88f"),
    _RED: ("#d55e00", "#ff8c3a"),
    _PURPLE: ("#aa4499", "#d98bbf"),
}
_TICKS_WANTED = 8
_RESULTS_X = (_MARGIN, 350, 680, 980)
_MOST_POINTS = 600


class Line(NamedTuple):
    """A count over time; those that lie on one another are told apart by their widths."""

    label: str
    colour: str
    width: float
    count: Callable[[Counts], int]


_LINES = (
    Line("orders produced", _BLUE, 2.5, lambda c: c.produced),
    Line("enriched, written (aborted ones too)", _ORANGE, 5, lambda c: c.written),
    Line("enriched and committed", _GREEN, 2.5, lambda c: c.committed),
)


def svg(story: Story, proof: Proof, elapsed_s: float) -> str:
    scale = _Scale(story)
    title = "Exactly once, whatever is killed"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'font-family="Helvetica, Arial, sans-serif" font-size="15">',
        f"<title>{title}: odradek demo</title>",
        _style(),
        f'<rect width="{WIDTH}" height="{HEIGHT}" class="{_PAPER}"/>',
        _text(_MARGIN, 54, title, size=34, weight="bold"),
        _text(_RIGHT, 54, "odradek demo", size=22, colour=_GREY, anchor="end"),
        _text(_MARGIN, 84, _subtitle(story, elapsed_s), size=16, colour=_GREY),
        *_results(proof),
        *_legend(),
        *_axes(scale),
        *_kills(story, scale),
        *(_line(line, story.counts, scale) for line in _LINES),
        *_batches(story, scale),
        _text(_MARGIN, 652, _footnote(proof), size=15, colour=_GREY),
        "</svg>",
    ]
    return "\n".join(out) + "\n"


def _style() -> str:
    """A class for each colour that fills, and one for each that draws a line."""

    def rules(scheme: int) -> str:
        return " ".join(
            f".{name}{{fill:{colours[scheme]}}} .{name}-line{{stroke:{colours[scheme]}}}"
            for name, colours in _COLOURS.items()
        )

    return f"<style>{rules(0)} @media (prefers-color-scheme: dark){{{rules(1)}}}</style>"


class _Scale:
    """From seconds and orders to the places of the drawing. Both axes end with a tick."""

    def __init__(self, story: Story) -> None:
        batches = max((batch.at_s for batch in story.batches), default=0.0)
        last_s = max(1.0, *(_last_change(story.counts, line) for line in _LINES), batches)
        self.second_ticks = _ticks(last_s, _TICKS_WANTED)
        self.order_ticks = _ticks(max(1, story.orders, *(counts.written for counts in story.counts)), 5)
        self.seconds, self.orders = self.second_ticks[-1], self.order_ticks[-1]

    def x(self, at_s: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * min(1.0, at_s / self.seconds)

    def y(self, orders: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * orders / self.orders


def _last_change(counts: Sequence[Counts], line: Line) -> float:
    """When a line has reached its last value: what follows is not worth a picture."""
    last = line.count(counts[-1])
    return next((c.at_s for c in counts if line.count(c) == last), 0.0)


def _subtitle(story: Story, elapsed_s: float) -> str:
    driver, broker = (f"the {name} {_times(story.killed(name))}" for name in ("driver", "broker"))
    return (
        f"{story.orders:,} orders through Spark, enriched and summed by window, in {elapsed_s:.0f} s. "
        f"Killed with SIGKILL: {driver}, {broker}."
    )


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def _results(proof: Proof) -> list[str]:
    """The four numbers that everything is about, in large letters."""
    numbers = (
        ("inputs", proof.inputs.found, None),
        ("outputs", proof.enriched.found, proof.enriched.expected),
        ("duplicates", proof.duplicates, 0),
        ("lost", proof.lost, 0),
    )
    out = []
    for x, (name, count, wanted) in zip(_RESULTS_X, numbers, strict=True):
        colour = _INK if wanted is None else _GREEN if count == wanted else _RED
        out.append(_text(x, 150, f"{name}: {count:,}", size=30, weight="bold", colour=colour))
    windows = proof.windows
    right = windows.found - windows.duplicates - windows.wrong - windows.unexpected
    colour = _GREY if windows.is_exact else _RED
    told = f"windows: {right:,} of {windows.expected:,} right"
    if windows.duplicates or windows.lost:
        told += f", {windows.duplicates:,} twice, {windows.lost:,} lost"
    out.append(_text(_MARGIN, 184, told, size=18, colour=colour))
    return out


def _legend() -> list[str]:
    out: list[str] = []
    x = float(_MARGIN)
    for line in _LINES:
        out.append(f'<rect x="{x:.1f}" y="222" width="22" height="5" class="{line.colour}"/>')
        out.append(_text(x + 30, 230, line.label))
        x += 60 + 8.4 * len(line.label)
    for target, colour in ((DRIVER, _RED), ("broker", _PURPLE)):
        out.append(_mark(x + 8, 225, target, colour, f"the {target} is killed"))
        out.append(_text(x + 22, 230, f"{target} killed"))
        x += 130
    return out


def _axes(scale: _Scale) -> list[str]:
    out = []
    for orders in scale.order_ticks:
        y = scale.y(orders)
        out.append(f'<line x1="{_LEFT}" x2="{_RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="{_PALE}-line"/>')
        out.append(_text(_LEFT - 10, y + 5, f"{orders:,}", colour=_GREY, anchor="end"))
    for at_s in scale.second_ticks:
        x = scale.x(at_s)
        out.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_BOTTOM}" y2="{_BOTTOM + 5}" class="{_GREY}-line"/>'
        )
        out.append(_text(x, _BOTTOM + 22, f"{at_s} s", colour=_GREY, anchor="middle"))
    out.append(f'<line x1="{_LEFT}" x2="{_RIGHT}" y1="{_BOTTOM}" y2="{_BOTTOM}" class="{_GREY}-line"/>')
    return out


def _ticks(top: float, wanted: int) -> list[int]:
    """Round numbers from 0 to the first that is not below the top, about as many as wanted."""
    step = 1
    while top / step > wanted:
        step = step * 5 // 2 if str(step).startswith("2") else step * 2
    return list(range(0, ceil(top / step) * step + 1, step))


def _kills(story: Story, scale: _Scale) -> list[str]:
    """A mark at the top, a line down, and a shadow until it was back at work."""
    out = []
    for kill in story.kills:
        colour = _RED if kill.target == DRIVER else _PURPLE
        x = scale.x(kill.at_s)
        told = f"{kill.at_s:.1f} s: the {kill.target} (pid {kill.pid}) was killed {kill.told}"
        if kill.back_s is not None:
            width = max(1.0, scale.x(kill.back_s) - x)
            out.append(
                f'<rect x="{x:.1f}" y="{_TOP}" width="{width:.1f}" height="{_BOTTOM - _TOP}" '
                f'class="{colour}" fill-opacity="0.12"/>'
            )
        out.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_BOTTOM}" class="{colour}-line" '
            'stroke-width="1.5" stroke-dasharray="4 3"/>'
        )
        out.append(_mark(x, _TOP, kill.target, colour, told))
    return out


def _mark(x: float, y: float, target: str, colour: str, told: str) -> str:
    """A cross for a driver, a square for a broker: told apart without colours, too."""
    title = f"<title>{escape(told)}</title>"
    if target == DRIVER:
        return (
            f'<path d="M{x - 7:.1f},{y - 7} l14,14 m0,-14 l-14,14" class="{colour}-line" stroke-width="4">'
            f"{title}</path>"
        )
    return f'<rect x="{x - 7:.1f}" y="{y - 7}" width="14" height="14" class="{colour}">{title}</rect>'


def _line(line: Line, counts: Sequence[Counts], scale: _Scale) -> str:
    shown = [c for c in counts if c.at_s <= scale.seconds]
    every = max(1, len(shown) // _MOST_POINTS)
    drawn = [*shown[:-1:every], *shown[-1:]]
    points = " ".join(f"{scale.x(c.at_s):.1f},{scale.y(line.count(c)):.1f}" for c in drawn)
    return (
        f'<polyline points="{points}" fill="none" class="{line.colour}-line" stroke-width="{line.width}" '
        f'stroke-linejoin="round"><title>{escape(line.label)}</title></polyline>'
    )


def _batches(story: Story, scale: _Scale) -> list[str]:
    """A tick for every batch, at the time it was decided; a row for each query."""
    out = []
    for row, (sink, colour) in enumerate((("enriched", _GREEN), ("revenue", _BLUE))):
        y = _BOTTOM + 40 + row * 24
        of_sink = [batch for batch in story.batches if batch.sink == sink]
        out.append(_text(_LEFT - 10, y + 12, sink, size=14, colour=_GREY, anchor="end"))
        for batch in of_sink:
            told = f"{sink}: batch {batch.number}, {batch.rows:,} records, committed at {batch.at_s:.1f} s"
            out.append(
                f'<rect x="{scale.x(batch.at_s) - 1:.1f}" y="{y}" width="2" height="15" class="{colour}">'
                f"<title>{told}</title></rect>"
            )
    return out


def _footnote(proof: Proof) -> str:
    return (
        "Ticks: batches committed. Read back at read_committed by a plain client, compared with the input. "
        f"{proof.aborted:,} records were written and aborted."
    )


def _text(
    x: float,
    y: float,
    text: str,
    *,
    size: int = 15,
    colour: str = _INK,
    weight: str = "normal",
    anchor: str = "start",
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" class="{colour}" '
        f'text-anchor="{anchor}">{escape(text)}</text>'
    )
