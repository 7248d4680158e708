"""The faults of a simulated quorum, drawn from a seed. Then everything is healed, and it must commit."""

from functools import partial
from random import Random
from typing import NamedTuple

from odradek.core.errors import ErrorCode
from odradek.core.types import ZERO_UUID
from odradek.raft import events as e
from odradek.raft.messages import AddVoterRequest, AnswerBody, RemoveVoterRequest, Request, VoterChangeAnswer
from odradek.raft.times import RaftTimes
from odradek.raft.voters import ReplicaKey, Voter, VoterSet
from odradek.sim.quorum.checks import ASSERTION, LIVENESS, Counters, Violation
from odradek.sim.quorum.driver import SimReplica
from odradek.sim.quorum.world import QuorumWorld, endpoint

STEPS = 1000
HEAL_MS = 20_000
QUICK = RaftTimes(150, 300, 150, 300, 30, 100)


class QuorumOutcome(NamedTuple):
    seed: int
    violation: str | None
    steps: int
    virtual_ms: int
    counters: Counters


class Admin:
    """Somebody who changes the voters. One request at a time."""

    __slots__ = ("busy", "changed", "node_id")

    def __init__(self) -> None:
        self.node_id = 0
        self.busy = False
        self.changed = 0

    def answered(self, number: int, answer: AnswerBody) -> None:
        assert isinstance(answer, VoterChangeAnswer)
        self.busy = False
        self.changed += answer.error is ErrorCode.NONE

    def unanswered(self, number: int) -> None:
        self.busy = False


class QuorumStory:
    def __init__(self, seed: int, steps: int = STEPS) -> None:
        random = self.random = Random(seed * 7919 + 1)
        self.seed = seed
        self.steps = steps
        self.voters = 3 if random.random() < 0.65 else 5
        observers = random.choice((0, 1, 1, 2))
        self.kraft_version = random.choice((0, 1))
        times = QUICK if random.random() < 0.8 else RaftTimes()
        nodes = self.voters + observers
        self.world = QuorumWorld(seed, nodes, self.voters, times, kraft_version=self.kraft_version)
        self.world.quick_failover = random.random() < 0.5
        self.admin = Admin()
        self.healed = False
        self.world.read_batches = random.choice((1, 8))
        if random.random() < 0.3:
            self.world.on_leader = self._short_reign
        self.new = not self.kraft_version and random.random() < 0.3
        for disk in self.world.disks.values():
            disk.formatted = not self.new

    def play(self) -> QuorumOutcome:
        world = self.world
        violation = None
        try:
            self._play()
        except Violation as broken:
            violation = str(broken)
        except AssertionError as broken:
            violation = f"{ASSERTION}: {broken}"
        counters = world.checker.counters
        counters.voters_changed = self.admin.changed
        return QuorumOutcome(self.seed, violation, world.steps, world.now_ms, counters)

    def _play(self) -> None:
        world = self.world
        for node_id in world.disks:
            world.after(self.random.randrange(50), partial(world.start, node_id))
        if self.new and self.random.random() < 0.6:
            self._late_starter()
        world.after(20, self._propose)
        if self.voters == 5 and not self.kraft_version and self.random.random() < 0.5:
            world.on_leader = lambda replica: None
            self.steps *= 2
            world.after(600 + self.random.randrange(300), self._stale_leader)
            world.after(900 + 2 * self._patience_ms, self._trouble)
        else:
            world.after(100, self._trouble)
        world.run(10 * HEAL_MS, lambda: world.steps >= self.steps)
        self._heal()
        end = max(disk.end for disk in world.disks.values())
        checker = world.checker
        if not world.run(world.now_ms + HEAL_MS, lambda: checker.committed_end > end):
            checker.fail(LIVENESS, f"nothing was committed within {HEAL_MS} ms after the last fault")

    # --- load -----------------------------------------------------------------------------------------

    def _propose(self) -> None:
        self._propose_once()
        self.world.after(5 + self.random.randrange(60), self._propose)

    def _propose_once(self) -> None:
        """To every node that takes itself for the leader."""
        random = self.random
        for replica in tuple(self.world.replicas.values()):
            if replica.node.is_leader and random.random() < 0.7:
                replica.step(e.Propose(1 + random.randrange(3)))

    # --- faults ---------------------------------------------------------------------------------------

    def _trouble(self) -> None:
        if self.healed:
            return
        random, world = self.random, self.world
        world.checker.check_quorums()
        kind = random.choices(_KINDS, _WEIGHTS)[0]
        getattr(self, kind)()
        world.after(20 + random.randrange(250), self._trouble)

    def _node(self) -> int:
        """Some node, the leader more often than others."""
        random = self.random
        leaders = [n for n, replica in self.world.replicas.items() if replica.node.is_leader]
        if leaders and random.random() < 0.5:
            return random.choice(leaders)
        return random.choice(list(self.world.disks))

    def _crash(self) -> None:
        node_id = self._node()
        self.world.crash(node_id, power=self.random.random() < 0.6)
        self.world.after(20 + self.random.randrange(500), lambda: self.world.restart(node_id))

    def _ambush(self) -> None:
        self.world.ambushes = 1 + self.random.randrange(3)

    def _blackout(self) -> None:
        """Power for nobody."""
        for node_id in list(self.world.disks):
            self.world.crash(node_id, power=True)
            self.world.after(20 + self.random.randrange(200), partial(self.world.restart, node_id))

    def _cut_one_way(self) -> None:
        a, b = self.random.sample(list(self.world.disks), 2)
        self._cut_for_a_while({(a, b)})

    def _isolate(self) -> None:
        node_id = self._node()
        others = [n for n in self.world.disks if n != node_id]
        away = set()
        if self.random.random() < 0.7:
            away |= {(node_id, n) for n in others}
        if not away or self.random.random() < 0.7:
            away |= {(n, node_id) for n in others}
        self._cut_for_a_while(away)

    def _split(self) -> None:
        nodes = list(self.world.disks)
        self.random.shuffle(nodes)
        half = 1 + self.random.randrange(len(nodes) - 1)
        self._cut_for_a_while({pair for a in nodes[:half] for b in nodes[half:] for pair in ((a, b), (b, a))})

    def _cut_for_a_while(self, pairs: set[tuple[int, int]]) -> None:
        cut = self.world.network.cut
        cut |= pairs
        wait_ms = self.random.choice((100, 400, 1500, 4000))
        self.world.after(50 + self.random.randrange(wait_ms), lambda: cut.difference_update(pairs))

    def _weather(self) -> None:
        random, network = self.random, self.world.network
        network.lost = random.choice((0.0, 0.0, 0.05, 0.2))
        network.doubled = random.choice((0.0, 0.05, 0.2))
        network.most_ms = random.choice((5, 5, 40, 120))

    def _slow_disk(self) -> None:
        replica = self.world.replicas.get(self._node())
        if replica is not None:
            replica.slow_disk_ms = self.random.choice((0, 20, 100))

    def _stall(self) -> None:
        self.world.stalled[self._node()] = True

    def _snapshot(self) -> None:
        replica = self.world.replicas.get(self._node())
        if replica is not None:
            replica.take_snapshot()

    def _wipe(self) -> None:
        """A disk is lost, where a majority of them survives without it."""
        self._lose_disk(self.random.choice(list(self.world.disks)))

    def _lose_disk(self, node_id: int) -> None:
        if self.healed or not self._may_lose(node_id):
            return
        self.world.crash(node_id, power=True)
        self.world.wipe(node_id)
        self.world.after(20 + self.random.randrange(300), lambda: self.world.restart(node_id))

    def _may_lose(self, node_id: int) -> bool:
        return not self.admin.busy and all(self._survives(voters, node_id) for voters in self._voter_sets())

    def _survives(self, voters: VoterSet, without: int = 0) -> bool:
        """Whether a majority of these voters has the disk that they had when they became voters."""
        whole = sum(voter.id != without and self._is_whole(voter) for voter in voters.voters)
        return whole > len(voters.ids) // 2

    def _is_whole(self, voter: Voter) -> bool:
        disk = self.world.disks[voter.id]
        if voter.directory_id == ZERO_UUID:
            return not disk.wiped or (disk.formatted and disk.may_vote)
        return voter.directory_id == disk.directory_id

    def _voter_sets(self) -> list[VoterSet]:
        """Every set of voters that may still come to act."""
        found = []
        for disk in self.world.disks.values():
            _, history = disk.load(self.world.static_voters)
            found += [facts.voters for facts in history.all if facts.voters is not None]
        return found

    def _late_starter(self) -> None:
        """A new quorum in which one voter is missing at first, and another one loses its disk as it comes."""
        world, random = self.world, self.random
        late, unlucky = random.sample(range(1, self.voters + 1), 2)
        world.crash(late, power=False)
        at_ms = 300 + random.randrange(2000)
        world.at(at_ms, partial(self._lose_disk, unlucky))
        world.at(at_ms + random.randrange(200), partial(world.restart, late))

    def _short_reign(self, replica: SimReplica) -> None:
        """Most leaders fall as soon as they have appended something."""
        random, world, node_id = self.random, self.world, replica.node_id
        if self.healed or random.random() < 0.3:
            return
        if random.random() < 0.5:
            world.after(1, self._propose_once)
        at_ms = 2 + random.randrange(60)
        back_ms = at_ms + 30 + random.randrange(500)
        world.after(at_ms, partial(world.crash, node_id, power=random.random() < 0.5))
        world.after(back_ms, partial(world.restart, node_id))

    def _stale_leader(self) -> None:
        """A leader does not hear that it is deposed; a voter of the new one loses its disk, and finds only
        the old one."""
        world, random = self.world, self.random
        leader_id = next((n for n, r in world.replicas.items() if r.node.is_leader), None)
        if leader_id is None or self.voters < 5:
            return
        voter = random.choice([n for n in range(1, 6) if n != leader_id])
        others = [n for n in world.disks if n not in (leader_id, voter)]
        away = {pair for n in (*others, voter) for pair in ((leader_id, n), (n, leader_id))}
        world.network.cut |= away
        patience_ms = self._patience_ms
        for wait_ms in range(0, 2 * patience_ms, world.times.fetch_timeout_ms // 2):
            world.after(wait_ms, partial(world.stalled.__setitem__, leader_id, True))
        world.after(patience_ms, partial(self._lose_disk_beside, voter, leader_id, others))
        world.after(2 * patience_ms - 50, partial(self._depose_all, leader_id))
        world.after(2 * patience_ms, world.network.cut.clear)

    @property
    def _patience_ms(self) -> int:
        """By then another leader is elected."""
        return 2 * self.world.times.fetch_timeout_ms + self.world.times.election_timeout_ms

    def _depose_all(self, spared: int) -> None:
        """Every leader but one falls."""
        for node_id, replica in tuple(self.world.replicas.items()):
            if replica.node.is_leader and node_id != spared and not self.healed:
                self.world.crash(node_id, power=False)
                self.world.after(200, partial(self.world.restart, node_id))

    def _lose_disk_beside(self, voter: int, leader_id: int, others: list[int]) -> None:
        if not self.healed:
            self._lose_disk(voter)
            cut = self.world.network.cut
            cut -= {(voter, leader_id), (leader_id, voter)}
            cut |= {pair for n in others for pair in ((voter, n), (n, voter))}

    # --- voters ---------------------------------------------------------------------------------------

    def _change_voters(self) -> None:
        """Remove one that lost its disk, else add one that is none, else remove any."""
        leader = next((r for r in self.world.replicas.values() if r.node.is_leader), None)
        if leader is None or self.admin.busy:
            return
        node, disks = leader.node, self.world.disks
        voters = node.voters
        assert voters is not None
        if node.kraft_version == 0:
            if all(self._is_whole(voter) for voter in voters.voters):
                self._ask(leader.node_id, None)
            return
        lost = [v for v in voters.voters if disks[v.id].directory_id != v.directory_id]
        outside = [n for n in disks if n not in voters.ids]
        if lost:
            victim = lost[0].key
        elif outside and (len(voters.ids) < 3 or self.random.random() < 0.6):
            n = self.random.choice(outside)
            key = ReplicaKey(n, disks[n].directory_id)
            self._ask(leader.node_id, AddVoterRequest(key, (endpoint(n),), 300, self.random.random() < 0.7))
            return
        else:
            victim = self.random.choice(voters.voters).key
        if len(voters.ids) > 2 and self._survives(voters.without(victim.id)):
            self._ask(leader.node_id, RemoveVoterRequest(victim))

    def _ask(self, to: int, request: Request | None) -> None:
        """None: raise kraft.version."""
        self.admin.busy = True
        number = self.world.next_number()
        if request is not None:
            self.world.deliver_later(self.admin, number, to, request)
        else:
            self.world.replicas[to].step(e.UpgradeKRaftVersion((self.admin, number), 1))

    # --- the end --------------------------------------------------------------------------------------

    def _heal(self) -> None:
        world = self.world
        self.healed = True
        world.network.heal()
        world.stalled.clear()
        world.ambushes = 0
        for replica in world.replicas.values():
            replica.slow_disk_ms = 0
        for node_id in list(world.disks):
            world.restart(node_id)


_CHANCES = {
    "_crash": 20,
    "_ambush": 4,
    "_blackout": 2,
    "_cut_one_way": 10,
    "_isolate": 14,
    "_split": 6,
    "_weather": 8,
    "_slow_disk": 6,
    "_stale_leader": 4,
    "_stall": 3,
    "_snapshot": 10,
    "_wipe": 5,
    "_change_voters": 14,
}
_KINDS, _WEIGHTS = list(_CHANCES), list(_CHANCES.values())


def play(seed: int) -> QuorumOutcome:
    return QuorumStory(seed).play()
