"""What a leader knows of its replicas and owes to those that wait. State; leading.py acts."""

from typing import NamedTuple

from odradek.raft.messages import FetchRequest
from odradek.raft.voters import Endpoints, ReplicaKey, Voter

NEVER_MS = -1
OBSERVER_SESSION_MS = 300_000
CAUGHT_UP_MS = 3_600_000


class ReplicaState:
    """Where a replica's durable log ends, as its last valid fetch said, and when that was."""

    __slots__ = ("end_offset", "key", "last_caught_up_ms", "last_fetch_leader_end", "last_fetch_ms")

    def __init__(self, key: ReplicaKey) -> None:
        self.key = key
        self.end_offset = -1
        self.last_fetch_ms = NEVER_MS
        self.last_caught_up_ms = NEVER_MS
        self.last_fetch_leader_end = -1

    def fetched(self, offset: int, leader_end: int, now_ms: int) -> None:
        """Caught up: it reached the leader's end, or where that was at its last fetch."""
        if offset >= leader_end:
            self.last_caught_up_ms = now_ms
        elif self.last_fetch_leader_end > 0 and offset >= self.last_fetch_leader_end:
            self.last_caught_up_ms = max(self.last_fetch_ms, self.last_caught_up_ms)
        self.end_offset = offset
        self.last_fetch_ms = now_ms
        self.last_fetch_leader_end = leader_end


class Parked(NamedTuple):
    """A fetch that waits for records or for the high watermark."""

    request: FetchRequest
    deadline_ms: int


class VoterChange:
    """The change of voters that is under way: one at a time.

    `end_offset` is where its record ends in the log, once appended; committed there, it is done.
    """

    __slots__ = ("ack_when_committed", "deadline_ms", "end_offset", "endpoints", "token", "voter")

    def __init__(
        self,
        token: object,
        deadline_ms: int,
        voter: ReplicaKey | None = None,
        endpoints: Endpoints = (),
        ack_when_committed: bool = True,
    ) -> None:
        self.token = token
        self.deadline_ms = deadline_ms
        self.voter = voter
        self.endpoints = endpoints
        self.ack_when_committed = ack_when_committed
        self.end_offset: int | None = None


class Leadership:
    """Of one epoch. `high_watermark` is unknown until a record of the epoch is committed."""

    __slots__ = (
        "announcing",
        "begin_ms",
        "change",
        "check_quorum_ms",
        "fetched",
        "high_watermark",
        "observers",
        "parked",
        "volatile",
        "voters",
    )

    def __init__(self, check_quorum_ms: int) -> None:
        self.high_watermark: int | None = None
        self.voters: dict[int, ReplicaState] = {}
        self.observers: dict[ReplicaKey, ReplicaState] = {}
        self.parked: dict[object, Parked] = {}
        self.fetched: dict[int, None] = {}
        self.check_quorum_ms = check_quorum_ms
        self.begin_ms = 0
        # Voters to which a BeginQuorumEpoch is under way.
        self.announcing: dict[int, None] = {}
        self.change: VoterChange | None = None
        # What voters said of themselves while kraft.version is 0 and nothing of it is recorded.
        self.volatile: dict[int, Voter] = {}

    def forget_silent_observers(self, now_ms: int) -> None:
        """Observers that have not fetched for long are gone; others would pile up with every new broker."""
        oldest_ms = now_ms - OBSERVER_SESSION_MS
        self.observers = {k: state for k, state in self.observers.items() if state.last_fetch_ms > oldest_ms}
