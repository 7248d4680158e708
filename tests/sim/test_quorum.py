"""The machine of the quorum against itself: no rule is broken, and planted faults are found."""

import pytest

from odradek.sim.main import StoryKind, replay, run
from odradek.sim.quorum.checks import Counters
from odradek.sim.quorum.running import missing
from odradek.sim.quorum.story import STEPS, play
from tests.sim.planted import CAUGHT, PLANTED, planted

SEEDS, CHUNK = 2000, 200


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_rule_of_the_quorum_is_broken(first: int) -> None:
    total = Counters()
    for seed in range(first, first + CHUNK):
        outcome = play(seed)
        assert outcome.violation is None, f"odradek sim replay {seed} --quorum: {outcome.violation}"
        assert outcome.steps >= STEPS
        total.add(outcome.counters)
    assert missing(total) == []


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_caught_by_a_named_rule(fault: str) -> None:
    seed, rule = CAUGHT[fault]
    with planted(fault):
        violation = play(seed).violation
    assert violation is not None
    assert violation.startswith(rule)


def test_a_seed_tells_the_same_story_again() -> None:
    first, again = play(5), play(5)
    assert (first.steps, first.virtual_ms) == (again.steps, again.virtual_ms)


def test_a_run_in_which_nothing_happened_proves_nothing() -> None:
    assert len(missing(Counters())) == 4


def test_a_run_tells_how_much_happened(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(3, story=StoryKind.QUORUM) == 0
    assert "3 seeds without a finding" in capsys.readouterr().out


def test_a_finding_ends_a_run_and_names_its_seed(capsys: pytest.CaptureFixture[str]) -> None:
    seed, rule = CAUGHT["two votes in an epoch"]
    with planted("two votes in an epoch"):
        assert run(1, seed, story=StoryKind.QUORUM) == 3
        assert replay(seed, trace=True, story=StoryKind.QUORUM) == 3
    out = capsys.readouterr().out
    assert f"odradek sim replay {seed} --quorum" in out
    assert rule in out
    assert "becomes Leader" in out
