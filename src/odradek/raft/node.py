"""One replica of the quorum as a pure machine: events in, effects out. No I/O, no clock, no randomness.

The driver carries effects out in their order, and reports what became of them as the next event. With
one voter the first event makes it leader; how several voters hear of each other is not written here yet,
so that without a majority of its own a replica stays unattached.

    Unattached -> Candidate -> Leader -> Resigned

Replication is pull-based (KIP-595): the leader counts where each voter's durable log ends, its own included.
"""

from typing import NamedTuple
from uuid import UUID

from odradek.core.types import NO_LEADER
from odradek.raft.quorum import committed_offset, has_majority
from odradek.raft.quorum_state import QuorumState
from odradek.raft.voters import VoterSet

# --- roles ----------------------------------------------------------------------------------------------


class Unattached(NamedTuple):
    """Knows an epoch and follows nobody."""

    epoch: int


class Candidate(NamedTuple):
    """Asks to lead an epoch."""

    epoch: int
    granted: tuple[int, ...]


class Leader(NamedTuple):
    """Leads an epoch that began at an offset; `ends` is where each voter's durable log ends."""

    epoch: int
    epoch_start_offset: int
    granted: tuple[int, ...]
    ends: dict[int, int]


class Resigned(NamedTuple):
    """Led an epoch and gave it up; nothing more is appended in it."""

    epoch: int


Role = Unattached | Candidate | Leader | Resigned

TRANSITIONS: dict[type[Role], tuple[type[Role], ...]] = {
    Unattached: (Candidate,),
    Candidate: (Leader, Unattached),
    Leader: (Resigned,),
    Resigned: (),
}

# --- events ---------------------------------------------------------------------------------------------


class Start(NamedTuple):
    """The replica has loaded its log."""


class Flushed(NamedTuple):
    """The local log is durable up to an offset."""

    end_offset: int


class Stop(NamedTuple):
    """The replica goes away, or its disk failed."""


Event = Start | Flushed | Stop

# --- effects --------------------------------------------------------------------------------------------


class Persist(NamedTuple):
    """Must be durable before anything that follows is told to anybody or counted."""

    state: QuorumState


class BeginEpoch(NamedTuple):
    """This replica leads: append the LeaderChange record that opens its epoch."""

    epoch: int
    granted: tuple[int, ...]


class AdvanceHighWatermark(NamedTuple):
    offset: int


Effect = Persist | BeginEpoch | AdvanceHighWatermark


class RaftNode:
    """`high_watermark` is known once the leader's own epoch has a committed record."""

    __slots__ = ("_log_end_offset", "directory_id", "high_watermark", "node_id", "role", "voters")

    def __init__(
        self, node_id: int, directory_id: UUID, voters: VoterSet, state: QuorumState, log_end_offset: int
    ) -> None:
        self.node_id = node_id
        self.directory_id = directory_id
        self.voters = voters
        self.high_watermark: int | None = None
        self.role: Role = Unattached(state.leader_epoch)
        self._log_end_offset = log_end_offset

    @property
    def epoch(self) -> int:
        return self.role.epoch

    @property
    def leader_id(self) -> int:
        return self.node_id if isinstance(self.role, Leader) else NO_LEADER

    def step(self, event: Event) -> list[Effect]:
        if isinstance(event, Start):
            return self._stand()
        if isinstance(event, Flushed):
            return self._flushed(event.end_offset)
        if isinstance(self.role, Leader):
            self._become(Resigned(self.role.epoch))
        return []

    def _become(self, role: Role) -> None:
        assert type(role) in TRANSITIONS[type(self.role)], f"{self.role} cannot become {role}"
        self.role = role

    def _stand(self) -> list[Effect]:
        """Stand for the next epoch. A replica that decides alone need not write its own vote down first."""
        if not self.voters.has(self.node_id, self.directory_id):
            return []
        granted = (self.node_id,)
        if not has_majority(self.voters.ids, granted):
            return []
        self._become(Candidate(self.role.epoch + 1, granted))
        return self._lead(self.role.epoch, granted)

    def _lead(self, epoch: int, granted: tuple[int, ...]) -> list[Effect]:
        self._become(Leader(epoch, self._log_end_offset, granted, {}))
        return [Persist(QuorumState(self.node_id, epoch)), BeginEpoch(epoch, granted)]

    def _flushed(self, end_offset: int) -> list[Effect]:
        if not isinstance(self.role, Leader):
            return []
        assert end_offset >= self.role.ends.get(self.node_id, 0), "a durable log does not shrink"
        self.role.ends[self.node_id] = end_offset
        return self._commit(self.role)

    def _commit(self, role: Leader) -> list[Effect]:
        """What a majority holds is committed, once that includes a record of this leader's own epoch."""
        offset = committed_offset(self.voters.ids, role.ends)
        if offset <= role.epoch_start_offset or offset <= (self.high_watermark or 0):
            return []
        self.high_watermark = offset
        return [AdvanceHighWatermark(offset)]
