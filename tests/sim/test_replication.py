"""Replication under virtual time: its machine alone, then whole nodes. No rule is broken, planted faults are
found."""

import pytest

from odradek.sim import main
from odradek.sim.cluster.deployment import ReplicatedLayout
from odradek.sim.main import EXIT_FINDING, EXIT_OK, StoryKind, run
from odradek.sim.replication.machine.story import play
from odradek.sim.replication.rules import Counters, missing
from odradek.sim.replication.story import ReplicationStory
from tests.sim.planted_replication import CAUGHT, NAMED, NEARBY, PLANTED, search

SEEDS, CHUNK = 2000, 200
WHOLE_SEEDS = 8


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_rule_is_broken_by_the_machine(first: int) -> None:
    total = Counters()
    for seed in range(first, first + CHUNK):
        outcome = play(seed)
        assert outcome.violation is None, f"seed {seed}: {outcome.violation}"
        total.add(outcome.counters)
    assert missing(total.as_dict()) == []


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_caught_by_a_named_rule(fault: str) -> None:
    found = search(fault, CAUGHT[fault], NEARBY)
    assert found is not None
    assert found[1].startswith(NAMED)


def test_a_seed_of_the_machine_tells_the_same_story_again() -> None:
    first, again = play(5), play(5)
    assert (first.events, first.counters) == (again.events, again.counters)


@pytest.mark.parametrize("layout", ReplicatedLayout, ids=lambda layout: layout.name.lower())
def test_without_faults_everything_is_replicated(layout: ReplicatedLayout) -> None:
    outcome = ReplicationStory(3, seconds=6, layout=layout, has_trouble=False).play()
    assert outcome.violations == []
    assert outcome.happened["fixed"] > 50
    assert outcome.happened["elections"] == outcome.happened["losses"] == 0


def test_the_first_seeds_of_whole_nodes_break_no_rule(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(WHOLE_SEEDS, story=StoryKind.REPLICATION) == EXIT_OK, capfd.readouterr().out
    out = capfd.readouterr().out
    assert f"{WHOLE_SEEDS} seeds without a finding" in out
    for never in ("0 elections", "0 elected from elr", "0 truncated", "0 shrunk", "0 leaders killed"):
        assert f", {never}" not in out


def test_a_run_without_elections_proves_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The stories are over before anybody is struck."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    monkeypatch.setattr(main, "ENOUGH_REPLICATIONS", 2)
    assert run(2, story=StoryKind.REPLICATION, seconds=0.2) == EXIT_FINDING
    assert "a leader was elected from the ELR" in capsys.readouterr().out
