"""The disk of one simulated replica: what survives a crash, and what does not. Offsets and content ids."""

from bisect import bisect_left
from random import Random
from typing import NamedTuple
from uuid import UUID

from odradek.raft.control import QuorumFacts
from odradek.raft.log_state import LogView, begins_again
from odradek.raft.messages import BatchInfo
from odradek.raft.quorum_state import QuorumState
from odradek.raft.snapshots import SnapshotId
from odradek.raft.voter_history import VoterHistory
from odradek.raft.voters import VoterSet

SNAPSHOT_BYTES = 3


class StoredSnapshot(NamedTuple):
    """`chain` stands for everything it holds: equal chains, equal records."""

    snapshot_id: SnapshotId
    chain: int
    facts: QuorumFacts


def chain_after(chain: int, batch: BatchInfo) -> int:
    """The chain of a log that goes on with this batch: offsets, epoch and content of all batches so far."""
    return hash((chain, batch.base_offset, batch.end_offset, batch.epoch, batch.data))


class ReplicaDisk:
    """A log of batches, snapshots and a quorum state. Without `formatted` there is nothing on it.

    `ends[i]` and `chains[i]` are of `batches[i]`.
    """

    __slots__ = (
        "batches",
        "chains",
        "directory_id",
        "ends",
        "flushed",
        "formatted",
        "is_new",
        "may_vote",
        "snapshots",
        "start",
        "start_chain",
        "start_epoch",
        "state",
        "wiped",
        "writing",
    )

    def __init__(self, directory_id: UUID) -> None:
        self.directory_id = directory_id
        self.formatted = False
        # Formatted by itself as part of a new quorum, and not yet started.
        self.is_new = False
        # Whether another one was here before, with records and votes that are gone.
        self.wiped = False
        self.may_vote = True
        self.state = QuorumState()
        self.writing: QuorumState | None = None
        self.snapshots: list[StoredSnapshot] = []
        self.batches: list[BatchInfo] = []
        self.ends: list[int] = []
        self.chains: list[int] = []
        self.start = self.start_chain = self.start_epoch = self.flushed = 0

    # --- the log --------------------------------------------------------------------------------------

    @property
    def end(self) -> int:
        return self.ends[-1] if self.ends else self.start

    def append(self, batch: BatchInfo) -> None:
        assert batch.base_offset == self.end, f"{batch} after {self.end}"
        self.batches.append(batch)
        self.chains.append(chain_after(self.chains[-1] if self.chains else self.start_chain, batch))
        self.ends.append(batch.end_offset)

    def truncate(self, end_offset: int) -> None:
        keep = bisect_left(self.ends, end_offset + 1)
        assert (self.ends[keep - 1] if keep else self.start) == end_offset, f"{end_offset} is within a batch"
        del self.batches[keep:], self.ends[keep:], self.chains[keep:]
        self.flushed = min(self.flushed, end_offset)

    def chain_at(self, end_offset: int) -> int | None:
        """The chain of the log up to here; None where that is no end of a batch of this log."""
        if end_offset == self.start:
            return self.start_chain
        index = bisect_left(self.ends, end_offset)
        return self.chains[index] if index < len(self.ends) and self.ends[index] == end_offset else None

    def read(self, offset: int, end_offset: int, most: int) -> tuple[BatchInfo, ...]:
        first = bisect_left(self.ends, offset + 1)
        return tuple(batch for batch in self.batches[first : first + most] if batch.end_offset <= end_offset)

    def epoch_before(self, end_offset: int) -> int:
        index = bisect_left(self.ends, end_offset)
        return self.batches[index].epoch if index < len(self.ends) else self.start_epoch

    def trim(self, snapshot: StoredSnapshot) -> None:
        """Delete the log before a snapshot, and older snapshots."""
        end_offset = snapshot.snapshot_id.end_offset
        drop = bisect_left(self.ends, end_offset + 1)
        del self.batches[:drop], self.ends[:drop], self.chains[:drop]
        self.start, self.start_chain = end_offset, snapshot.chain
        self.start_epoch = snapshot.snapshot_id.epoch
        self.snapshots = [kept for kept in self.snapshots if kept.snapshot_id >= snapshot.snapshot_id]

    def reset(self, snapshot: StoredSnapshot) -> None:
        """Begin again behind a snapshot."""
        self.batches, self.ends, self.chains = [], [], []
        self.trim(snapshot)
        self.flushed = snapshot.snapshot_id.end_offset

    def store(self, snapshot: StoredSnapshot) -> None:
        if all(snapshot.snapshot_id != known.snapshot_id for known in self.snapshots):
            self.snapshots = sorted([*self.snapshots, snapshot])

    def snapshot(self, snapshot_id: SnapshotId) -> StoredSnapshot | None:
        return next((found for found in self.snapshots if found.snapshot_id == snapshot_id), None)

    # --- a crash --------------------------------------------------------------------------------------

    def die(self, random: Random, *, power: bool) -> None:
        """A write that was under way is there as a whole or not at all.

        Without power a part of what was not flushed survives; a killed process leaves it to the kernel.
        """
        if self.writing is not None and random.random() < 0.5:
            self.state = self.writing
        self.writing = None
        if power:
            unflushed = [end for end in self.ends if end > self.flushed]
            if unflushed:
                kept = random.randrange(len(unflushed) + 1)
                self.truncate(unflushed[kept - 1] if kept else self.flushed)
            self.flushed = self.end

    # --- a start --------------------------------------------------------------------------------------

    def load(self, static_voters: VoterSet | None) -> tuple[LogView, VoterHistory]:
        """What the machine is made from. A log that its newest snapshot contradicts is dropped first."""
        if begins_again(self._view()):
            self.reset(self.snapshots[-1])
        history = VoterHistory(static_voters)
        first = next((s for s in self.snapshots if s.snapshot_id.end_offset == self.start), None)
        if first is not None:
            history.reset(self.start, first.facts)
        for batch in self.batches:
            if batch.quorum_records:
                history.add(batch.base_offset, batch.quorum_records)
        return self._view(), history

    def _view(self) -> LogView:
        epochs: list[tuple[int, int]] = []
        for batch in self.batches:
            if not epochs or epochs[-1][0] != batch.epoch:
                epochs.append((batch.epoch, batch.base_offset))
        newest = self.snapshots[-1].snapshot_id if self.snapshots else None
        return LogView(self.start, self.end, self.flushed, tuple(epochs), self.start_epoch, newest)
