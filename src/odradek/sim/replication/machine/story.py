"""The faults of the machine of replication, drawn from a seed. Then all is healed: replicas must be equal."""

from functools import partial
from random import Random
from typing import NamedTuple

from odradek.core.errors import KafkaError
from odradek.replication.isr import CommittedIsr
from odradek.sim.replication import rules
from odradek.sim.replication.machine.node import MachineNode
from odradek.sim.replication.machine.world import CONTROLLER, MachineWorld
from odradek.sim.replication.rules import Counters
from odradek.sim.replication.truth import Mark

LENGTH_MS = 4_000
HEAL_MS = 5_000
ASSERTION = "the machine's own assertions hold"


class MachineOutcome(NamedTuple):
    seed: int
    violation: str | None
    events: int
    virtual_ms: int
    counters: Counters


class Violation(Exception):
    """A rule was broken; the text begins with its name."""


class MachineStory:
    def __init__(self, seed: int) -> None:
        random = self.random = Random(seed * 7919 + 3)
        self.seed = seed
        brokers = random.choice((2, 3, 3, 3, 4))
        self.world = MachineWorld(
            seed,
            random,
            brokers,
            elr=random.random() < 0.6,
            min_isr=random.choice((1, 2)),
            unclean=random.random() < 0.2,
            flushes=random.random() < 0.2,
        )
        self.world.checker.on_violation = self._stop
        self.pace_ms = random.choice((60, 150, 400))
        self.healed = False

    def _stop(self, text: str) -> None:
        raise Violation(text)

    def play(self) -> MachineOutcome:
        world, violation = self.world, None
        try:
            self._play()
        except Violation as broken:
            violation = str(broken)
        except AssertionError as broken:
            violation = f"{ASSERTION}: {broken!r}"
        counters = world.checker.counters
        counters.rejected = world.controller.rejected
        return MachineOutcome(self.seed, violation, world.events, world.now_ms, counters)

    def _play(self) -> None:
        world = self.world
        for node in world.lives.values():
            node.later(10, partial(world._heartbeat, node))
        world.after(10, self._produce)
        world.after(100, self._trouble)
        world.run(LENGTH_MS)
        self._heal()
        if not world.run(world.now_ms + HEAL_MS, self._is_whole):
            raise Violation(f"{rules.LIVENESS}: {world.controller.partition} after {HEAL_MS} ms")
        self._check_at_rest()

    # --- load -----------------------------------------------------------------------------------------

    def _produce(self) -> None:
        """To every node that takes itself for the leader."""
        random, world = self.random, self.world
        if self.healed:
            return
        for node in tuple(world.lives.values()):
            if node.leader is not None and random.random() < 0.8:
                node.do(partial(self._produce_to, node))
        world.after(3 + random.randrange(30), self._produce)

    def _produce_to(self, node: MachineNode) -> None:
        truth = self.world.truth
        mark = truth.mark(node.node_id)
        node.produce(
            1 + self.random.randrange(3),
            partial(self._answered, node, mark),
            acks_all=self.random.random() < 0.8,
        )

    def _answered(self, node: MachineNode, mark: Mark, base: int, error: KafkaError | None) -> None:
        if error is None:
            self.world._look()
            crc = next(batch.crc for batch in reversed(node.log.disk.batches) if batch.base == base)
            self.world.truth.acknowledged(node.node_id, base, crc, mark)

    # --- faults ---------------------------------------------------------------------------------------

    def _trouble(self) -> None:
        if self.healed:
            return
        getattr(self, self.random.choices(_KINDS, _WEIGHTS)[0])()
        self.world.after(10 + self.random.randrange(self.pace_ms), self._trouble)

    def _node(self) -> int:
        """Some node, the leader more often than others."""
        leader = self.world.controller.partition.leader
        if leader in self.world.lives and self.random.random() < 0.5:
            return leader
        return self.random.choice(list(self.world.disks))

    def _back_later(self, node_id: int) -> None:
        self.world.after(5 + self.random.randrange(400), partial(self.world.start, node_id))

    def _crash(self) -> None:
        node_id = self._node()
        self.world.crash(node_id, power=self.random.random() < 0.5)
        if self.random.random() < 0.7:
            self.world.after(self.random.randrange(150), partial(self._fence, node_id))
        self._back_later(node_id)

    def _blackout(self) -> None:
        for node_id in self.world.disks:
            self.world.crash(node_id, power=True)
            self._back_later(node_id)

    def _restart(self) -> None:
        node_id = self._node()
        self.world.stop(node_id)
        self._back_later(node_id)

    def _ambush(self) -> None:
        if self.random.random() < 0.4:
            self.world.fetch_ambushes = 1
        else:
            self.world.proposal_ambushes = 1

    def _bounce(self) -> None:
        """The lead goes to another member of the ISR, and soon back."""
        controller = self.world.controller
        leader, others = controller.partition.leader, list(controller.partition.isr)
        if leader in others and len(others) > 1:
            others.remove(leader)
            self.world.decide(partial(controller.elect, self.random.choice(others)))
            at_ms = 5 + self.random.randrange(80)
            self.world.after(at_ms, partial(self.world.decide, partial(controller.elect, leader)))

    def _fence(self, node_id: int) -> None:
        self.world.decide(partial(self.world.controller.fence, node_id))

    def _pause(self) -> None:
        node = self.world.lives.get(self._node())
        if node is None or node.is_paused:
            return
        self.world.trace(f"{node.node_id} is paused")
        node.is_paused = True
        if self.random.random() < 0.6:
            self.world.after(self.random.randrange(100), partial(self._fence, node.node_id))
        self.world.after(20 + self.random.randrange(700), node.resume)

    def _cut(self) -> None:
        nodes = [CONTROLLER, *self.world.disks]
        a, b = self.random.sample(nodes, 2)
        pairs = {(a, b), (b, a)} if self.random.random() < 0.5 else {(a, b)}
        self._cut_for_a_while(pairs)

    def _isolate(self) -> None:
        """From all others; the controller fences whom it does not hear."""
        node_id = self._node()
        others = [n for n in (CONTROLLER, *self.world.disks) if n != node_id]
        if self.random.random() < 0.4:
            others.remove(CONTROLLER)
        self._cut_for_a_while({pair for n in others for pair in ((n, node_id), (node_id, n))})
        if CONTROLLER in others:
            self.world.after(30 + self.random.randrange(200), partial(self._fence_if_cut, node_id))

    def _fence_if_cut(self, node_id: int) -> None:
        if self.world.is_cut(node_id):
            self._fence(node_id)

    def _cut_for_a_while(self, pairs: set[tuple[int, int]]) -> None:
        self.world.trace(f"cut {sorted(pairs)}")
        cut = self.world.network.cut
        cut |= pairs
        wait_ms = self.random.choice((60, 300, 900))
        self.world.after(20 + self.random.randrange(wait_ms), lambda: cut.difference_update(pairs))

    def _weather(self) -> None:
        random, network = self.random, self.world.network
        network.lost = random.choice((0.0, 0.0, 0.05, 0.2))
        network.doubled = random.choice((0.0, 0.05, 0.2))
        network.most_ms = random.choice((4, 4, 30, 100))
        self.world.slow = random.choice((0.0, 0.1, 0.4))

    # --- the end --------------------------------------------------------------------------------------

    def _heal(self) -> None:
        world = self.world
        self.healed = True
        world.network.heal()
        world.slow, world.fetch_ambushes, world.proposal_ambushes = 0.0, 0, 0
        world.trace("healed")
        for node in tuple(world.lives.values()):
            if node.is_paused:
                node.resume()
        for node_id in world.disks:
            world.start(node_id)

    def _is_whole(self) -> bool:
        """Whether every replica is in the ISR, and has everything below and above the high watermark."""
        world = self.world
        state = world.controller.partition
        node = world.lives.get(state.leader)
        if node is None or len(state.isr) < len(state.replicas):
            return False
        leader, end = node.leader, node.log.log_end_offset
        if leader is None or leader.epoch != state.leader_epoch or type(leader.isr) is not CommittedIsr:
            return False
        logs = [life.log for life in world.lives.values()]
        return len(logs) == len(state.replicas) and all(
            log.log_end_offset == log.high_watermark == end for log in logs
        )

    def _check_at_rest(self) -> None:
        logs = {node_id: node.log for node_id, node in self.world.lives.items()}
        first_id, first = next(iter(logs.items()))
        for node_id, log in logs.items():
            if log.disk.batches != first.disk.batches:
                raise Violation(f"{rules.SAME_BATCHES}: {first_id} and {node_id}")
            ours, theirs = _epochs(first.epochs.entries, first), _epochs(log.epochs.entries, log)
            if ours != theirs:
                raise Violation(f"{rules.SAME_EPOCHS}: {first_id} has {ours}, {node_id} has {theirs}")


def _epochs(entries: list[tuple[int, int]], log: object) -> list[tuple[int, int]]:
    """Up to that of the last record: a leader has one more, which has no record yet."""
    batches = log.disk.batches  # type: ignore[attr-defined]
    last = batches[-1].epoch if batches else -1
    return [(epoch, start) for epoch, start in entries if epoch <= last]


_CHANCES = {
    "_crash": 20,
    "_blackout": 2,
    "_restart": 5,
    "_ambush": 5,
    "_bounce": 6,
    "_pause": 10,
    "_cut": 12,
    "_isolate": 12,
    "_weather": 8,
}
_KINDS, _WEIGHTS = list(_CHANCES), list(_CHANCES.values())


def play(seed: int) -> MachineOutcome:
    return MachineStory(seed).play()
