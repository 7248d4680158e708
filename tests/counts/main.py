"""`make counts`: count what six small loads cost and write benchmarks/counts.json.

`tests/unit/broker/test_calls.py` holds the figures. Instructions are counted where valgrind is installed, and
depend on the build of Python: compare them on one machine only.
"""

import asyncio
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.counts.loads import count
from tests.counts.probe import Allocations, Calls, SystemCalls, Toggle, load_library

COUNTS: Final = Path(__file__).parents[2] / "benchmarks/counts.json"
_ROUNDS: Final = 20


def measured() -> dict[str, dict[str, int]]:
    """By load: Python calls, system calls, and allocations where there is a compiler."""
    found: dict[str, dict[str, int]] = {}
    library = load_library()
    meters: dict[str, Any] = {"calls": Calls(), "system_calls": SystemCalls()}
    if library is not None:
        meters["allocations"] = Allocations(library)
    for kind, meter in meters.items():
        for load, cost in asyncio.run(count(meter)).items():
            found.setdefault(load, {})[kind] = cost
    return found


def instructions(load: str) -> int | None:
    """Of one round of a load: those of 40 rounds less those of 20, so that first rounds do not count."""
    if shutil.which("valgrind") is None:
        return None
    few, many = (_collected(load, rounds) for rounds in (_ROUNDS, 2 * _ROUNDS))
    return round((many - few) / _ROUNDS)


def _collected(load: str, rounds: int) -> int:
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(
            [
                *("valgrind", "--tool=callgrind", "--collect-atstart=no"),
                *(f"--callgrind-out-file={directory}/out", sys.executable, "-m", "tests.counts.main"),
                *("--rounds", str(rounds), load),
            ],
            env={**os.environ, "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            check=True,
        )
    found = re.search(r"Collected : (\d+)", done.stderr)
    assert found, done.stderr
    return int(found[1])


def main() -> None:
    if sys.argv[1:2] == ["--rounds"]:
        library = load_library()
        assert library is not None
        asyncio.run(count(Toggle(library), only=sys.argv[3], rounds=int(sys.argv[2])))
        return
    figures = measured()
    for load, costs in figures.items():
        counted = instructions(load)
        if counted is not None:
            costs["instructions"] = counted
        print(load, costs, flush=True)
    COUNTS.write_text(json.dumps({"python": platform.python_version(), "loads": figures}, indent=2) + "\n")


if __name__ == "__main__":
    main()
