"""Folders of tests keep to their budgets of CPU time, and a run says so when they do not."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.budgets import BUDGETS, judge
from tests.support.durations import Durations

ROOT = Path(__file__).parents[2]


def test_every_budget_is_that_of_a_folder_with_tests() -> None:
    folders = {f"tests/{path.parts[len(ROOT.parts) + 1]}" for path in (ROOT / "tests").rglob("test_*.py")}
    assert set(json.loads(BUDGETS.read_text())["cpu_s"]) <= folders


def test_a_folder_above_its_budget_is_told_and_one_above_twice_fails() -> None:
    cpu_s = {
        "tests/unit/log/test_a.py::test_one": 8.0,
        "tests/unit/test_b.py::test_two[x/y]": 4.0,
        "tests/sim/test_c.py::test_three": 21.0,
        "tests/peer/test_d.py::test_four": 10.0,
        "tests/new/test_e.py::test_five": 1.0,
    }
    budgets_s = {"tests/unit": 10.0, "tests/sim": 10.0, "tests/peer": 10.0}
    sim, unit, peer, new = judge(cpu_s, budgets_s, slower=1.0)
    assert (sim.exceeds, sim.fails, sim.line) == (
        True,
        True,
        "tests/sim: 21 of 10 CPU s: FAILED, more than twice its budget",
    )
    assert (unit.exceeds, unit.fails, unit.line) == (
        True,
        False,
        "tests/unit: 12 of 10 CPU s: more than its budget",
    )
    assert (peer.exceeds, peer.fails, peer.line) == (False, False, "tests/peer: 10 of 10 CPU s")
    assert (new.exceeds, new.fails) == (False, False)
    assert "no budget: add one" in new.line


def test_a_slower_machine_has_larger_budgets() -> None:
    (verdict,) = judge({"tests/sim/test_c.py::test_three": 29.0}, {"tests/sim": 10.0}, slower=1.5)
    assert (verdict.budget_s, verdict.exceeds, verdict.fails) == (15.0, True, False)


@pytest.mark.parametrize(
    ("cpu_s", "status"), [(10.0, pytest.ExitCode.OK), (10_000.0, pytest.ExitCode.TESTS_FAILED)]
)
def test_a_run_fails_above_twice_a_budget(cpu_s: float, status: pytest.ExitCode) -> None:
    durations = Durations()
    costs = {"tests/golden/test_log.py::test_one": (61.0, cpu_s)}
    durations.pytest_testnodedown(SimpleNamespace(workeroutput={"costs": costs}))
    session = SimpleNamespace(config=SimpleNamespace(), exitstatus=pytest.ExitCode.OK)
    durations.pytest_sessionfinish(session)  # type: ignore[arg-type]
    assert session.exitstatus == status
