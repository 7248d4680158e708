"""What comes out of the machine: one `Ready` for each step. The driver carries it out, the machine decides.

The order is that of the fields, and it is the only rule the driver has to keep:

1. `persist`        begin to write the quorum state; `Persisted` when it is durable. One write at a time: the
                    machine asks for the next one only after that.
2. `truncate`       cut the log back to this offset, or `reset`: drop all of it and begin at the snapshot.
3. `appends`        in their order, then step `Appended`. Flush soon, and step `Flushed`.
4. `sends`          requests; each is followed by `Answered` or `Unanswered`, once.
5. `answers`        to requests that were received.
6. the rest         news for the driver and for those above it.

Whatever rests on a write that is not durable yet is not in here: the gate (gate.py) holds it back and a later
step brings it. So the driver may send at once what it finds, and a completion reported late only delays.
If an append fails, step `AppendFailed` or `Failed` and leave the rest of this Ready undone except 5.
"""

from typing import NamedTuple

from odradek.raft.messages import AnswerBody, BatchInfo, Request
from odradek.raft.quorum_records import QuorumRecord
from odradek.raft.quorum_state import QuorumState
from odradek.raft.roles import Role
from odradek.raft.snapshots import SnapshotId
from odradek.raft.voters import Endpoints


class Append(NamedTuple):
    """One batch for the own log. Exactly one of three kinds:

    proposed    `records` records of the proposal `tag`
    control     `control`: encode them as one control batch (control.py)
    fetched     `batch`: as it came from the leader, bytes in `batch.data`
    """

    base_offset: int
    epoch: int
    records: int
    tag: object = None
    control: tuple[QuorumRecord, ...] = ()
    batch: BatchInfo | None = None


class Send(NamedTuple):
    """A request to a node. `to` is a node id, or below -1 a bootstrap server: -2 is the first one configured.

    `endpoints` is where the machine knows the node to listen; empty for bootstrap servers.
    """

    to: int
    request: Request
    endpoints: Endpoints = ()


class Answer(NamedTuple):
    """What to answer to a request that was `Received` under a token."""

    token: object
    answer: AnswerBody


class Ready(NamedTuple):
    """See the head of this file for the order. A field that is None or empty asks for nothing.

    reset               with a fetched snapshot: the log begins at its end offset; it is flushed when done
    high_watermark      moved to; committed up to here
    role                changed to: claim or resign the controller, fail what waits
    begin_snapshot      open an empty file for this snapshot, dropping any other unfinished one
    finish_snapshot     all bytes came: check them, make them durable; SnapshotFetched or SnapshotRejected
    drop_snapshot       the unfinished file is of no use any more
    may_vote            a wiped voter has caught up: make durable that it votes again
    """

    persist: QuorumState | None = None
    truncate: int | None = None
    reset: SnapshotId | None = None
    appends: tuple[Append, ...] = ()
    sends: tuple[Send, ...] = ()
    answers: tuple[Answer, ...] = ()
    high_watermark: int | None = None
    role: Role | None = None
    begin_snapshot: SnapshotId | None = None
    finish_snapshot: SnapshotId | None = None
    drop_snapshot: bool = False
    may_vote: bool = False


NOTHING = Ready()
