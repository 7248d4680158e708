"""The roles of a replica of the quorum, and the table that says which may follow which. Frozen facts only.

What changes while a role lasts (votes counted, offsets of followers, deadlines) is elsewhere: elections.py,
leading.py, following.py. `replica.py` is the only place that moves from one role to the next, and it checks
TRANSITIONS. docs/quorum.md draws the table (`make docs`).
"""

from typing import NamedTuple

from odradek.core.types import NO_LEADER
from odradek.raft.voters import ReplicaKey


class Unattached(NamedTuple):
    """A voter that knows an epoch and follows nobody. `leader_id` is a leader it lost sight of."""

    epoch: int
    leader_id: int = NO_LEADER
    voted: ReplicaKey | None = None


class Prospective(NamedTuple):
    """A voter that asks for pre-votes (KIP-996): would a majority elect it? Its epoch stays as it is."""

    epoch: int
    leader_id: int = NO_LEADER
    voted: ReplicaKey | None = None


class Candidate(NamedTuple):
    """A voter that asks for votes in a new epoch. It has voted for itself."""

    epoch: int
    voted: ReplicaKey

    @property
    def leader_id(self) -> int:
        return NO_LEADER


class Follower(NamedTuple):
    """A voter that fetches from the leader of its epoch."""

    epoch: int
    leader_id: int
    voted: ReplicaKey | None = None


class Leader(NamedTuple):
    """Leads an epoch that began at an offset. `granted` are the voters that elected it."""

    epoch: int
    leader_id: int
    epoch_start_offset: int
    granted: tuple[int, ...]
    voted: ReplicaKey | None = None


class Resigned(NamedTuple):
    """Led an epoch and gave it up; nothing more is appended in it. It grants no vote in this epoch."""

    epoch: int
    leader_id: int
    preferred_successors: tuple[ReplicaKey, ...] = ()
    voted: ReplicaKey | None = None


class Observer(NamedTuple):
    """Fetches from the leader and is not among the voters that it knows of.

    It never stands. It grants votes, since the voters that it does not know of yet may include it.
    Without a leader it asks around for one.
    """

    epoch: int
    leader_id: int = NO_LEADER
    voted: ReplicaKey | None = None


Role = Unattached | Prospective | Candidate | Follower | Leader | Resigned | Observer

TRANSITIONS: dict[type[Role], tuple[type[Role], ...]] = {
    # A higher epoch; a vote; the election timeout; a leader; the record that made it a voter is gone.
    Unattached: (Unattached, Prospective, Follower, Observer),
    # A higher epoch, or lost without a known leader; a majority of pre-votes; a leader, or lost and back to
    # the known one; a vote granted meanwhile; no voter after all.
    Prospective: (Unattached, Prospective, Candidate, Follower, Observer),
    # A higher epoch; lost or timed out; elected; another leader; no voter after all.
    Candidate: (Unattached, Prospective, Leader, Follower, Observer),
    # A higher epoch; the fetch timeout; a leader of a higher epoch; removed from the voters.
    Follower: (Unattached, Prospective, Follower, Observer),
    # A higher epoch; stopping, no majority heard from, or removed from the voters; a higher epoch's leader.
    Leader: (Unattached, Resigned, Follower),
    # A higher epoch, or the election timeout; a leader of a higher epoch; removed from the voters.
    Resigned: (Unattached, Follower, Observer),
    # A higher epoch or another leader; added to the voters.
    Observer: (Observer, Follower),
}
