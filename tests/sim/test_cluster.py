"""Whole nodes of a cluster under virtual time: no rule is broken, and planted faults are found."""

import os
import subprocess
import sys

import pytest

from odradek.sim.cluster.deployment import Layout
from odradek.sim.cluster.story import ClusterStory
from odradek.sim.main import EXIT_FINDING, EXIT_OK, StoryKind, replay, run
from tests.sim.planted_cluster import CAUGHT, PLANTED, in_a_reproducible_process

CI_SEEDS = 6


@pytest.mark.parametrize("layout", Layout, ids=lambda layout: layout.name.lower())
def test_without_faults_every_node_shows_what_clients_were_answered(layout: Layout) -> None:
    story = ClusterStory(4, seconds=10, layout=layout, has_trouble=False)
    outcome = story.play()
    assert outcome.violations == []
    assert outcome.lives == len(layout.value)
    assert outcome.happened["topics_created"] > 10
    assert outcome.happened["topics_deleted"] > 10
    assert outcome.happened["broker_epochs"] == len(story.deployment.brokers)
    assert outcome.happened["images_compared"] > 50


def test_the_first_seeds_break_no_rule_and_put_all_of_them_to_the_test(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert run(CI_SEEDS, story=StoryKind.CLUSTER) == EXIT_OK, capfd.readouterr().out
    out = capfd.readouterr().out
    assert f"{CI_SEEDS} seeds without a finding" in out
    assert "never happened" not in out


def test_a_run_in_which_nobody_deletes_a_topic_proves_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The stories are over before anybody gets to it."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    code = run(CI_SEEDS, story=StoryKind.CLUSTER, seconds=0.2)
    out = capsys.readouterr().out
    assert code == EXIT_FINDING, out
    assert "never happened, so nothing is proved by this run: a topic was deleted" in out


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_caught_by_a_named_rule(fault: str) -> None:
    seed, rules = CAUGHT[fault]
    found = in_a_reproducible_process(fault, str(seed))
    assert found.stdout.startswith(rules), found


def test_a_seed_of_a_cluster_replays_in_another_process() -> None:
    script = (
        "from odradek.sim.cluster.story import ClusterStory;"
        "outcome = ClusterStory(5, seconds=12).play(); print(outcome.events, outcome.digest)"
    )
    first, again = (
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for _ in range(2)
    )
    assert int(first[0]) > 5_000
    assert first == again


def test_a_replay_tells_what_happened(capfd: pytest.CaptureFixture[str]) -> None:
    assert replay(3, trace=True, story=StoryKind.CLUSTER, seconds=3) == EXIT_OK
    out = capfd.readouterr().out
    assert "seed 3: no violations" in out
    assert "topics created" in out
    assert "is now Leader in epoch" in out
