"""The demo as a whole, small: one kill of each kind, the proof, the picture, and nothing left behind."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from odradek.spark.demo.processes import descendants
from tests.support.lite import needs_spark
from tests.support.node import ODRADEK
from tests.support.processes import wait_until_gone

pytestmark = [pytest.mark.timeout(240), needs_spark]


def start(folder: Path, *options: str) -> "subprocess.Popen[str]":
    """Temporary folders are made where they can be seen."""
    (folder / "temporary").mkdir()
    return subprocess.Popen(
        [str(ODRADEK), "demo", "--picture", str(folder / "demo.svg"), "-f", "json", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder / "temporary")},
    )


def test_one_kill_of_each_kind(tmp_path: Path) -> None:
    process = start(
        tmp_path, *("--orders", "4000", "--rate", "400"), *("--driver-kills", "1", "--broker-kills", "1")
    )
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    told = json.loads(out)
    assert told["proven"] is True
    assert (told["inputs"], told["outputs"], told["duplicates"], told["lost"]) == (4_000, 4_000, 0, 0)
    assert (told["wrong"], told["open_transactions"], told["prove_eos"]) == (0, 0, True)
    assert told["windows"] > 30
    assert told["batches"] > 4
    assert [kill["killed"] for kill in told["kills"]] == ["driver", "broker"]
    for kill in told["kills"]:
        assert f"killed the {kill['killed']} (pid {kill['pid']}) {kill['when']}" in err
    assert "duplicates: 0, lost: 0" in err
    assert "duplicates: 0" in (tmp_path / "demo.svg").read_text()
    assert list((tmp_path / "temporary").iterdir()) == []


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    process = start(tmp_path)
    assert process.stderr is not None
    while "the driver starts" not in process.stderr.readline():
        assert process.poll() is None
    deadline = time.monotonic() + 30
    while len(started := descendants(process.pid)) < 4:  # the broker, the driver, and what that has begun
        assert time.monotonic() < deadline, started
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    wait_until_gone(started)
    assert list((tmp_path / "temporary").iterdir()) == []
