"""What must hold after every step of a simulated quorum. Every rule has a name, which begins a violation."""

from typing import TYPE_CHECKING

from odradek.raft.messages import (
    AnswerBody,
    FetchRequest,
    FetchSnapshotRequest,
    Request,
    VoteAnswer,
    VoteRequest,
)
from odradek.raft.quorum import majority
from odradek.raft.quorum_state import NOT_VOTED
from odradek.raft.ready import Send
from odradek.raft.roles import Leader, Resigned, Role
from odradek.raft.voters import ReplicaKey, VoterSet
from odradek.sim.quorum.disk import ReplicaDisk, StoredSnapshot

if TYPE_CHECKING:
    from odradek.sim.quorum.driver import SimReplica
    from odradek.sim.quorum.world import QuorumWorld

ONE_LEADER = "one leader for each epoch"
ONE_VOTE = "one vote in each epoch"
DURABLE_VOTE = "a vote is durable before it leaves"
EQUAL_PREFIXES = "committed prefixes are equal"
OWN_EPOCH = "a leader commits with a record of its own epoch"
NEVER_LOST = "a committed record is never lost"
ACKNOWLEDGED = "what was acknowledged is durable"
WIPED = "a wiped voter votes with what it had"
QUORUM_HEARD = "a leader that no majority hears resigns"
LIVENESS = "a healed quorum commits"
ASSERTION = "the machine's own assertions hold"


class Violation(Exception):
    """A rule was broken; the text begins with its name."""


class Counters:
    """What happened at all: a run that never did these proves little."""

    __slots__ = ("commits", "deposed", "elected", "resigned", "snapshots", "truncated", "voters_changed")

    def __init__(self) -> None:
        self.commits = self.deposed = self.elected = self.resigned = 0
        self.snapshots = self.truncated = self.voters_changed = 0

    def add(self, other: "Counters") -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Checker:
    """`committed` has, for each end of a batch that any node took for committed, the chain up to it."""

    def __init__(self, world: "QuorumWorld") -> None:
        self._world = world
        self.counters = Counters()
        self.committed: dict[int, int] = {0: 0}
        self.committed_end = 0
        self._leaders: dict[int, SimReplica] = {}
        self._votes: dict[tuple[int, int], ReplicaKey] = {}
        self._high_watermarks: dict[SimReplica, int] = {}
        self._acknowledged: dict[int, int] = {}
        self._leading: dict[int, SimReplica] = {}
        # For each leader, when each voter was last heard by it.
        self._heard: dict[SimReplica, dict[int, int]] = {}
        self._voters: dict[SimReplica, VoterSet] = {}
        # Of nodes that lost a disk: its epoch, and how far it had what was committed.
        self._wiped: dict[int, tuple[int, int]] = {}

    def fail(self, rule: str, text: str) -> None:
        raise Violation(f"{rule}: {text}")

    # --- leaders --------------------------------------------------------------------------------------

    def role_changed(self, replica: "SimReplica", role: Role) -> None:
        self._world.trace(replica.node_id, f"becomes {role}")
        if not isinstance(role, Leader):
            self.counters.resigned += isinstance(role, Resigned)
            if self._leading.pop(replica.node_id, None) is not None:
                self.counters.deposed += 1
            return
        self.counters.elected += 1
        self._world.on_leader(replica)
        self._leading[replica.node_id] = replica
        self._heard[replica] = {}
        replica.excused_ms = self._world.now_ms
        known = self._leaders.setdefault(role.epoch, replica)
        if known is not replica:
            self.fail(ONE_LEADER, f"epoch {role.epoch} is led by {known.node_id} and by {replica.node_id}")
        self._has_committed(replica)

    def _has_committed(self, replica: "SimReplica") -> None:
        """A leader is elected with everything that is committed."""
        if not self._has(replica, self.committed_end):
            text = f"node {replica.node_id} leads without the records before {self.committed_end}"
            self.fail(NEVER_LOST, text)

    def _has(self, replica: "SimReplica", end: int) -> bool:
        disk = replica.disk
        return end < disk.start or disk.chain_at(end) == self.committed[end]

    def crashed(self, node_id: int) -> None:
        self._leading.pop(node_id, None)
        acknowledged, end = self._acknowledged.get(node_id, 0), self._world.disks[node_id].end
        if end < acknowledged:
            self.fail(ACKNOWLEDGED, f"node {node_id} fetched from {acknowledged} and has {end} after a crash")

    def wiped(self, node_id: int, old: ReplicaDisk) -> None:
        """What the disk had may have been counted: records that are committed, a vote for another node. The
        own vote of a candidate is gone with the candidate."""
        self._acknowledged.pop(node_id, None)
        epoch, end = self._wiped.get(node_id, (0, 0))
        state = old.state
        if state.voted_id not in (NOT_VOTED, node_id):
            epoch = max(epoch, state.leader_epoch)
        for vote in [vote for vote in self._votes if vote[0] == node_id]:
            if self._votes[vote].id == node_id:
                del self._votes[vote]
        held = next((e for e in reversed(old.ends) if old.chain_at(e) == self.committed.get(e)), old.start)
        self._wiped[node_id] = (epoch, max(end, held))

    # --- messages -------------------------------------------------------------------------------------

    def sends(self, replica: "SimReplica", send: Send) -> None:
        request = send.request
        if isinstance(request, FetchRequest):
            if request.fetch_offset > replica.disk.flushed:
                text = f"node {replica.node_id} fetches from {request.fetch_offset}, durable to "
                self.fail(ACKNOWLEDGED, f"{text}{replica.disk.flushed}")
            self._acknowledged[replica.node_id] = request.fetch_offset
        elif isinstance(request, VoteRequest) and not request.pre_vote:
            self._voted(replica, request)

    def answers(self, replica: "SimReplica", request: Request, answer: AnswerBody) -> None:
        if isinstance(answer, VoteAnswer) and answer.granted:
            assert isinstance(request, VoteRequest)
            if not request.pre_vote:
                self._voted(replica, request)

    def receives(self, replica: "SimReplica", request: Request) -> None:
        if isinstance(request, FetchRequest | FetchSnapshotRequest):
            heard = self._heard.get(replica)
            if heard is not None:
                heard[request.replica.id] = self._world.now_ms

    def check_quorums(self) -> None:
        """Every now and then: who leads has been heard by a majority lately."""
        world = self._world
        patience_ms = 2 * world.times.check_quorum_ms
        for replica in self._leading.values():
            voters, heard = replica.node.voters, self._heard[replica]
            assert voters is not None
            if self._voters.get(replica) is not voters:
                self._voters[replica] = voters
                replica.excused_ms = world.now_ms
            since_ms = max(replica.excused_ms, world.now_ms - patience_ms)
            lately = sum(heard.get(n, -1) >= since_ms for n in voters.ids if n != replica.node_id)
            needed = majority(len(voters.ids)) - (replica.node_id in voters.ids)
            if lately < needed and replica.excused_ms < world.now_ms - patience_ms:
                self.fail(
                    QUORUM_HEARD, f"node {replica.node_id} led on for {patience_ms} ms, heard by {lately}"
                )

    def _voted(self, replica: "SimReplica", request: VoteRequest) -> None:
        """A vote may be confirmed later, in its epoch; by then the replica may have written a newer one."""
        node_id, epoch, candidate = replica.node_id, request.epoch, request.candidate
        known = self._votes.setdefault((node_id, epoch), candidate)
        if known != candidate:
            self.fail(ONE_VOTE, f"node {node_id} voted for {known} and {candidate} in epoch {epoch}")
        wiped_epoch, wiped_end = self._wiped.get(node_id, (0, 0))
        lacks = epoch <= wiped_epoch or not self._has(replica, wiped_end)
        if self._world.static_voters is not None and lacks:
            text = f"node {node_id} votes in {epoch} with {replica.disk.end} records; it lost a vote in "
            self.fail(WIPED, f"{text}{wiped_epoch} and {wiped_end} records")
        state = replica.disk.state
        if state.leader_epoch < epoch or (state.leader_epoch == epoch and state.voted_id != candidate.id):
            self.fail(DURABLE_VOTE, f"node {node_id} votes for {candidate} in epoch {epoch}, has {state}")

    # --- the log --------------------------------------------------------------------------------------

    def commits(self, replica: "SimReplica", offset: int) -> None:
        """Every batch that became committed here is the one that is committed elsewhere."""
        disk, known = replica.disk, self.committed
        role = replica.node.role
        if isinstance(role, Leader) and disk.epoch_before(offset) != role.epoch:
            self.fail(OWN_EPOCH, f"node {replica.node_id} commits {offset} in epoch {role.epoch}")
        before = self._high_watermarks.get(replica, 0)
        self._high_watermarks[replica] = offset
        index = len(disk.ends) - 1
        while index >= 0 and disk.ends[index] > before:
            end = disk.ends[index]
            if end <= offset:
                chain = known.get(end)
                if chain is None:
                    if end < self.committed_end:
                        self.fail(EQUAL_PREFIXES, f"node {replica.node_id} has a batch that ends at {end}")
                    known[end] = disk.chains[index]
                elif chain != disk.chains[index]:
                    self.fail(EQUAL_PREFIXES, f"node {replica.node_id} differs before {end}")
            index -= 1
        if offset > self.committed_end:
            self.committed_end = offset
            self.counters.commits += 1

    def truncates(self, replica: "SimReplica", end_offset: int) -> None:
        self.counters.truncated += 1
        self._world.trace(replica.node_id, f"truncates {replica.disk.end} to {end_offset}")
        disk, end = replica.disk, min(self.committed_end, replica.disk.end)
        if end_offset < end and disk.chain_at(end) == self.committed.get(end):
            self.fail(NEVER_LOST, f"node {replica.node_id} cuts committed records off at {end_offset}")
        if self._acknowledged.get(replica.node_id, 0) > end_offset:
            self._acknowledged[replica.node_id] = end_offset

    def resets(self, replica: "SimReplica", stored: StoredSnapshot) -> None:
        self.counters.snapshots += 1
        end = stored.snapshot_id.end_offset
        self._world.trace(replica.node_id, f"takes {stored.snapshot_id}")
        if self.committed.get(end) != stored.chain:
            self.fail(
                EQUAL_PREFIXES, f"node {replica.node_id} took a snapshot that is not what is before {end}"
            )
        self._high_watermarks[replica] = end
