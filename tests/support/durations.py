"""What the tests cost: the slowest twenty, and the time of each folder, at the end of a long run.

CPU time is that of the test's process and of the processes that ended with the test (orphans.py). A process
that several tests share (a broker, Spark) counts for the test with which it ends. Folders have budgets
(budgets.py).
"""

import resource
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pytest

from tests.support import budgets
from tests.support.orphans import Orphans

_SLOWEST: Final = 20
_WORTH_TELLING_S: Final = 60.0


class Cost(NamedTuple):
    """Of one test: seconds on the clock, seconds of CPU."""

    wall_s: float
    cpu_s: float


class Durations:
    """Measures in every worker; the process that started the workers prints."""

    def __init__(self) -> None:
        self._costs: dict[str, Cost] = {}
        self._orphans = Orphans()
        self._verdicts: list[budgets.Verdict] = []

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workerinput"):
            self._orphans.adopt()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        wall_s, cpu_s = time.monotonic(), _cpu_s()
        yield
        self._costs[item.nodeid] = Cost(time.monotonic() - wall_s, _cpu_s() - cpu_s)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["costs"] = {name: tuple(cost) for name, cost in self._costs.items()}
        elif self._is_long():
            self._verdicts = budgets.compare({name: cost.cpu_s for name, cost in self._costs.items()})
            if any(verdict.fails for verdict in self._verdicts) and session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        costs = getattr(node, "workeroutput", {}).get("costs", {})
        self._costs.update({name: Cost(*cost) for name, cost in costs.items()})

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._is_long():
            return
        terminalreporter.section("what the tests cost")
        for line in summary(self._costs):
            terminalreporter.write_line(line)
        for verdict in self._verdicts:
            terminalreporter.write_line(verdict.line, red=verdict.fails, yellow=verdict.exceeds)

    def _is_long(self) -> bool:
        return sum(cost.wall_s for cost in self._costs.values()) >= _WORTH_TELLING_S


def summary(costs: dict[str, Cost]) -> Iterator[str]:
    """The lines that are printed."""
    folders: defaultdict[str, list[Cost]] = defaultdict(list)
    for name, cost in costs.items():
        folders["/".join(name.split("::")[0].split("/")[:-1])].append(cost)
    for folder, found in sorted(folders.items(), key=lambda item: -sum(cost.cpu_s for cost in item[1])):
        wall_s, cpu_s = (sum(column) for column in zip(*found, strict=True))
        yield f"{wall_s:7.1f} s {cpu_s:7.1f} CPU s  {len(found):5} tests  {folder}"
    yield f"the slowest {_SLOWEST}:"
    for name, cost in sorted(costs.items(), key=lambda item: -item[1].wall_s)[:_SLOWEST]:
        yield f"{cost.wall_s:7.1f} s {cost.cpu_s:7.1f} CPU s  {name}"


def _cpu_s() -> float:
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
