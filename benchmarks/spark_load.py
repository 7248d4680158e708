"""The Spark section: both connectors in one session, on one broker and the same data, turn by turn."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

from cluster import HERE, Cluster, run

FETCH = HERE.parent / "tools" / "connector" / "fetch"


class SidedSample(NamedTuple):
    """A number of ours, of the official connector, or of ours after it."""

    side: str
    key: str
    value: float


def spark(cluster: Cluster, *, rows: int, seconds: float, rounds: int, alone: bool) -> Iterator[SidedSample]:
    """What the driver says while it measures."""
    with tempfile.TemporaryDirectory(dir=cluster.directory.parent) as folder:
        command = [
            *(sys.executable, HERE / "spark_driver.py", "--bootstrap", cluster.bootstrap),
            *("--broker-pid", cluster.pid, "--log-dir", cluster.directory / "data"),
            *("--jars", run(FETCH), "--folder", folder, "--rows", rows),
            *("--seconds", seconds, "--rounds", rounds),
            *(["--alone"] if alone else []),
        ]
        with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True) as driver:
            assert driver.stdout is not None
            for line in driver.stdout:
                yield SidedSample(**json.loads(line))
    if driver.returncode:
        raise RuntimeError(f"the Spark driver ended with {driver.returncode}")
