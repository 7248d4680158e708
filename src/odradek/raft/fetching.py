"""How far a replica is with fetching from its leader, or with finding one. State only; following.py acts."""

from odradek.raft.messages import NO_HIGH_WATERMARK, FetchRequest, FetchSnapshotRequest
from odradek.raft.snapshots import SnapshotId


class Download:
    """A snapshot of which the first `position` bytes came. `finished`: all came, the driver checks them."""

    __slots__ = ("finished", "position", "snapshot_id")

    def __init__(self, snapshot_id: SnapshotId) -> None:
        self.snapshot_id = snapshot_id
        self.position = 0
        self.finished = False


class Fetching:
    """One request at a time.

    has_fetched         a fetch of this leader succeeded: pre-votes are denied until the fetch timeout
    ask_around          the leader did not answer: ask another node whether it still leads
    retry_ms            not before
    leader_high_watermark   as the last answer said; applies as far as the own log is durable
    connection_lost     the connection to the leader broke since the last answer
    leader_gone         and its address refused the next one
    """

    __slots__ = (
        "ask_around",
        "asked",
        "connection_lost",
        "download",
        "has_fetched",
        "in_flight",
        "leader_gone",
        "leader_high_watermark",
        "retry_ms",
        "update_voter_ms",
        "updated_leader",
    )

    def __init__(self, update_voter_ms: int) -> None:
        self.in_flight: FetchRequest | FetchSnapshotRequest | None = None
        self.has_fetched = False
        self.ask_around = False
        self.asked = 0
        self.retry_ms = 0
        self.leader_high_watermark = NO_HIGH_WATERMARK
        self.download: Download | None = None
        self.connection_lost = False
        self.leader_gone = False
        self.update_voter_ms = update_voter_ms
        self.updated_leader = False
