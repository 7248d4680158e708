"""The state of one replica of the quorum, and the one function that changes its role.

The moves (moves.py, elections.py, leading.py, following.py, voter_changes.py) are functions over this state.
"""

from collections.abc import Callable
from uuid import UUID

from odradek.core.types import NO_LEADER, ZERO_UUID
from odradek.raft.ballot import Ballot
from odradek.raft.fetching import Fetching
from odradek.raft.gate import Gate
from odradek.raft.leadership import Leadership
from odradek.raft.log_state import LogState, LogView
from odradek.raft.quorum_state import NOT_VOTED, QuorumState
from odradek.raft.roles import TRANSITIONS, Role, Unattached
from odradek.raft.times import RaftTimes
from odradek.raft.voter_history import VoterHistory
from odradek.raft.voters import Endpoints, ReplicaKey, VoterSet

FIRST_BOOTSTRAP_SERVER = -2


class Replica:
    """`deadline_ms` is the role's own: the election timeout or the fetch timeout; None for a leader.

    counts          it is one of the voters that act: its vote and its log count
    is_voter        it stands for leader: it counts, or a record that may not be committed yet removes it.
                    Its log may be the longest one then, and the others cannot elect anybody without it.
    high_watermark  what is committed as far as this replica knows; never goes back
    auto_join       a controller that is no voter asks to become one
    may_vote        false after its disk was wiped, until it has caught up with a leader of `vote_floor`
    leadership      of a leader only; ballot of a prospective or candidate only
    """

    __slots__ = (
        "auto_join",
        "ballot",
        "bootstrap_servers",
        "counts",
        "deadline_ms",
        "draw",
        "endpoints",
        "failed",
        "fetching",
        "gate",
        "high_watermark",
        "history",
        "is_voter",
        "key",
        "leader_endpoints",
        "leadership",
        "log",
        "may_vote",
        "node_id",
        "resigning",
        "role",
        "stopping",
        "supported_kraft_versions",
        "times",
        "vote_floor",
        "voters",
    )

    def __init__(
        self,
        node_id: int,
        directory_id: UUID,
        state: QuorumState,
        log: LogView,
        history: VoterHistory,
        times: RaftTimes,
        draw: Callable[[int], int],
    ) -> None:
        self.node_id = node_id
        self.key = ReplicaKey(node_id, directory_id)
        self.log = LogState(log)
        self.history = history
        self.times = times
        self.draw = draw
        self.gate = Gate(state)
        self.role: Role = Unattached(state.leader_epoch)
        self.high_watermark = None if log.snapshot_id is None else log.snapshot_id.end_offset
        self.deadline_ms: int | None = None
        self.leader_endpoints: Endpoints = ()
        self.ballot: Ballot | None = None
        self.leadership: Leadership | None = None
        self.fetching = Fetching(0)
        # Voters that have not acknowledged that this replica resigned, and when to tell them again.
        self.resigning: dict[int, int | None] = {}
        self.endpoints: Endpoints = ()
        self.bootstrap_servers: tuple[int, ...] = ()
        self.supported_kraft_versions = (0, 1)
        self.auto_join = False
        self.may_vote = True
        self.vote_floor = 0
        self.stopping = False
        self.failed = False
        self.voters: VoterSet | None = None
        self.counts = self.is_voter = False
        self.voters_from_history()

    @property
    def epoch(self) -> int:
        return self.role.epoch

    @property
    def others(self) -> tuple[int, ...]:
        """The other voters."""
        voters = self.voters
        return () if voters is None else tuple(n for n in voters.ids if n != self.node_id)

    def voters_from_history(self) -> None:
        history = self.history
        self.voters = history.last.voters
        self.counts = self.voters is not None and self.voters.has(*self.key)
        uncommitted = history.last_offset >= (self.high_watermark or 0)
        self.is_voter = self.counts or (uncommitted and history.had_before(self.key))

    def endpoints_of(self, node_id: int) -> Endpoints:
        if node_id == self.role.leader_id and self.leader_endpoints:
            return self.leader_endpoints
        voter = None if self.voters is None else self.voters.get(node_id)
        return () if voter is None else voter.endpoints

    def voter_key(self, node_id: int) -> ReplicaKey | None:
        voter = None if self.voters is None else self.voters.get(node_id)
        return None if voter is None else voter.key

    def election_timeout_ms(self) -> int:
        base = self.times.election_timeout_ms
        return base + self.draw(base)

    def become(self, role: Role) -> None:
        """The only way into a role. What belonged to the role before is gone."""
        assert type(role) in TRANSITIONS[type(self.role)], f"{self.role} cannot become {role}"
        assert role.epoch >= self.role.epoch, f"{role} after {self.role}"
        assert self.leadership is None, "a leader answers those that wait before it goes"
        self.role = role
        self.ballot = None
        self.deadline_ms = None
        self.resigning = {}
        if self.fetching.download is not None:
            self.gate.drop_snapshot = True
        self.fetching = Fetching(0)
        self.gate.drop_sends()
        self.gate.role = role
        self.gate.touch()
        voted = role.voted
        self.gate.want(
            QuorumState(
                role.leader_id,
                role.epoch,
                NOT_VOTED if voted is None else voted.id,
                ZERO_UUID if voted is None else voted.directory_id,
            )
        )

    @property
    def has_leader(self) -> bool:
        return self.role.leader_id != NO_LEADER
