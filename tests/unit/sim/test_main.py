"""How seeds are run."""

import os
import signal
from typing import Any

import pytest

from odradek.sim import main
from odradek.sim.stories.outcome import Outcome


def test_an_interrupt_that_the_story_takes_for_a_failure_is_no_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def play(seed: int, **_: Any) -> Outcome:
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt as e:
            return Outcome(seed, [f"the node failed: {e!r}"])
        return Outcome(seed)

    monkeypatch.setenv("PYTHONHASHSEED", "0")
    monkeypatch.setattr(main, "play", play)
    said: list[str] = []
    before = signal.getsignal(signal.SIGINT)  # PySpark puts its own in place for good
    assert main.run(5, echo=said.append) == main.EXIT_INTERRUPTED
    assert said[0].startswith("interrupted after 0 seeds without a finding")
    assert signal.getsignal(signal.SIGINT) is before
