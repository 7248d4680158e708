"""The CPU time that each folder of tests may take (budgets.json), and whether it does.

A run says which folder takes more than its budget, and fails if one takes more than twice as much. Budgets
grow on a slower machine: a fixed piece of work shows how much slower it is. Time on the clock has no budget.
"""

import json
import os
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

BUDGETS: Final = Path(__file__).with_name("budgets.json")
_FAILS: Final = 2.0
_SOAKS: Final = "ODRADEK_SOAK_"


class Verdict(NamedTuple):
    """Of one folder."""

    folder: str
    cpu_s: float
    budget_s: float | None

    @property
    def exceeds(self) -> bool:
        return self.budget_s is not None and self.cpu_s > self.budget_s

    @property
    def fails(self) -> bool:
        return self.budget_s is not None and self.cpu_s > _FAILS * self.budget_s

    @property
    def line(self) -> str:
        if self.budget_s is None:
            return f"{self.folder}: {self.cpu_s:.0f} CPU s, no budget: add one to tests/support/budgets.json"
        told = f"{self.folder}: {self.cpu_s:.0f} of {self.budget_s:.0f} CPU s"
        if self.fails:
            return f"{told}: FAILED, more than twice its budget"
        return f"{told}: more than its budget" if self.exceeds else told


def compare(cpu_s: Mapping[str, float]) -> list[Verdict]:
    """Of what each test took. Longer runs than those of CI have no budget."""
    if any(name.startswith(_SOAKS) for name in os.environ):
        return []
    return judge(cpu_s, json.loads(BUDGETS.read_text())["cpu_s"], slower())


def slower() -> float:
    """How many times slower this machine is now than the one of the budgets; 1 if it is faster."""
    known_s: float = json.loads(BUDGETS.read_text())["speed_s"]
    return max(1.0, speed_s() / known_s)


def judge(cpu_s: Mapping[str, float], budgets_s: Mapping[str, float], slower: float) -> list[Verdict]:
    folders: defaultdict[str, float] = defaultdict(float)
    for name, cost_s in cpu_s.items():
        folders["/".join(name.split("::")[0].split("/")[:2])] += cost_s
    verdicts = []
    for folder, found_s in folders.items():
        budget_s = budgets_s.get(folder)
        verdicts.append(Verdict(folder, found_s, None if budget_s is None else budget_s * slower))
    return sorted(verdicts, key=lambda verdict: -verdict.cpu_s)


def speed_s() -> float:
    """The CPU time of a fixed piece of work, the best of a few."""
    return min(_work_s() for _ in range(5))


def _work_s() -> float:
    began_s = time.process_time()
    total: dict[int, int] = {}
    for i in range(300_000):
        total[i & 1023] = total.get(i & 1023, 0) + i
    return time.process_time() - began_s
