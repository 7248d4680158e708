"""`make mutants FOLDER=src/odradek/log`: break one line at a time, and list the breaks that no test notices.

Each mutant lives in a fork of this process, which has all the tests loaded: the code of one function is
exchanged there, and the tests that call it are run, the quickest first, until one fails. What no test
notices is a survivor. `survivors/` has those that are known, in a list for each folder; one that is not there
is an error, one that is caught by now should be taken out (`--write` does both). A run of a part of such a
folder, with the same tests, concerns that part of the list only.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

from tests.mutants.forking import Harness, bound_properties
from tests.mutants.mutations import Mutant
from tests.support import peer

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/odradek"
SURVIVORS = Path(__file__).parent / "survivors"
SEARCHED = ("tests/unit", "tests/property", "tests/golden/test_raft.py")


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("folder", type=Path, help="a folder or a file below src/odradek")
    parser.add_argument("--write", action="store_true", help="write the survivors found into the list")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each Nth mutant of a file")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="at a time")
    options = parser.parse_args()
    target = (ROOT / options.folder).resolve()
    files = sorted(target.rglob("*.py")) if target.is_dir() else [target]
    if not files or not target.exists():
        parser.error(f"{options.folder}: no Python file there")
    if options.write and options.every > 1:
        parser.error("--write needs all mutants: not with --every")
    tests = [str(path) for path in tests_naming(listed(target))]
    print(f"{len(files)} files, {len(tests)} files of tests name them", flush=True)
    for file in files:  # a module that only a running test would import could not be broken
        import_module(_module(file, ROOT / "src"))
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        harness = Harness(files, options.every, options.jobs)
        bound_properties()
        peer.missing = lambda: "it takes too long to start for each mutant"
        arguments = ["-o", "addopts=--import-mode=importlib", "-s", "-p", "no:terminal", "-p", "no:timeout"]
        arguments += ["-p", "no:cacheprovider"]
        pytest.main([*arguments, f"--basetemp={scratch}/tests", *tests], plugins=[harness])
    if harness.failure is not None:
        print(harness.failure)
        return 1
    for test in harness.unreliable:
        print(f"left out, it failed without a mutant: {test}")
    return judge(target, harness, options.every > 1, options.write)


def listed(target: Path) -> Path:
    """The folder or file whose list has the target's survivors. Without such a list: the target itself."""
    above = (path for path in [target, *target.parents] if SOURCE in path.parents)
    return next((path for path in above if _list_of(path).exists()), target)


def _list_of(path: Path) -> Path:
    return SURVIVORS / (".".join(path.relative_to(SOURCE).with_suffix("").parts) + ".txt")


def tests_naming(target: Path) -> list[Path]:
    """The files of tests that name the package, or a module of the tests that names it."""
    package = target if target.is_dir() else target.parent
    naming = _naming([_module(package, ROOT / "src")])
    supporting = [path for path in naming if not path.name.startswith("test_")]
    if supporting:
        naming |= _naming([_module(path, ROOT) for path in supporting])
    return sorted(path for path in naming if path.name.startswith("test_"))


def _module(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def _naming(modules: list[str]) -> set[Path]:
    pattern = "|".join(name.replace(".", r"\.") for name in modules)
    found = subprocess.run(
        ["grep", "-rlwE", "--include=*.py", pattern, *SEARCHED],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return {ROOT / line for line in found.stdout.splitlines()}


def judge(target: Path, harness: Harness, is_sample: bool, write: bool) -> int:
    path = _list_of(listed(target))
    lines = path.read_text().splitlines() if path.exists() else []
    known = Counter(line for line in lines if (SOURCE / line.split()[0]).is_relative_to(target))
    others = [line for line in lines if line not in known]
    found = Counter(_line(file, mutant) for file, mutant in harness.survivors)
    new, gone = found - known, Counter() if is_sample else known - found
    total = harness.caught + len(harness.survivors)
    print(f"{total} mutants: {harness.caught} caught, {len(harness.survivors)} survived")
    if write:
        SURVIVORS.mkdir(exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in sorted([*others, *found.elements()])))
        print(f"{path.relative_to(ROOT)}: {len(new)} added, {len(gone)} taken out")
        return 0
    for line in sorted(new.elements()):
        print(f"new: {line}")
    for line in sorted(gone.elements()):
        print(f"caught by now, take it out: {line}")
    return 1 if new or gone else 0


def _line(file: Path, mutant: Mutant) -> str:
    return f"{file.relative_to(SOURCE)} {mutant}"


if __name__ == "__main__":
    sys.exit(main())
