"""Proves the base of all stories over several hosts of toy nodes.

Each host is struck and restarted, clients go from one to another, what is lost is found, and a seed replays.
"""

import re
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import pytest

from odradek.sim.stories.outcome import Outcome, Over
from odradek.sim.stories.plan import WEIGHTS, Blow, Plan
from odradek.sim.stories.story import Story, Tasks
from odradek.sim.world.cluster import NodeFactory
from odradek.sim.world.runtime import SimRuntime
from tests.sim.toy import ToyClient, ToyNode

HOSTS = ("one", "two", "three")
_BAD_DISKS = (Blow.DISK_ERROR, Blow.DISK_FULL)  # a toy dies of them
PLAN = Plan(
    {blow: 1 for blow in WEIGHTS if blow not in _BAD_DISKS} | {Blow.CRASH: 6},
    wait_seconds=0.5,
    seconds=1,
    down_seconds=0.5,
    calls=200,
    patience_seconds=0.5,
    power=True,
)


class ToyStory(Story):
    """Clients that append to any of the hosts."""

    def __init__(self, seed: int, factory: NodeFactory = ToyNode, *, seconds: float = 20) -> None:
        super().__init__(seed, seconds=seconds)
        self.plan = PLAN
        for name in HOSTS:
            self.add_host(name, factory)
        self.appenders = [
            ToyClient(self.world.runtime(f"client{index}"), f"client{index}", 300) for index in range(4)
        ]

    async def prepare(self) -> None:
        """Toys need nothing."""

    def clients(self) -> Iterable[tuple[str, Coroutine[Any, Any, None]]]:
        for index, client in enumerate(self.appenders):
            yield f"client{index}", client.run(HOSTS, self.seconds)

    async def conclude(self, clients: Tasks) -> None:
        for task in clients:
            await task
        entries: dict[str, list[bytes]] = {}
        for name, host in self.hosts.items():
            await host.stop()
            await self.restart(host)
            assert isinstance(host.node, ToyNode)
            entries[name] = host.node.entries
        for client in self.appenders:
            for payload, (name, number) in client.acknowledged.items():
                if entries[name][number : number + 1] != [payload]:
                    self.outcome.violations.append(f"{name} lost {payload[:16]!r}")

    def count(self, outcome: Outcome) -> None:
        outcome.acknowledged_records = sum(len(client.acknowledged) for client in self.appenders)


def test_every_host_is_struck_and_nothing_is_lost() -> None:
    told: list[str] = []
    for seed in range(3):
        story = ToyStory(seed)
        outcome = story.play()
        assert outcome.violations == []
        assert outcome.acknowledged_records > 100
        assert outcome.lives == sum(host.lives for host in story.hosts.values())
        told += outcome.faults
    for name in HOSTS:
        assert any(f"{name}: crash" in fault for fault in told)
    for blow in PLAN.weights:
        assert any(blow.value in fault for fault in told), blow


def test_clients_use_every_host() -> None:
    story = ToyStory(1)
    story.play()
    assert {host for client in story.appenders for host, _ in client.acknowledged.values()} == set(HOSTS)


def test_a_story_of_several_hosts_replays() -> None:
    one, two, other = (ToyStory(seed).play() for seed in (3, 3, 4))
    assert (one.digest, one.events) == (two.digest, two.events)
    assert one.digest != other.digest


def _with(**flags: bool) -> Callable[[SimRuntime, str], ToyNode]:
    """A toy on one of the hosts only is not sound."""

    def factory(runtime: SimRuntime, data_dir: str) -> ToyNode:
        return ToyNode(runtime, data_dir, **(flags if runtime.host == "two" else {}))

    return factory


def test_the_one_host_that_does_not_flush_is_found() -> None:
    found = [line for seed in range(2) for line in ToyStory(seed, _with(flush=False)).play().violations]
    assert found
    assert all(line.startswith("two lost") for line in found)


def test_what_a_host_leaves_behind_is_found() -> None:
    (found,) = set(ToyStory(1, _with(leak=True)).play().violations)
    assert found == "two left a file behind: /data/log"


class FailingNode(ToyNode):
    """Starts once."""

    async def start(self) -> None:
        if self._runtime.disk.exists(self._path):
            raise ValueError("once is enough")
        await super().start()


def test_a_node_that_does_not_come_up_ends_the_story() -> None:
    (found,) = ToyStory(1, FailingNode).play().violations
    assert re.fullmatch(r"(one|two|three) does not start: ValueError\('once is enough'\)", found)


@pytest.mark.parametrize("error", [Over("it ends here"), ValueError("it ends here")])
def test_what_a_story_cannot_go_on_after_is_a_violation(error: Exception) -> None:
    class Short(ToyStory):
        async def prepare(self) -> None:
            raise error

    (found,) = Short(1).play().violations
    assert "it ends here" in found


def test_a_client_that_fails_is_a_violation() -> None:
    class Failing(ToyStory):
        def clients(self) -> Iterable[tuple[str, Coroutine[Any, Any, None]]]:
            async def fail() -> None:
                raise ValueError("cannot go on")

            yield "failing", fail()

    (found,) = Failing(1).play().violations
    assert found == "failing failed: ValueError('cannot go on')"
