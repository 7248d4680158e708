"""Proves that blows of the plan really stop, slow and cut off the node that ships, and that it survives."""

from dataclasses import replace

from odradek.sim.main import logs_of_node, odradek_node
from odradek.sim.stories import single_node
from odradek.sim.stories.plan import Blow
from odradek.sim.stories.single_node import HOST, SingleNodeStory

SECONDS = 12.0


class Told:
    """A story of one kind of blow, and its trace: (time, actor, event, details)."""

    def __init__(self, blow: Blow, seed: int = 1) -> None:
        self.events: list[tuple[float, str, str, str]] = []
        self.story = SingleNodeStory(seed, odradek_node, logs_of_node, seconds=SECONDS, sink=self._add)
        self.story.plan = replace(single_node.PLAN, weights={blow: 1}, wait_seconds=3, seconds=4)
        self.outcome = self.story.play()
        assert self.outcome.violations == []
        assert self.outcome.acknowledged_records > 50
        assert any(blow.value in fault for fault in self.outcome.faults)

    def _add(self, line: str) -> None:
        time, actor, what, *details = line.split(maxsplit=3)
        self.events.append((float(time), actor, what, " ".join(details)))

    def between(self, first: str, last: str, actor: str) -> list[list[tuple[float, str, str, str]]]:
        """The events of each stretch that one event of an actor begins, and another ends."""
        found: list[list[tuple[float, str, str, str]]] = []
        inside = False
        for event in self.events:
            if not inside and event[1:3] == (actor, first):
                found.append([])
                inside = True
            if event[1:3] == (actor, last):
                inside = False
            if inside:
                found[-1].append(event)
        assert found
        return found


def _of_node(events: list[tuple[float, str, str, str]]) -> list[str]:
    return [what for _, actor, what, _ in events if actor.startswith(f"{HOST}.")]


def test_a_paused_node_does_nothing_while_its_clients_go_on() -> None:
    for stretch in Told(Blow.PAUSE).between("pause", "resume", HOST):
        assert _of_node(stretch) == []
        assert "send" in [what for _, actor, what, _ in stretch if not actor.startswith(HOST)]


def test_a_stalled_node_does_nothing_until_its_time_has_passed() -> None:
    told = Told(Blow.STALLS)
    stalls = [(time, float(details)) for time, _, what, details in told.events if what == "stall"]
    assert len(stalls) >= 8
    for began, seconds in stalls:
        during = [event for event in told.events if began < event[0] < began + seconds]
        assert _of_node(during) == []


def test_a_node_that_is_cut_off_in_one_direction_hears_or_is_heard() -> None:
    """Deaf, it receives nothing beyond what was under way, and its clients do; mute, it is the reverse."""
    heard_by_node: dict[bool, set[bool]] = {True: set(), False: set()}
    for seed in (5, 6, 9):  # both directions are cut in these
        for stretch in Told(Blow.CUT, seed).between("cut", "heal", "network"):
            began, _, _, direction = stretch[0]
            heard_by_node[direction.endswith(f" {HOST}")] |= {
                actor.startswith(f"{HOST}.")
                for time, actor, what, _ in stretch
                if what == "recv" and time > began + 0.2
            }
    assert heard_by_node == {True: {False}, False: {True}}


def test_the_timers_of_a_node_go_by_its_drifting_clock() -> None:
    told = Told(Blow.CLOCK_DRIFT)
    drift = told.story.hosts[HOST].clock.drift
    assert drift.rate != 1
    world_s = told.outcome.virtual_seconds
    assert abs(drift.reading(world_s) - world_s) > 0.1
