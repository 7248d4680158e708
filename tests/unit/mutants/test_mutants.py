"""`make mutants`: which lines it breaks, and that what no test notices is told."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants import run
from tests.mutants.forking import Harness
from tests.mutants.mutations import Mutant, mutants_of

ROOT = Path(__file__).parents[3]
MODULE = """\
from threading import Event


def biggest(values):
    best = values[0]
    for value in values:
        if value > best:
            best = value
    return best


def clamp(value, low, high):
    if value < low:
        return low
    return min(value, high)


def never_called(value):
    return value + 1


def endless(count):
    while count:
        count -= 1
    return count


class Base:
    def start(self):
        self.ready.set()


class Waited(Base):
    def __init__(self):
        self.ready = Event()

    def start(self):
        super().start()
"""
TESTS = """\
from pathlib import Path

from measured import Waited, biggest, clamp, endless

before = []


def test_it_passes_only_before_the_quicker_ones():
    assert sum(range(1_000_000)) and clamp(3, 2, 4) == 3
    assert not before


def test_it_never_passes():
    assert clamp(3, 2, 4) == 4


def test_it_passes_only_once():
    assert clamp(3, 2, 4) == 3
    Path(__file__).with_name("seen").open("x").close()


def test_the_biggest_is_found():
    assert biggest([1, 3, 2]) == 3
    assert biggest([-1]) == -1


def test_values_are_kept_between():
    before.append("this test")
    assert [clamp(value, 2, 4) for value in (1, 3, 5)] == [2, 3, 4]


def test_it_ends():
    assert endless(3) == 0


def test_what_it_waits_for_comes():
    waited = Waited()
    waited.start()
    assert waited.ready.wait()
"""
RUN = """\
import sys
from pathlib import Path
import pytest
sys.path[:0] = [{root!r}, {scratch!r}]
from tests.mutants import forking
forking.LEAST_CLOCK_S = 5.0
harness = forking.Harness([Path({scratch!r}, "measured.py")], 1, 2)
without = [part for name in ("terminal", "cacheprovider", "timeout") for part in ("-p", "no:" + name)]
pytest.main(["-s", *without, {scratch!r}], plugins=[harness])
print()
print(harness.failure)
print(*harness.unreliable)
print(harness.caught)
for _, mutant in harness.survivors:
    print(mutant)
"""


def changes(source: str) -> list[str]:
    return [mutant.after for mutant in mutants_of(f"def f(a, b):\n    {source}\n")]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("return a < b", "return a <= b"),
        ("return (a) is not (b)", "return (a) is (b)"),
        ("return a and b < 1", "return a and b <= 1"),
        ("return a and b", "return a or b"),
        ("return not a", "return a"),
        ("return not (yield a)", "return (yield a)"),
        ("return a - b", "return a + b"),
        ("return min(a, b)", "return max(a, b)"),
        ("return True", "return False"),
        ("a.b = 5", "a.b = (5 + 1)"),
        ("a.b = b", "pass"),
        ("a.clear()", "pass"),
        ("super().clear()", "super()"),
        ("raise ValueError(a)", "pass"),
        ("return a", "return None"),
        ("x = 'ä' if a == b else b", "x = 'ä' if a != b else b"),
    ],
)
def test_a_line_is_broken_once(before: str, after: str) -> None:
    assert changes(before) == [after]


@pytest.mark.parametrize(
    "line",
    [
        "assert a < 1",
        "log.info('%d', a + 1)",
        "yield 2 * b",
        "calls += 2 * b",
        "if calls > STEP_CALLS: a",
        "'text'",
        "x: int | None",
        "zip(a, strict=True)",
    ],
)
def test_what_cannot_be_noticed_is_left_alone(line: str) -> None:
    assert [change for change in changes(line) if change != "pass"] == []


def test_every_mutant_has_the_lines_of_its_source() -> None:
    for mutant in mutants_of(MODULE):
        before, after = MODULE.splitlines(), mutant.source.splitlines()
        assert [i for i, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]] == [
            mutant.line - 1
        ]


def test_what_no_test_notices_survives(tmp_path: Path) -> None:
    """Planted: an idle boundary, a function that nobody calls; and three tests that prove nothing."""
    (tmp_path / "measured.py").write_text(MODULE)
    (tmp_path / "test_measured.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    script = RUN.format(root=str(ROOT), scratch=str(tmp_path))
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=100, cwd=tmp_path, check=False
    )
    failure, unreliable, caught, *survivors = found.stdout.split("\n\n")[-1].splitlines()
    assert failure == "None", found
    assert [test.partition("::")[2] for test in unreliable.split()] == [
        "test_it_never_passes",
        "test_it_passes_only_before_the_quicker_ones",
        "test_it_passes_only_once",
    ]
    assert sorted(survivors) == [
        "biggest: if value > best:  ->  if value >= best:",
        "clamp: if value < low:  ->  if value <= low:",
        "never_called: return value + 1  ->  return value - 1",
    ]
    assert int(caught) == len(list(mutants_of(MODULE))) - 3


def test_a_run_of_a_part_changes_that_part_of_its_folders_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "src"
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setattr(run, "SOURCE", source)
    monkeypatch.setattr(run, "SURVIVORS", tmp_path)
    known = tmp_path / "log.txt"
    known.write_text("log/a.py f: x  ->  y\nlog/b.py f: x  ->  y\nlog/b/c.py f: x  ->  y\n")
    harness = Harness([], 1, 1)
    harness.survivors.append((source / "log/b/c.py", Mutant("g", 1, 2, "v", "w", "")))
    target = source / "log/b"

    assert run.listed(target) == source / "log"
    assert run.listed(source / "raft/node.py") == source / "raft/node.py"
    assert run.judge(target, harness, is_sample=False, write=True) == 0

    assert known.read_text().splitlines() == [
        "log/a.py f: x  ->  y",
        "log/b.py f: x  ->  y",
        "log/b/c.py g: v  ->  w",
    ]
    assert run.judge(target, harness, is_sample=False, write=False) == 0


def test_tests_that_name_a_module_of_the_tests_name_what_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = tmp_path / "tests/unit"
    unit.mkdir(parents=True)
    (tmp_path / "tests/property").mkdir()
    (tmp_path / "tests/golden").mkdir()
    package = tmp_path / "src/odradek/log"
    package.mkdir(parents=True)
    (unit / "support.py").write_text("from odradek.log.log import Log\n")
    (unit / "test_direct.py").write_text("import odradek.log\n")
    (tmp_path / "tests/golden/test_raft.py").write_text("import odradek.log\n")
    (unit / "test_supported.py").write_text("from tests.unit.support import Log\n")
    (unit / "test_other.py").write_text("from odradek.logs import Log\nimport tests.unit.supports\n")
    monkeypatch.setattr(run, "ROOT", tmp_path)

    assert [path.name for path in run.tests_naming(package)] == [
        "test_raft.py",
        "test_direct.py",
        "test_supported.py",
    ]
