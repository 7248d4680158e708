"""Simulated replicas of a quorum on virtual time: a queue of events, a network, disks. Quick: no asyncio.

What happens when is drawn from the seed. Which faults strike is the story's (story.py), what must hold is the
checker's (checks.py).
"""

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from random import Random
from uuid import UUID

from odradek.raft import events as e
from odradek.raft import first_start
from odradek.raft.control import QuorumFacts
from odradek.raft.messages import AnswerBody, Request
from odradek.raft.ready import Send
from odradek.raft.replica import FIRST_BOOTSTRAP_SERVER
from odradek.raft.snapshots import SnapshotId
from odradek.raft.times import RaftTimes
from odradek.raft.voters import Voter, VoterEndpoint, VoterSet
from odradek.sim.quorum.checks import Checker
from odradek.sim.quorum.disk import ReplicaDisk, StoredSnapshot
from odradek.sim.quorum.driver import Sender, SimReplica, Token
from odradek.sim.quorum.network import Network

Action = Callable[[], None]
ASK_MS = 40
REFUSED_MS = 2
LOST_MS = 150


class QuorumWorld:
    """Nodes 1 to n. `static_voters` is what the configuration names; with kraft.version 1 it is None."""

    def __init__(self, seed: int, nodes: int, voters: int, times: RaftTimes, *, kraft_version: int) -> None:
        self.random = Random(seed)
        self.times = times
        self.now_ms = 0
        self.steps = 0
        self.network = Network(self.random)
        self.sink: Callable[[str], None] | None = None
        self._queue: list[tuple[int, int, Action]] = []
        self._sequence = 0
        self._requests = 0
        ids = range(1, nodes + 1)
        self.disks = {n: ReplicaDisk(UUID(int=n)) for n in ids}
        self.endpoints = {n: (endpoint(n),) for n in ids}
        first = VoterSet(self._voter(n, kraft_version) for n in ids if n <= voters)
        self.static_voters = first if kraft_version == 0 else None
        if kraft_version:
            for n in first.ids:
                self.disks[n].store(StoredSnapshot(SnapshotId(0, 0), 0, QuorumFacts(1, first)))
        self.replicas: dict[int, SimReplica] = {}
        self.down: set[int] = set()
        # Nodes whose loop stood still: their next timer fires late, and they know.
        self.stalled: dict[int, bool] = {}
        self.quick_failover = True
        self.read_batches = 8
        self.on_leader: Callable[[SimReplica], None] = lambda replica: None
        self.ambushes = 0
        self.sent_snapshots: dict[SnapshotId, StoredSnapshot] = {}
        self._contents = self._directories = 0
        self.checker = Checker(self)

    def _voter(self, node_id: int, kraft_version: int) -> Voter:
        directory_id = self.disks[node_id].directory_id if kraft_version else UUID(int=0)
        return Voter(node_id, directory_id, (endpoint(node_id),))

    # --- time -----------------------------------------------------------------------------------------

    def at(self, time_ms: int, action: Action) -> None:
        self._sequence += 1
        heappush(self._queue, (time_ms, self._sequence, action))

    def after(self, delay_ms: int, action: Action) -> None:
        self.at(self.now_ms + delay_ms, action)

    def run(self, until_ms: int, done: Callable[[], bool]) -> bool:
        """Let things happen. Whether `done` came true before the time was up."""
        queue = self._queue
        while queue and queue[0][0] <= until_ms:
            self.now_ms, _, action = heappop(queue)
            action()
            if done():
                return True
        self.now_ms = until_ms
        return done()

    def trace(self, node_id: int, text: str) -> None:
        if self.sink is not None:
            self.sink(f"{self.now_ms:7} {node_id:3} {text}")

    # --- nodes ----------------------------------------------------------------------------------------

    def start(self, node_id: int) -> None:
        """Begin with what the disk has; a static voter with an empty one asks the others first."""
        if node_id in self.replicas:
            return
        disk = self.disks[node_id]
        if not self._is_formatted(node_id, disk):
            self.after(ASK_MS, lambda: self.start(node_id))
            return
        self.replicas[node_id] = replica = SimReplica(self, node_id, disk)
        self.trace(node_id, f"starts as {replica.node.role}")
        replica.step(e.Start())

    def _is_formatted(self, node_id: int, disk: ReplicaDisk) -> bool:
        """Whether a node may start. A static voter with an empty disk asks the others before."""
        voters = self.static_voters
        if voters is None or node_id not in voters.ids:
            disk.formatted = True
        if disk.formatted and not disk.is_new:
            return True
        assert voters is not None
        answers = {n: found for n in voters.ids if n != node_id and (found := self._asked(node_id, n))}
        if not disk.formatted:
            decision = first_start.decide(node_id, voters.ids, answers)
            if isinstance(decision, first_start.Wait):
                return False
            disk.formatted = True
            disk.may_vote = disk.is_new = decision.may_vote
            disk.state = disk.state._replace(leader_epoch=decision.epoch)
        if disk.is_new and first_start.may_start(node_id, voters.ids, answers) is not None:
            return False
        disk.is_new = False
        return True

    def _asked(self, asking: int, asked: int) -> first_start.FormatAnswer | None:
        """The node process answers also while it is not formatted. None: unreachable."""
        if asked in self.down or (asking, asked) in self.network.cut or (asked, asking) in self.network.cut:
            return None
        disk = self.disks[asked]
        replica = self.replicas.get(asked)
        epoch = disk.state.leader_epoch if replica is None else replica.node.epoch
        return first_start.FormatAnswer(disk.formatted, epoch)

    def crash(self, node_id: int, *, power: bool) -> None:
        """Kill a node; without power what was not flushed is torn."""
        self.down.add(node_id)
        replica = self.replicas.pop(node_id, None)
        if replica is None:
            return
        self.trace(node_id, "loses power" if power else "is killed")
        replica.die()
        disk = self.disks[node_id]
        disk.die(self.random, power=power)
        self.checker.crashed(node_id)
        for other in tuple(self.replicas.values()):
            self.after(1, partial(other.peer_died, node_id))

    def restart(self, node_id: int) -> None:
        self.down.discard(node_id)
        self.start(node_id)

    def ambush(self, node_id: int) -> int:
        """A node begins to write its state: if somebody waits for that, it loses power in the midst of it.

        How much longer the write would have taken.
        """
        if not self.ambushes:
            return 0
        self.ambushes -= 1
        self.after(6 + self.random.randrange(20), lambda: self.crash(node_id, power=True))
        self.after(40, lambda: self.restart(node_id))
        return 30

    def wipe(self, node_id: int) -> None:
        """An empty disk in a node that is down. With kraft.version 1 it is another replica from now on."""
        assert node_id in self.down
        self._directories += 1
        self.checker.wiped(node_id, self.disks[node_id])
        self.disks[node_id] = ReplicaDisk(UUID(int=1000 + self._directories))
        self.disks[node_id].wiped = True
        self.trace(node_id, "has a new disk")

    def next_content(self) -> int:
        self._contents += 1
        return self._contents

    # --- messages -------------------------------------------------------------------------------------

    def send(self, sender: SimReplica, send: Send) -> None:
        number = self.next_number()
        sender.pending[number] = send
        self.deliver_later(sender, number, send.to, send.request)

    def next_number(self) -> int:
        self._requests += 1
        return self._requests

    def deliver_later(self, sender: Sender, number: int, to: int, request: Request) -> None:
        if to < 0:
            to = FIRST_BOOTSTRAP_SERVER + 1 - to
        delay = self.network.delay_ms(sender.node_id, to)
        if delay is None:
            self.after(LOST_MS, lambda: sender.unanswered(number))
            return
        self.after(delay, lambda: self._deliver(sender, number, to, request))
        if self.network.is_doubled():
            self.after(delay + 3, lambda: self._deliver(sender, -number, to, request))

    def _deliver(self, sender: Sender, number: int, to: int, request: Request) -> None:
        receiver = self.replicas.get(to)
        if receiver is None:
            self.after(REFUSED_MS, lambda: sender.unanswered(number))
        else:
            receiver.received((sender, number), request)

    def answer(self, replica: SimReplica, token: Token, answer: AnswerBody) -> None:
        sender, number = token
        delay = self.network.delay_ms(replica.node_id, sender.node_id)
        if delay is None:
            self.after(LOST_MS, lambda: sender.unanswered(number))
        else:
            self.after(delay, lambda: sender.answered(number, answer))


def endpoint(node_id: int) -> VoterEndpoint:
    return VoterEndpoint("CONTROLLER", f"node{node_id}", 9093)
