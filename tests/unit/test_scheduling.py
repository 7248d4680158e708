"""xdist's workers get the long chains first, slow tests one at a time, and all others file by file."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.scheduling import CHAINS, SLOW

ROOT = Path(__file__).parents[2]
CONFTEST = """
import os, pytest
from tests.support.scheduling import Scheduling

def pytest_configure(config):
    config.pluginmanager.register(Scheduling())

@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if "chained" in item.name:
            item.add_marker(pytest.mark.xdist_group(item.path.parent.name))

@pytest.hookimpl
def pytest_runtest_logreport(report):
    if report.when == "call" and "PYTEST_XDIST_WORKER" in os.environ:
        with open("ran", "a") as file:
            file.write(f"{os.environ['PYTEST_XDIST_WORKER']} {report.nodeid}\\n")
"""
FILES = {
    "tests/apache/test_a.py": "def test_chained(): pass\ndef test_chained_too(): pass",
    "tests/sim/test_b.py": "def test_one(): pass\ndef test_two(): pass",
    "tests/spark/test_c.py": "def test_chained(): pass",
    "tests/unit/test_d.py": "\n".join(f"def test_{i}(): pass" for i in range(40)),
    "tests/unit/test_e.py": "\n".join(f"def test_{i}(): pass" for i in range(40)),
}


def run(folder: Path, *options: str) -> list[tuple[str, str]]:
    """Which worker ran what, in which order."""
    for name, text in {"conftest.py": CONFTEST, "pytest.ini": "[pytest]", **FILES}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "--import-mode=importlib",
            "-p",
            "no:cacheprovider",
            *options,
            "tests",
        ],
        cwd=folder,
        env={**{k: v for k, v in os.environ.items() if "XDIST" not in k}, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert ran.returncode == 0, ran.stdout
    return [(line.split()[0], line.split()[1]) for line in (folder / "ran").read_text().splitlines()]


def test_one_worker_gets_the_chains_then_slow_tests_then_the_rest(tmp_path: Path) -> None:
    ran = [name.partition("::")[0] for _, name in run(tmp_path, "-n", "1", "--dist", "loadgroup")]
    assert list(dict.fromkeys(ran)) == [
        "tests/spark/test_c.py",
        "tests/apache/test_a.py",
        "tests/sim/test_b.py",
        "tests/unit/test_d.py",
        "tests/unit/test_e.py",
    ]
    assert len(ran) == 85


def test_a_file_and_a_chain_stay_in_one_worker(tmp_path: Path) -> None:
    ran = run(tmp_path, "-n", "3", "--dist", "loadgroup")
    for file in ("tests/apache/test_a.py", "tests/unit/test_d.py", "tests/unit/test_e.py"):
        assert len({worker for worker, name in ran if name.startswith(file)}) == 1, file
    assert len({worker for worker, name in ran if name.startswith("tests/sim/")}) == 2
    assert len(ran) == 85


def test_what_is_named_exists() -> None:
    for folder in SLOW:
        assert list((ROOT / folder).glob("test_*.py")), folder
    assert len(set(CHAINS)) == len(CHAINS)
