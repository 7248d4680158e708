"""The voters and the kraft.version by offset. A record acts when it is appended, and a truncation takes it
back. Pure.
"""

from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

from odradek.raft.control import QuorumFacts
from odradek.raft.quorum_records import KRaftVersion, QuorumRecord, Voters
from odradek.raft.voters import ReplicaKey, VoterSet

BEFORE_THE_LOG = -1


class _Entry(NamedTuple):
    offset: int
    facts: QuorumFacts


class VoterHistory:
    """Begins with what is known before the log: voters of the configuration, or those of a snapshot."""

    __slots__ = ("_entries", "_static")

    def __init__(self, static: VoterSet | None = None) -> None:
        self._static = static
        self._entries = [_Entry(BEFORE_THE_LOG, QuorumFacts(0, static))]

    @property
    def last(self) -> QuorumFacts:
        """Acts now, committed or not."""
        return self._entries[-1].facts

    @property
    def last_offset(self) -> int:
        """Of the record that acts now; below 0 where none in the log does."""
        return self._entries[-1].offset

    @property
    def all(self) -> list[QuorumFacts]:
        """What acts now, and everything that a truncation may bring back."""
        return [entry.facts for entry in self._entries]

    def had_before(self, key: ReplicaKey) -> bool:
        """Whether a replica was a voter before the last change."""
        voters = self._entries[-2].facts.voters if len(self._entries) > 1 else None
        return voters is not None and voters.has(*key)

    def at(self, end_offset: int) -> QuorumFacts:
        """What acts for a log that ends here: for a snapshot, or for what is committed."""
        index = bisect_left(self._entries, end_offset, key=lambda entry: entry.offset)
        return self._entries[max(index - 1, 0)].facts

    def add(self, offset: int, records: Iterable[QuorumRecord]) -> bool:
        """Records of one batch that begins at this offset. Whether they changed anything.

        The same voters again count as recorded here.
        """
        assert offset > self.last_offset, f"{offset} was recorded already"
        before = facts = self.last
        recorded = False
        for record in records:
            if isinstance(record, KRaftVersion):
                facts = facts._replace(kraft_version=record.level)
                recorded = True
            elif isinstance(record, Voters):
                facts = facts._replace(voters=record.voters)
                recorded = True
        if recorded:
            self._entries.append(_Entry(offset, facts))
        return facts != before

    def truncate(self, end_offset: int) -> bool:
        """Forget what was recorded at this offset and after it. Whether that changed what acts."""
        before = self.last
        while self._entries[-1].offset >= end_offset and len(self._entries) > 1:
            self._entries.pop()
        return self.last != before

    def reset(self, end_offset: int, facts: QuorumFacts) -> None:
        """Begin again with a snapshot. Without voters in it (kraft.version 0) the configured ones act."""
        known = facts if facts.voters is not None else QuorumFacts(facts.kraft_version, self._static)
        self._entries = [_Entry(end_offset - 1, known)]

    def forget_before(self, end_offset: int) -> None:
        """The log begins here now: what acted before it is kept as one entry."""
        index = bisect_left(self._entries, end_offset, key=lambda entry: entry.offset)
        del self._entries[: max(index - 1, 0)]
