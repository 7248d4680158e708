"""Samples into words: the table on the terminal and benchmarks/RESULTS.md. No measuring here."""

import os
import pathlib
import platform
from dataclasses import dataclass, field

from budget import ROWS, Row
from steal import Sample, Samples, median, quieter


@dataclass
class Results:
    """What one invocation measured. Odradek ran before and after Apache, which shows the machine's drift."""

    first: Samples = field(default_factory=dict)
    apache: Samples = field(default_factory=dict)
    second: Samples = field(default_factory=dict)
    profiles: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    awake: bool = True

    def odradek(self, key: str) -> list[Sample]:
        return self.first.get(key, []) + self.second.get(key, [])

    def rows(self) -> list[Row]:
        return [row for row in ROWS if self.odradek(row.key)]

    def verdict(self, row: Row) -> str:
        theirs = self.apache.get(row.key)
        return row.verdict(median(self.odradek(row.key)), median(theirs) if theirs else None)

    def missed(self) -> list[Row]:
        return [row for row in self.rows() if self.verdict(row) == "missed"]


def _spread(samples: list[Sample]) -> str:
    if not samples:
        return "-"
    values = [sample.value for sample in quieter(samples)]
    return f"{median(samples):.4g} ({min(values):.4g}-{max(values):.4g}, {len(values)} of {len(samples)})"


def _stolen(samples: list[Sample]) -> str:
    return f"{max(sample.stolen for sample in quieter(samples)):.0%}" if samples else "-"


def _optional(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def table(results: Results) -> str:
    lines = [
        "| load | unit | Odradek | Apache Kafka | ratio | budget | budget ratio | drift | stolen | verdict |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for row in results.rows():
        ours, theirs = results.odradek(row.key), results.apache.get(row.key, [])
        ratio = median(ours) / median(theirs) if theirs else None
        first, second = results.first.get(row.key), results.second.get(row.key)
        drift = median(second) / median(first) if first and second else None
        cells = [
            row.label,
            row.unit,
            _spread(ours),
            _spread(theirs),
            _optional(ratio, ".3g"),
            _optional(row.budget, "g"),
            _optional(row.budget_ratio, ".3g"),
            _optional(drift, ".2f"),
            f"{_stolen(ours)}, {_stolen(theirs)}",
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
    cores = "were kept awake (awake.py)" if results.awake else "could sleep"
    parts = [
        "# Benchmark results",
        "",
        f"`{command}`, {when}.",
        "",
        f"Machine: {machine()}. " + ", ".join(f"{k} {v}" for k, v in versions.items()) + ".",
        "",
        "Both brokers ran with shipped defaults, all checks on, one after the other on the same machine:"
        f" Odradek, Apache Kafka, Odradek. Idle cores {cores}. Before each produce run a file as large was"
        " written and deleted, so that its page cache was memory the host had already given. Numbers are"
        " medians of the quieter half of the runs: those in which the host took the least time away"
        " (smallest-largest of them, how many of how many). The ratio is Odradek's median over Apache's; the"
        " drift is the second Odradek half over the first; stolen is the largest share of time lost in a run"
        " that counts, Odradek's and Apache's. A budget is met by the number or by the ratio it was set at"
        " (budget.py).",
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
