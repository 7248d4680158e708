"""Proves that the node that ships survives its seeds, and that careless ones are caught."""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from odradek.broker.node import Node
from odradek.coordinators import loading
from odradek.coordinators.groups.consumer.group import ConsumerGroup
from odradek.coordinators.transactions.producer_ids import ProducerIds
from odradek.log.opening import loader
from odradek.log.producers.state import ProducerState
from odradek.runtime.slices import Paced
from odradek.sim.main import EXIT_FINDING, EXIT_OK, logs_of_node, odradek_node, replay, report, run
from odradek.sim.stories.outcome import Outcome
from odradek.sim.stories.plan import Settings
from odradek.sim.stories.single_node import SingleNodeStory
from odradek.sim.world.cluster import NodeFactory
from odradek.sim.world.runtime import SimRuntime
from tests.sim.broken import LateWrites, NoSync

CI_SEEDS = 2
SEEDS_TO_CATCH_A_BUG = 12


def test_the_first_seeds_have_no_finding(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(CI_SEEDS) == EXIT_OK, capfd.readouterr().out
    assert f"{CI_SEEDS} seeds without a finding" in capfd.readouterr().out


def test_a_seed_of_the_node_replays_in_another_process() -> None:
    script = (
        "from odradek.sim.main import *; story = SingleNodeStory(3, odradek_node, logs_of_node, seconds=25);"
        "outcome = story.play(); print(outcome.events, outcome.digest)"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for hash_seed in ("0", "0")
    ]
    assert int(outputs[0][0]) > 8_000
    assert outputs[0] == outputs[1]


def catch(factory: Callable[[Settings], NodeFactory] = odradek_node) -> Outcome:
    """The first seed that finds something."""
    for seed in range(SEEDS_TO_CATCH_A_BUG):
        outcome = SingleNodeStory(seed, factory, logs_of_node, seconds=30).play()
        if outcome.violations:
            return outcome
    pytest.fail(f"nothing was found in {SEEDS_TO_CATCH_A_BUG} seeds")


def _with_disk(wrapper: Callable[[Any], Any]) -> Callable[[Settings], NodeFactory]:
    def factory(settings: Settings) -> NodeFactory:
        sound = odradek_node(settings)

        def build(runtime: SimRuntime, data_dir: str) -> Any:
            runtime.disk = wrapper(runtime.sim_disk)
            return sound(runtime, data_dir)

        return build

    return factory


def test_a_node_that_does_not_flush_is_caught() -> None:
    assert "must hold" in catch(_with_disk(NoSync)).violations[0]


def test_a_node_that_acknowledges_before_it_writes_is_caught() -> None:
    assert catch(_with_disk(LateWrites)).violations


def test_a_node_that_skips_its_recovery_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes every stop for a clean one, and does not look whether its logs end with a whole batch."""
    monkeypatch.setattr(loader, "_check_end", lambda segment, because: (segment.next_offset()[0], None))

    def factory(settings: Settings) -> NodeFactory:
        sound = odradek_node(settings)

        def build(runtime: SimRuntime, data_dir: str) -> Any:
            if runtime.sim_disk.exists(data_dir):
                path = f"{data_dir}/.kafka_cleanshutdown"
                runtime.sim_disk.close(runtime.sim_disk.open(path, os.O_RDWR | os.O_CREAT))
            return sound(runtime, data_dir)

        return build

    assert catch(factory).violations


def test_a_node_that_forgets_its_producers_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProducerState, "commit", lambda self, staged: None)
    monkeypatch.setattr(ProducerState, "replay", lambda self, batch, marker: None)
    assert any("again at" in violation for violation in catch().violations)


def test_a_node_that_forgets_committed_offsets_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    replay_batch = loading._replay_batch

    def forgetful(data: bytes, batch: Any, *others: Any) -> Paced[None]:
        if batch.base_offset % 2 == 0:
            yield from replay_batch(data, batch, *others)

    monkeypatch.setattr(loading, "_replay_batch", forgetful)
    assert any("committed offset is" in violation for violation in catch().violations)


def test_a_node_that_gives_a_partition_to_two_members_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConsumerGroup, "owners_of", lambda self, topic_id: {})
    assert any("was assigned to" in violation for violation in catch().violations)


def test_a_node_that_hands_out_producer_ids_again_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def take(self: ProducerIds) -> int:
        self._next += 1
        return self._next

    async def ready(self: ProducerIds) -> None:
        """Never asks the controller."""

    monkeypatch.setattr(ProducerIds, "take", take)
    monkeypatch.setattr(ProducerIds, "ready", ready)
    assert any("handed out twice" in violation for violation in catch().violations)


def test_a_node_that_leaves_a_task_behind_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = Node.stop

    async def careless(self: Node) -> None:
        await stop(self)
        self.runtime.disk.open(f"{self.config.log_dirs[0]}/meta.properties", os.O_RDONLY)

    monkeypatch.setattr(Node, "stop", careless)
    assert any("left a file behind" in violation for violation in catch().violations)


def test_the_report_names_seed_faults_and_the_first_violation() -> None:
    outcome = catch(_with_disk(NoSync))
    text = report(outcome)
    assert f"seed {outcome.seed}: " in text
    assert outcome.faults[0] in text
    assert outcome.violations[0] in text
    assert f"odradek sim replay {outcome.seed}" in text


def test_replay_traces_every_event(capfd: pytest.CaptureFixture[str]) -> None:
    assert replay(1, trace=True) in (EXIT_OK, EXIT_FINDING)
    output = capfd.readouterr().out
    assert "seed 1: no violations" in output
    assert output.count("\n") > 10_000
