"""`odradek sim run`: what it prints, where, and how it is interrupted."""

import contextlib
import os
import re
import signal
import subprocess

import pytest

from tests.support.node import ODRADEK
from tests.support.readable import is_readable

TOTAL = re.compile(
    r"interrupted after \d+ seeds? without a finding: \d+ records acknowledged, \d+ lives, \d+ events, .* s\n"
)


@pytest.mark.parametrize("whole_group", [True, False], ids=["terminal", "kill"])
def test_an_interrupt_tells_how_many_seeds_passed(whole_group: bool) -> None:
    simulation = subprocess.Popen(
        [ODRADEK, "sim", "run", "--seeds", "100000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert simulation.stderr is not None
        assert is_readable(simulation.stderr, 120)
        assert re.fullmatch(r"\d+/100000 seeds, .* s\n", simulation.stderr.readline())
        if whole_group:
            os.killpg(simulation.pid, signal.SIGINT)
        else:
            simulation.send_signal(signal.SIGINT)
        out, err = simulation.communicate(timeout=60)
        assert simulation.returncode == 130
        assert TOTAL.fullmatch(out), out
        assert "Traceback" not in err
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(simulation.pid, signal.SIGKILL)  # what it has started, too
        simulation.wait()


def test_one_seed_is_counted_as_one() -> None:
    done = subprocess.run(
        [ODRADEK, "sim", "run", "--seeds", "1"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0
    assert done.stdout.startswith("1 seed without a finding: ")


def test_the_quorum_has_a_story_of_its_own() -> None:
    command = [ODRADEK, "sim", "run", "--quorum", "--seeds", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith("2 seeds without a finding: ")


def test_one_story_is_played_at_a_time() -> None:
    command = [ODRADEK, "sim", "run", "--quorum", "--pipelines"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert "--pipelines and --quorum cannot be combined" in done.stderr
