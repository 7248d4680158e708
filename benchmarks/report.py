"""Samples into words: the table on the terminal and benchmarks/RESULTS.md. No measuring here."""

import json
import os
import pathlib
import platform
from dataclasses import dataclass, field, replace

from budget import ROWS, SPARK, Row
from steal import Sample, Samples, median, quieter

_SPARK_TEXT = (
    "Spark: Odradek's connector with its defaults (read_committed, exactly once), compared with the official"
    " connector, tuned (spark_sides.py), which writes at least once. One session on two cores, one broker"
    " (Odradek), the same topics, in alternating rounds. The ratio is the median of the ratios of the quieter"
    " rounds. CPU is that of Spark, its Python workers and the broker together. The official connector cannot"
    " read log directories: its batch read is shown in that row."
)


@dataclass
class Invocation:
    """When and how sections were measured, and what."""

    command: str
    when: str
    machine: str
    versions: dict[str, str]
    awake: bool
    sections: list[str]


@dataclass
class Results:
    """What was measured. Odradek ran before and after Apache, which shows the machine's drift."""

    first: Samples = field(default_factory=dict)
    apache: Samples = field(default_factory=dict)
    second: Samples = field(default_factory=dict)
    profiles: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    invocations: list[Invocation] = field(default_factory=list)

    @classmethod
    def load(cls, text: str) -> "Results":
        """Results as `dump` wrote them."""
        known = json.loads(text)
        samples = {
            broker: {key: [Sample(*sample) for sample in found] for key, found in by_key.items()}
            for broker, by_key in known["samples"].items()
        }
        invocations = [Invocation(**fields) for fields in known["invocations"]]
        return cls(*samples.values(), known["profiles"], known["failures"], invocations)

    def dump(self) -> str:
        samples = {"odradek": self.first, "apache": self.apache, "odradek again": self.second}
        invocations = [vars(invocation) for invocation in self.invocations]
        fields = {
            "invocations": invocations,
            "profiles": self.profiles,
            "failures": self.failures,
            "samples": samples,
        }
        return json.dumps(fields, indent=1) + "\n"

    def without(self, sections: list[str]) -> "Results":
        """What remains when these sections have been measured anew."""

        def rest(samples: Samples) -> Samples:
            return {key: found for key, found in samples.items() if key.split(".")[0] not in sections}

        invocations = [
            replace(known, sections=[section for section in known.sections if section not in sections])
            for known in self.invocations
        ]
        return Results(
            rest(self.first),
            rest(self.apache),
            rest(self.second),
            {section: text for section, text in self.profiles.items() if section not in sections},
            [failure for failure in self.failures if failure.split(":")[0] not in sections],
            [known for known in invocations if known.sections],
        )

    def add(self, other: "Results") -> None:
        for mine, theirs in (
            (self.first, other.first),
            (self.apache, other.apache),
            (self.second, other.second),
        ):
            mine.update(theirs)
        self.profiles.update(other.profiles)
        self.failures += other.failures
        self.invocations += other.invocations

    def odradek(self, key: str) -> list[Sample]:
        return self.first.get(key, []) + self.second.get(key, [])

    def rows(self) -> list[Row]:
        return [row for row in ROWS if self.odradek(row.key)]

    def ratio(self, row: Row) -> float | None:
        """Of the medians; where Odradek ran before and after the other in every round, the median of the
        rounds' ratios: a round takes a minute, in which a machine changes less than in all of them."""
        theirs = self.apache.get(row.key)
        if not theirs:
            return None
        if row.section != SPARK:
            return median(self.odradek(row.key)) / median(theirs)
        rounds = zip(self.first[row.key], theirs, self.second[row.key], strict=True)
        return median(
            [
                Sample((a.value + b.value) / 2 / other.value, a.stolen + b.stolen + other.stolen)
                for a, other, b in rounds
            ]
        )

    def verdict(self, row: Row) -> str:
        return row.verdict(median(self.odradek(row.key)), self.ratio(row))

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
    """Brokers beside each other, and connectors beside each other."""
    brokers = [row for row in results.rows() if row.section != SPARK]
    connectors = [row for row in results.rows() if row.section == SPARK]
    parts = [_table(results, brokers, "Apache Kafka")] if brokers else []
    if connectors:
        parts += [_SPARK_TEXT, _table(results, connectors, "official connector")]
    return "\n\n".join(parts)


def _table(results: Results, rows: list[Row], other: str) -> str:
    lines = [
        f"| load | unit | Odradek | {other} | ratio | budget | budget ratio | drift | stolen | verdict |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for row in rows:
        ours, theirs = results.odradek(row.key), results.apache.get(row.key, [])
        first, second = results.first.get(row.key), results.second.get(row.key)
        drift = median(second) / median(first) if first and second else None
        cells = [
            row.label,
            row.unit,
            _spread(ours),
            _spread(theirs),
            _optional(results.ratio(row), ".3g"),
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


def _origin(invocation: Invocation) -> str:
    cores = "kept awake (awake.py)" if invocation.awake else "allowed to sleep"
    versions = ", ".join(f"{name} {version}" for name, version in invocation.versions.items())
    return (
        f"- {', '.join(invocation.sections)}: `{invocation.command}`, {invocation.when}, {versions}, on"
        f" {invocation.machine}, idle cores {cores}"
    )


def _cpu_profile(results: Results) -> str:
    """Whose CPU a record of each Spark load takes: Odradek's connector, then the official one."""
    lines = [f"{'CPU us/record':34} {'Spark (JVM)':>14} {'Python workers':>15} {'broker':>14}"]
    for row in results.rows():
        if f"{row.key}.jvm" not in results.first:
            continue
        cells = []
        for part in ("jvm", "python", "broker"):
            ours, theirs = results.odradek(f"{row.key}.{part}"), results.apache.get(f"{row.key}.{part}")
            cells.append(f"{median(ours):.2f}, {median(theirs):.2f}" if theirs else f"{median(ours):.2f}")
        lines.append(f"{row.label.removesuffix(', CPU'):34} {cells[0]:>14} {cells[1]:>15} {cells[2]:>14}")
    return "\n".join(lines)


def markdown(results: Results) -> str:
    """The whole of RESULTS.md."""
    parts = [
        "# Benchmark results",
        "",
        *map(_origin, results.invocations),
        "",
        "Both brokers ran with shipped defaults, all checks on, one after the other on the same machine:"
        " Odradek, Apache Kafka, Odradek. Before each produce run a file of the same size was written and"
        " deleted, so that the host had already allocated the memory of the page cache. Numbers are medians"
        " of the quieter half of the runs: those in which the host took the least CPU time from the virtual"
        " machine (in parentheses: smallest-largest, runs counted of all runs). The ratio is Odradek's median"
        " divided by Apache's. The drift is the second Odradek half divided by the first. Stolen is the"
        " largest share of time lost in a counted run, Odradek's and Apache's. A budget is met by the number"
        " or by the ratio (budget.py).",
        "",
        table(results),
        "",
        "![times better than Apache Kafka](results.svg)",
    ]
    if any(row.section == SPARK for row in results.rows()):
        parts += ["", "![times better than Spark's official Kafka connector](spark.svg)"]
    missed = results.missed()
    if missed:
        parts += ["", "## Missed, and where the time goes"]
        for section in dict.fromkeys(row.section for row in missed):
            labels = "; ".join(row.label for row in missed if row.section == section)
            parts += ["", f"### {labels}", ""]
            profile = _cpu_profile(results) if section == SPARK else results.profiles.get(section)
            parts += ["```", profile.rstrip(), "```"] if profile else ["No profile applies to this number."]
    if results.failures:
        parts += ["", "## Failed", "", *(f"- {failure}" for failure in results.failures)]
    return "\n".join(parts) + "\n"
