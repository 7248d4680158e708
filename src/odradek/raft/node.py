"""One replica of the quorum as a pure machine: events in, one `Ready` out. No I/O, no clock, no randomness.

    step(event, now) ─ the event's handler ─ pump: what to send now ─ gate: what may leave now ─> Ready

This file dispatches. Roles and their table are in roles.py, votes in elections.py, the leader's work in
leading.py, the follower's in following.py, changes of voters in voter_changes.py and joining.py, the rest in
handlers.py and deadlines.py. Replication is pull-based (KIP-595): a fetch offset says how far a
follower's log is durable.
"""

from collections.abc import Callable
from uuid import UUID

from odradek.core.types import NO_LEADER
from odradek.raft import events as e
from odradek.raft import starting, voter_changes
from odradek.raft.deadlines import PUMPS, next_deadline_ms
from odradek.raft.handlers import HANDLERS
from odradek.raft.leadership import ReplicaState
from odradek.raft.log_state import LogView
from odradek.raft.quorum_state import QuorumState
from odradek.raft.ready import Ready
from odradek.raft.replica import FIRST_BOOTSTRAP_SERVER, Replica
from odradek.raft.roles import Resigned, Role
from odradek.raft.times import RaftTimes
from odradek.raft.voter_history import VoterHistory
from odradek.raft.voters import Endpoints, VoterSet


class RaftNode:
    """Make it from what the disk says, step Start, then everything that happens.

    state               the quorum-state file; QuorumState() where there is none
    log, history        the log as it was found, and the voters that it, a snapshot or the configuration names
    draw                draw(n) gives a random number from 0 to n - 1
    endpoints           where this replica listens, to tell the others
    bootstrap_servers   how many there are besides the voters; they are addressed as -2, -3, ...
    may_vote            false for a voter whose disk was wiped: `state` then has the highest epoch that any
                        other voter knows; it votes again when `Ready.may_vote` says so
    auto_join           a controller that asks to become a voter while it is none
    """

    __slots__ = ("_r",)

    def __init__(
        self,
        node_id: int,
        directory_id: UUID,
        *,
        state: QuorumState,
        log: LogView,
        history: VoterHistory,
        times: RaftTimes,
        draw: Callable[[int], int],
        endpoints: Endpoints = (),
        bootstrap_servers: int = 0,
        supported_kraft_versions: tuple[int, int] = (0, 1),
        may_vote: bool = True,
        auto_join: bool = False,
    ) -> None:
        r = self._r = Replica(node_id, directory_id, state, log, history, times, draw)
        r.endpoints = endpoints
        r.bootstrap_servers = tuple(FIRST_BOOTSTRAP_SERVER - i for i in range(bootstrap_servers))
        r.supported_kraft_versions = supported_kraft_versions
        r.may_vote = may_vote
        r.auto_join = auto_join
        r.vote_floor = 0 if may_vote else state.leader_epoch
        r.role = starting.initial_role(r, state)

    def step(self, event: e.Event, now_ms: int) -> Ready:
        r = self._r
        if r.failed and not isinstance(event, e.Received | e.Persisted):
            return r.gate.take()
        HANDLERS[type(event)](r, event, now_ms)
        lead = r.leadership
        if lead is not None:
            voter_changes.progress(r, lead, now_ms)
        if not r.failed:
            PUMPS[type(r.role)](r, now_ms)
        return r.gate.take()

    # --- how it stands --------------------------------------------------------------------------------

    @property
    def node_id(self) -> int:
        return self._r.node_id

    @property
    def directory_id(self) -> UUID:
        return self._r.key.directory_id

    @property
    def role(self) -> Role:
        return self._r.role

    @property
    def epoch(self) -> int:
        return self._r.role.epoch

    @property
    def is_leader(self) -> bool:
        return self._r.leadership is not None

    @property
    def leader_id(self) -> int:
        """NO_LEADER also after the own leadership ended."""
        role = self._r.role
        return NO_LEADER if isinstance(role, Resigned) else role.leader_id

    @property
    def endpoints(self) -> Endpoints:
        """Where this replica listens, as it tells the others."""
        return self._r.endpoints

    @property
    def leader_endpoints(self) -> Endpoints:
        return self._r.endpoints_of(self._r.role.leader_id)

    @property
    def high_watermark(self) -> int | None:
        return self._r.high_watermark

    @property
    def log_end_offset(self) -> int:
        return self._r.log.end_offset

    @property
    def log_end_epoch(self) -> int:
        return self._r.log.epochs.last

    @property
    def flushed_offset(self) -> int:
        return self._r.log.flushed_offset

    @property
    def voters(self) -> VoterSet | None:
        return self._r.voters

    @property
    def kraft_version(self) -> int:
        return self._r.history.last.kraft_version

    @property
    def history(self) -> VoterHistory:
        """To read: what a snapshot at an offset says of the quorum."""
        return self._r.history

    @property
    def may_vote(self) -> bool:
        return self._r.may_vote

    @property
    def may_stop(self) -> bool:
        """After Stop: everybody who should know has heard of it."""
        return not self._r.resigning

    @property
    def next_deadline_ms(self) -> int | None:
        return next_deadline_ms(self._r)

    def replicas(self) -> tuple[list[ReplicaState], list[ReplicaState]]:
        """Of a leader: its voters and its observers, as their last fetches said. Its own line is the log."""
        lead = self._r.leadership
        return ([], []) if lead is None else (list(lead.voters.values()), list(lead.observers.values()))
