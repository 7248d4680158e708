"""What replicas of the quorum say to each other, without versions and bytes. Layouts are wire_messages.py's.

A request is made by one machine (`Ready.sends`) and stepped into another (`Received`); the answer comes back
the same way (`Ready.answers`, `Answered`). The translation to the wire checks the cluster id, the topic
and the partition: INCONSISTENT_CLUSTER_ID and INVALID_REQUEST at the top level never reach the machine.
Every answer carries the leader that its sender knows: `leader_id` (NO_LEADER), `leader_epoch`, `endpoints`.
"""

from typing import NamedTuple

from odradek.core.errors import ErrorCode
from odradek.core.types import NO_LEADER
from odradek.raft.quorum_records import QuorumRecord
from odradek.raft.snapshots import SnapshotId
from odradek.raft.voters import Endpoints, ReplicaKey

NO_HIGH_WATERMARK = -1


class BatchInfo(NamedTuple):
    """A batch as the machine sees it: offsets, epoch, and what control records in it say of the quorum.

    `data` is the driver's: the bytes, or what stands for them. The machine hands it on and never looks.
    """

    base_offset: int
    end_offset: int
    epoch: int
    quorum_records: tuple[QuorumRecord, ...] = ()
    data: object = None


class EpochEnd(NamedTuple):
    """An epoch, and where it ends in a log."""

    epoch: int
    end_offset: int


# --- requests -------------------------------------------------------------------------------------------


class VoteRequest(NamedTuple):
    """Grant me this epoch (or, as a pre-vote, would you)? `voter` is the replica that is asked.

    `voter` is None in version 0, and where the sender knows no id for it. `last_offset` is the end of the
    candidate's log, `last_epoch` the epoch of its last record.
    """

    epoch: int
    candidate: ReplicaKey
    voter: ReplicaKey | None
    last_epoch: int
    last_offset: int
    pre_vote: bool


class BeginQuorumEpochRequest(NamedTuple):
    """I lead this epoch. Sent to voters that do not fetch."""

    leader_id: int
    leader_epoch: int
    voter: ReplicaKey | None
    endpoints: Endpoints = ()


class EndQuorumEpochRequest(NamedTuple):
    """I led this epoch and resign. The first of the preferred successors should stand first."""

    leader_id: int
    leader_epoch: int
    preferred_successors: tuple[ReplicaKey, ...]
    endpoints: Endpoints = ()


class FetchRequest(NamedTuple):
    """My log is durable up to `fetch_offset`, its last record is of `last_fetched_epoch`: what follows?

    Version 16 and below carry no directory, version 17 and below no high watermark: then it is
    NO_HIGH_WATERMARK, and `waits_for_high_watermark` is false.
    """

    replica: ReplicaKey
    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    max_wait_ms: int
    high_watermark: int = NO_HIGH_WATERMARK
    waits_for_high_watermark: bool = False


class FetchSnapshotRequest(NamedTuple):
    """The bytes of a snapshot from a position on."""

    replica: ReplicaKey
    leader_epoch: int
    snapshot_id: SnapshotId
    position: int


class AddVoterRequest(NamedTuple):
    """From an operator, or from a replica that joins by itself. `timeout_ms` bounds the whole change."""

    voter: ReplicaKey
    endpoints: Endpoints
    timeout_ms: int
    ack_when_committed: bool = True


class RemoveVoterRequest(NamedTuple):
    """From an operator, or from a replica that leaves."""

    voter: ReplicaKey


class UpdateVoterRequest(NamedTuple):
    """A voter says where it listens and which kraft.versions it supports."""

    leader_epoch: int
    voter: ReplicaKey
    endpoints: Endpoints
    min_kraft_version: int
    max_kraft_version: int


class SupportedVersionsRequest(NamedTuple):
    """ApiVersions to a replica that shall become a voter: which kraft.versions does it support?"""


Request = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | FetchRequest
    | FetchSnapshotRequest
    | AddVoterRequest
    | RemoveVoterRequest
    | UpdateVoterRequest
    | SupportedVersionsRequest
)

# --- answers --------------------------------------------------------------------------------------------


class VoteAnswer(NamedTuple):
    error: ErrorCode
    leader_id: int
    leader_epoch: int
    granted: bool
    endpoints: Endpoints = ()


class EpochAnswer(NamedTuple):
    """To BeginQuorumEpoch and EndQuorumEpoch."""

    error: ErrorCode
    leader_id: int
    leader_epoch: int
    endpoints: Endpoints = ()


class FetchAnswer(NamedTuple):
    """Records, or where the logs diverge, or the snapshot to fetch first.

    From the machine `read_offset` and `read_end` name what the driver reads from its log: whole batches from
    `read_offset` on, as many as fit, none that ends beyond `read_end`. Equal: no records. To the machine
    `batches` are the records that came.
    """

    error: ErrorCode
    leader_id: int
    leader_epoch: int
    high_watermark: int = NO_HIGH_WATERMARK
    log_start_offset: int = -1
    diverging: EpochEnd | None = None
    snapshot_id: SnapshotId | None = None
    read_offset: int = 0
    read_end: int = 0
    batches: tuple[BatchInfo, ...] = ()
    endpoints: Endpoints = ()


class FetchSnapshotAnswer(NamedTuple):
    """A piece of a snapshot of `size` bytes. From the machine size and length are 0: the driver fills both
    and the bytes in, or answers POSITION_OUT_OF_RANGE where the position is not below the size. `data` is the
    driver's: the machine never looks at it."""

    error: ErrorCode
    leader_id: int
    leader_epoch: int
    snapshot_id: SnapshotId
    size: int = 0
    position: int = 0
    length: int = 0
    endpoints: Endpoints = ()
    data: bytes = b""


class VoterChangeAnswer(NamedTuple):
    """To AddVoter, RemoveVoter, UpdateVoter and to an upgrade of kraft.version."""

    error: ErrorCode
    message: str | None = None
    leader_id: int = NO_LEADER
    leader_epoch: int = -1
    endpoints: Endpoints = ()


class SupportedVersionsAnswer(NamedTuple):
    """The range of kraft.version that ApiVersions named; 0-0 where it named none."""

    error: ErrorCode
    min_kraft_version: int
    max_kraft_version: int


AnswerBody = (
    VoteAnswer | EpochAnswer | FetchAnswer | FetchSnapshotAnswer | VoterChangeAnswer | SupportedVersionsAnswer
)
