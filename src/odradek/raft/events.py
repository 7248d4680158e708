"""Everything that goes into the machine (`RaftNode.step`). The driver makes them, one for each thing that
happened, in the order in which it happened; it reports completions late rather than early.
"""

from typing import NamedTuple

from odradek.raft.control import QuorumFacts
from odradek.raft.messages import AnswerBody, Request
from odradek.raft.snapshots import SnapshotId

# --- time -----------------------------------------------------------------------------------------------


class Start(NamedTuple):
    """The log is loaded and the network is there. The first event, once."""


class Tick(NamedTuple):
    """`next_deadline_ms` has passed, or may have.

    `stalled`: the own loop stood still for longer than it should (the timer fired late). Sockets were drained
    first; every deadline begins again and nothing is decided from silence.
    """

    stalled: bool = False


class Stop(NamedTuple):
    """The node goes away in order. A leader resigns and says so to the voters: go on stepping until
    `RaftNode.may_stop`, at most for the request timeout."""


class Failed(NamedTuple):
    """The disk failed for good. The replica votes, appends and acknowledges nothing more; no event but
    received requests, which it refuses, follows."""


# --- the log --------------------------------------------------------------------------------------------


class Propose(NamedTuple):
    """Append a batch of so many records. Only a leader takes it (`RaftNode.is_leader`): `Ready.appends` has
    it with its base offset and epoch, and `tag` unchanged."""

    records: int
    tag: object = None


class Appended(NamedTuple):
    """The page cache has everything up to here. Report it after each Ready that had appends."""

    end_offset: int


class AppendFailed(NamedTuple):
    """Nothing of the append at this offset was written (no descriptor, no memory), nor of those after it.

    The machine forgets them; a leader's proposals are lost, a follower fetches again.
    """

    base_offset: int


class Flushed(NamedTuple):
    """The log is durable up to here, truncations included."""

    end_offset: int


class Persisted(NamedTuple):
    """The quorum state of the last `Ready.persist` is durable."""


class LogStartAdvanced(NamedTuple):
    """Records before this offset are gone; a snapshot covers them."""

    offset: int


# --- snapshots ------------------------------------------------------------------------------------------


class SnapshotTaken(NamedTuple):
    """A snapshot of committed records was written here and is durable."""

    snapshot_id: SnapshotId


class SnapshotFetched(NamedTuple):
    """The snapshot that `Ready.finish_snapshot` named is whole, checked and durable; `facts` is what it says
    of the quorum."""

    snapshot_id: SnapshotId
    facts: QuorumFacts


class SnapshotRejected(NamedTuple):
    """The fetched bytes were no snapshot, or could not be stored. They are dropped; it is fetched again."""

    snapshot_id: SnapshotId


# --- the network ----------------------------------------------------------------------------------------


class Received(NamedTuple):
    """A peer's request. Its answer comes out of this step or a later one, in `Ready.answers` with `token`."""

    token: object
    request: Request


class Answered(NamedTuple):
    """The answer of a peer to a request from `Ready.sends`; `to` and `request` are the very ones from there:
    a request is known by its identity."""

    to: int
    request: Request
    answer: AnswerBody


class Unanswered(NamedTuple):
    """No answer to a request: the request timeout passed, the connection broke, or the answer was unusable.
    Exactly one Answered or Unanswered follows each Send."""

    to: int
    request: Request


class Abandoned(NamedTuple):
    """The connection that a request came from is gone: an answer under this token has no reader."""

    token: object


class ConnectionLost(NamedTuple):
    """The connection to a node broke. News, never proof."""

    node_id: int


class DialRefused(NamedTuple):
    """A node's address refused a connection: no process listens there. Anything else is not reported."""

    node_id: int


# --- the controller -------------------------------------------------------------------------------------


class UpgradeKRaftVersion(NamedTuple):
    """Raise kraft.version (UpdateFeatures). Answered under `token` once that is committed."""

    token: object
    level: int
    validate_only: bool = False


Event = (
    Start
    | Tick
    | Stop
    | Failed
    | Propose
    | Appended
    | AppendFailed
    | Flushed
    | Persisted
    | LogStartAdvanced
    | SnapshotTaken
    | SnapshotFetched
    | SnapshotRejected
    | Received
    | Answered
    | Unanswered
    | Abandoned
    | ConnectionLost
    | DialRefused
    | UpgradeKRaftVersion
)
