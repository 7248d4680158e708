"""Samples into words: the table on the terminal and benchmarks/RESULTS.md. No measuring here."""

import os
import pathlib
import platform
import statistics
from dataclasses import dataclass, field

from budget import ROWS, Row

Samples = dict[str, list[float]]


@dataclass
class Results:
    """What one invocation measured. Odradek ran before and after Apache, which shows the machine's drift."""

    first: Samples = field(default_factory=dict)
    apache: Samples = field(default_factory=dict)
    second: Samples = field(default_factory=dict)
    profiles: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def odradek(self, key: str) -> list[float]:
        return self.first.get(key, []) + self.second.get(key, [])

    def rows(self) -> list[Row]:
        return [row for row in ROWS if self.odradek(row.key)]

    def verdict(self, row: Row) -> str:
        theirs = self.apache.get(row.key)
        return row.verdict(
            statistics.median(self.odradek(row.key)), statistics.median(theirs) if theirs else None
        )

    def missed(self) -> list[Row]:
        return [row for row in self.rows() if self.verdict(row) == "missed"]


def _spread(values: list[float]) -> str:
    if not values:
        return "-"
    return f"{statistics.median(values):.4g} ({min(values):.4g}-{max(values):.4g}, {len(values)})"


def _optional(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def table(results: Results) -> str:
    lines = [
        "| load | unit | Odradek | Apache Kafka | ratio | budget | budget ratio | drift | verdict |",
        "|---|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    for row in results.rows():
        ours, theirs = results.odradek(row.key), results.apache.get(row.key, [])
        ratio = statistics.median(ours) / statistics.median(theirs) if theirs else None
        first, second = results.first.get(row.key), results.second.get(row.key)
        drift = statistics.median(second) / statistics.median(first) if first and second else None
        cells = [
            row.label,
            row.unit,
            _spread(ours),
            _spread(theirs),
            _optional(ratio, ".3g"),
            _optional(row.budget, "g"),
            _optional(row.budget_ratio, ".3g"),
            _optional(drift, ".2f"),
            results.verdict(row),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def machine() -> str:
    model = "unknown processor"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return f"{os.cpu_count()} x {model}, {memory_gb:.0f} GB, {platform.system()} {platform.release()}"


def markdown(results: Results, versions: dict[str, str], command: str, when: str) -> str:
    """The whole of RESULTS.md."""
    parts = [
        "# Benchmark results",
        "",
        f"`{command}`, {when}.",
        "",
        f"Machine: {machine()}. " + ", ".join(f"{k} {v}" for k, v in versions.items()) + ".",
        "",
        "Both brokers ran with shipped defaults, all checks on, one after the other on the same machine:"
        " Odradek, Apache Kafka, Odradek. Numbers are medians (smallest-largest, runs); the ratio is"
        " Odradek's median over Apache's; the drift is the second Odradek half over the first. A budget is"
        " met by the number or by the ratio it was set at (budget.py).",
        "",
        table(results),
        "",
        "![times better than Apache Kafka](results.svg)",
    ]
    missed = results.missed()
    if missed:
        parts += ["", "## Missed, and where the time goes"]
        for section in dict.fromkeys(row.section for row in missed):
            labels = "; ".join(row.label for row in missed if row.section == section)
            parts += ["", f"### {labels}", ""]
            profile = results.profiles.get(section)
            parts += ["```", profile.rstrip(), "```"] if profile else ["No profile applies to this number."]
    if results.failures:
        parts += ["", "## Failed", "", *(f"- {failure}" for failure in results.failures)]
    return "\n".join(parts) + "\n"
