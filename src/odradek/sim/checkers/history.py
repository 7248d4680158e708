"""History: what the clients of a simulation sent and saw. The checkers use it. Pure."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from odradek.core.errors import ErrorCode
from odradek.core.types import GROUP_METADATA_TOPIC, TopicPartition
from odradek.sim.checkers.owners import Owners
from odradek.wire.api_keys import ApiKey


class Fate(Enum):
    """What a client knows about a write."""

    UNKNOWN = "unknown"
    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"


class Presence(Enum):
    """Whether a topic exists, as far as its administrator knows."""

    PRESENT = "present"
    ABSENT = "absent"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class Batch:
    """Records sent together. `first` is the number of the first one among all records of its producer."""

    producer: str
    idempotent: bool
    acks: int
    tp: TopicPartition
    first: int
    values: list[bytes]
    era: int = 0
    fate: Fate = Fate.UNKNOWN
    base_offset: int = -1


class Commit(NamedTuple):
    """An offset commit that was sent."""

    number: int
    """Its position in the history of all clients."""
    group: str
    generation: int
    tp: TopicPartition
    offset: int
    era: int = 0


@dataclass(slots=True)
class CommitLog:
    """Commits of one group for one partition since its committed offset was last read."""

    known: int = -1
    """The committed offset when it was last read."""
    sent: list[Commit] = field(default_factory=list)
    acknowledged: list[tuple[int, Commit]] = field(default_factory=list)
    """(position of the answer, commit), in the order of the answers."""
    newest: tuple[int, Commit] | None = None
    """The last acknowledged commit of the newest earlier generation."""

    def audited(self, committed: int, born: int, *, keep_generation: bool) -> None:
        """The offset was read from a node that started at position `born` of the history.

        Requests sent before that have either taken effect or never will. A power loss may set the generations
        back.
        """
        if keep_generation:
            for place, commit in self.acknowledged:
                if self.newest is None or commit.generation >= self.newest[1].generation:
                    self.newest = (place, commit)
        else:
            self.newest = None
        self.known = committed
        self.sent = [commit for commit in self.sent if commit.number > born]
        self.acknowledged = [entry for entry in self.acknowledged if entry[1].number > born]


class History:
    """Everything that was sent, acknowledged and read in one simulation.

    An era ends with each power loss. If a request was sent in an earlier era than its acknowledgement
    arrived, and the topic does not flush, the acknowledgement proves nothing: the record may have been lost
    in between.
    """

    def __init__(self, flushed_topics: Container[str] = ()) -> None:
        self.flushed_topics = flushed_topics
        """Topics whose records are flushed before they are acknowledged."""
        self.era = 0
        self.sent: dict[bytes, Batch] = {}
        """Every value ever sent; values are unique."""
        self.acknowledged: dict[TopicPartition, dict[int, bytes]] = {}
        """Acknowledged records by offset, without those that a permitted loss has removed."""
        self.commits: dict[tuple[str, TopicPartition], CommitLog] = {}
        self.topics: dict[str, tuple[Presence, int]] = {}
        """Topics of the administrator, with the position of the last known change."""
        self.trims: dict[TopicPartition, int] = {}
        """The highest offset of a DeleteRecords request."""
        self.owners = Owners()
        self.oddities: list[str] = []
        """Answers that no client should get."""
        self.acknowledged_records = 0
        self.acknowledged_commits = 0
        self.read_records = 0
        self._place = 0
        self._producer_ids: set[int] = set()

    def next_place(self) -> int:
        self._place += 1
        return self._place

    def batch_sent(self, batch: Batch) -> None:
        """Note a batch before each time that it is sent."""
        batch.era = self.era
        for value in batch.values:
            self.sent[value] = batch

    def batch_acknowledged(self, batch: Batch, base_offset: int) -> None:
        """The broker acknowledged the batch at an offset."""
        if batch.era != self.era and batch.tp.topic not in self.flushed_topics:
            return
        batch.fate = Fate.ACKNOWLEDGED
        batch.base_offset = base_offset
        known = self.acknowledged.setdefault(batch.tp, {})
        for offset, value in enumerate(batch.values, base_offset):
            other = known.get(offset, value)
            if other != value:
                self.oddities.append(
                    f"{batch.tp}: offset {offset} was acknowledged for {other[:24]!r} and for {value[:24]!r}"
                )
            known[offset] = value
        self.acknowledged_records += len(batch.values)

    def producer_id_given(self, producer_id: int) -> None:
        """No producer id may be allocated twice, whatever happens to the node in between."""
        if producer_id in self._producer_ids:
            self.oddities.append(f"producer id {producer_id} was handed out twice")
        self._producer_ids.add(producer_id)

    def check_retriable(self, api_key: ApiKey, code: int) -> None:
        """A correct client may get only retriable errors."""
        error = ErrorCode(code)
        if not error.retriable:
            self.oddities.append(f"{api_key.name} failed with {error.name}")

    def record_read(self, tp: TopicPartition, offset: int, value: bytes) -> None:
        """A consumer got a record."""
        self.read_records += 1
        if value not in self.sent:
            self.oddities.append(f"{tp}: offset {offset} holds {value[:24]!r}, which nobody sent")

    def topic_changes(self, name: str) -> None:
        """A change was requested. Until the answer the state is unknown."""
        self.topics[name] = (Presence.UNKNOWN, self.next_place())

    def topic_changed(self, name: str, presence: Presence) -> None:
        self.topics[name] = (presence, self.next_place())

    def trim_sent(self, tp: TopicPartition, offset: int) -> None:
        self.trims[tp] = max(offset, self.trims.get(tp, 0))

    def commit_sent(self, group: str, generation: int, tp: TopicPartition, offset: int) -> Commit:
        commit = Commit(self.next_place(), group, generation, tp, offset, self.era)
        self.commits.setdefault((group, tp), CommitLog()).sent.append(commit)
        return commit

    def commit_acknowledged(self, commit: Commit) -> None:
        """The broker acknowledged a commit. Commits that an audit has covered since are not kept."""
        self.acknowledged_commits += 1
        log = self.commits[commit.group, commit.tp]
        proves = commit.era == self.era or GROUP_METADATA_TOPIC in self.flushed_topics
        if proves and commit in log.sent:
            log.acknowledged.append((self.next_place(), commit))

    def power_lost(self, flushed: Mapping[TopicPartition, Mapping[int, bytes]]) -> None:
        """A power loss may remove records that were acknowledged but not flushed: their offsets are free
        again."""
        self.era += 1
        if GROUP_METADATA_TOPIC not in self.flushed_topics:
            self.owners.forget()
        for tp, known in self.acknowledged.items():
            if tp.topic not in self.flushed_topics:
                kept = flushed.get(tp, {})
                self.acknowledged[tp] = {o: value for o, value in known.items() if kept.get(o) == value}

    def survived(self, tp: TopicPartition, present: Mapping[int, bytes]) -> None:
        """Records that were read back after a restart must stay, at least until the next power loss."""
        self.acknowledged.setdefault(tp, {}).update(present)
