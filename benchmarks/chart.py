"""The results as one SVG: Odradek's share of Apache's number per row, on a shared logarithmic axis.

Okabe and Ito's palette; every bar has a title with its numbers; nothing outside the file is needed.
"""

import math
from typing import NamedTuple
from xml.sax.saxutils import escape

from budget import Row

ROW_HEIGHT, LEFT, PLOT_WIDTH, TOP = 26, 390, 520, 70
BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#666666"


class Bar(NamedTuple):
    row: Row
    odradek: float
    other: float
    ratio: float

    @property
    def gain(self) -> float:
        """How many times better than the other: above 1 is better, whichever way the number goes."""
        return 1 / self.ratio if self.row.lower_is_better else self.ratio


def svg(other: str, subtitle: str, bars: list[Bar]) -> str:
    title = f"Odradek beside {other}"
    top = max([10.0, *(bar.gain for bar in bars)])
    low, high = -1.0, math.ceil(math.log10(top))

    def x(gain: float) -> float:
        share = (math.log10(max(gain, 0.1)) - low) / (high - low)
        return LEFT + PLOT_WIDTH * share

    height = TOP + ROW_HEIGHT * len(bars) + 60
    width = LEFT + PLOT_WIDTH + 76
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="sans-serif" font-size="13">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="16" y="26" font-size="17" fill="#000000">{escape(title)}</text>',
        f'<text x="16" y="46" fill="{GREY}">{escape(subtitle)}</text>',
    ]
    bottom = TOP + ROW_HEIGHT * len(bars)
    for exponent in range(int(low), int(high) + 1):
        at = x(10.0**exponent)
        stroke = "#000000" if exponent == 0 else "#dddddd"
        out.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{bottom}" stroke="{stroke}"/>')
        label = f"{10.0**exponent:g}x"
        out.append(f'<text x="{at:.1f}" y="{bottom + 18}" text-anchor="middle" fill="{GREY}">{label}</text>')
    for i, bar in enumerate(bars):
        row, gain = bar.row, bar.gain
        y = TOP + i * ROW_HEIGHT
        start, end = sorted((x(1.0), x(gain)))
        colour = BLUE if gain >= 1 else ORANGE
        numbers = f"{row.label}: Odradek {bar.odradek:.4g} {row.unit}, {other} {bar.other:.4g} {row.unit}"
        out.append(f'<text x="{LEFT - 10}" y="{y + 17}" text-anchor="end">{escape(row.label)}</text>')
        out.append(
            f'<rect x="{start:.1f}" y="{y + 4}" width="{max(end - start, 1):.1f}" height="18" '
            f'fill="{colour}"><title>{escape(numbers)}</title></rect>'
        )
        # In a column of their own: beside the bar they would hide behind the budget's tick.
        edge = LEFT + PLOT_WIDTH + 60
        out.append(f'<text x="{edge}" y="{y + 17}" text-anchor="end">{gain:.3g}x</text>')
        if row.budget_ratio:
            budget = x(1 / row.budget_ratio if row.lower_is_better else row.budget_ratio)
            out.append(
                f'<line x1="{budget:.1f}" x2="{budget:.1f}" y1="{y + 1}" y2="{y + 25}" stroke="#000000" '
                f'stroke-width="3"><title>budget {row.budget:g} {escape(row.unit)}</title></line>'
            )
    out.append(
        f'<text x="{LEFT + PLOT_WIDTH / 2}" y="{bottom + 42}" text-anchor="middle" fill="{GREY}">'
        f"times better than {escape(other)} in the same run (log scale); black ticks: budget</text>"
    )
    out.append("</svg>")
    return "\n".join(out) + "\n"
