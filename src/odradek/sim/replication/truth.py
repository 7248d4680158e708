"""PartitionTruth: what is fixed in one partition, and what the loss oracle allows. Pure.

The first high watermark that passes a batch fixes it. From then on every leader that is elected cleanly has
it, and so has every member of the controller's ISR and ELR. It may be lost only
- by the election of a replica from outside, where the topic allows that, or
- if every member of ISR and ELR (both empty: the last known leader) lost its power or its directory.
"""

from collections.abc import Callable
from typing import NamedTuple

from odradek.core.types import NO_LEADER, NO_PRODUCER_ID, NO_SEQUENCE
from odradek.metadata.image import PartitionRegistration
from odradek.records.header import MAX_INT32
from odradek.sim.replication import rules
from odradek.sim.replication.replica_log import Batch, ReplicaLog, Standing
from odradek.sim.replication.rules import Counters

Fail = Callable[[str, str], None]


class LeaderView(NamedTuple):
    """What a leader shows of itself."""

    epoch: int
    high_watermark: int
    members: tuple[int, ...]
    maximal: tuple[int, ...]
    min_isr: int

    @property
    def has_min_isr(self) -> bool:
        return len(self.members) >= self.min_isr


class _Sequence(NamedTuple):
    producer_epoch: int
    following: int


class Mark(NamedTuple):
    """What a client notes when it sends: an answer proves nothing if records were lost in between."""

    losses: int
    led_epoch: int


class PartitionTruth:
    def __init__(
        self,
        name: str,
        fail: Fail,
        counters: Counters,
        *,
        is_compacted: bool = False,
        is_flushed: bool = False,
    ) -> None:
        self.name = name
        self.fixed: list[Batch] = []
        self.fixed_end = 0
        self.replicas: dict[int, ReplicaLog] = {}
        self.registration: PartitionRegistration | None = None
        self.losses = 0
        self.is_broken = False
        """Whether a rule was broken: what follows from that is no further finding."""
        self._fail_story = fail
        self._counters = counters
        self._is_compacted = is_compacted
        self._is_flushed = is_flushed
        self._crcs: dict[int, int] = {}
        self._sequences: dict[int, _Sequence] = {}
        self._lossy_epoch = -1
        """The leader epoch of the last election that was allowed to lose records."""
        self._owes: tuple[int, bool] | None = None
        """A leader whose log was not known when it was elected; whether it may have lost records."""

    @property
    def is_lossy(self) -> bool:
        """Whether an election was allowed to lose records: leaders of earlier epochs may still answer."""
        return self._lossy_epoch >= 0

    def replica(self, node: int) -> ReplicaLog:
        found = self.replicas.get(node)
        if found is None:
            found = self.replicas[node] = ReplicaLog()
        return found

    def _fail(self, rule: str, details: str) -> None:
        if not self.is_broken:
            self.is_broken = True
            self._fail_story(rule, f"{self.name}: {details}")

    # --- what the controller decides ------------------------------------------------------------------

    def decided(self, new: PartitionRegistration, *, allow_unclean: bool) -> None:
        """The controller committed a newer state of the partition."""
        old, self.registration = self.registration, new
        if old is not None:
            self._check_epochs(old, new)
            self._counters.shrunk += not set(old.isr) <= set(new.isr)
            self._counters.expanded += not set(new.isr) <= set(old.isr)
        is_election = new.leader != NO_LEADER and (old is None or new.leader_epoch != old.leader_epoch)
        if is_election and old is not None:
            self._elected(old, new, allow_unclean=allow_unclean)
        self.check()

    def _check_epochs(self, old: PartitionRegistration, new: PartitionRegistration) -> None:
        text = f"from leader {old.leader} {old.leader_epoch}/{old.partition_epoch} to leader {new.leader} "
        text += f"{new.leader_epoch}/{new.partition_epoch}"
        if new.partition_epoch <= old.partition_epoch or new.leader_epoch < old.leader_epoch:
            self._fail(rules.EPOCHS, text)
        if new.leader != old.leader and new.leader_epoch == old.leader_epoch:
            self._fail(rules.EPOCHS, text)

    def _elected(
        self, old: PartitionRegistration, new: PartitionRegistration, *, allow_unclean: bool
    ) -> None:
        counters, leader = self._counters, new.leader
        counters.elections += 1
        complete = {*old.isr, *old.elr}
        if leader not in old.isr and leader in old.elr:
            counters.elected_from_elr += 1
        # A last known leader is elected when ISR and ELR are empty, perhaps in the same record.
        is_last_known = leader in old.last_known_elr and leader not in complete
        is_outsider = leader not in complete and not is_last_known
        if is_outsider:
            counters.unclean_elections += 1
            is_next = (
                new.partition_epoch == old.partition_epoch + 1
            )  # otherwise it may have joined in between
            if not allow_unclean and is_next:
                self._fail(rules.CLEAN, f"{leader} leads, and {_shown(old)} was before")
        if is_last_known:
            may_lose = self._may_lack(leader)
        else:
            may_lose = (is_outsider and allow_unclean) or self._all_lost(old)
        if may_lose:
            self._lossy_epoch = new.leader_epoch
        if self._owes is not None:
            may_lose |= self._owes[1]
        self._owes = leader, may_lose
        self._pay()

    def _all_lost(self, of: PartitionRegistration) -> bool:
        """Whether everybody who counts as complete lost power or directory, and has not all again."""
        pool = {*of.isr, *of.elr} or set(of.last_known_elr)
        return bool(pool) and all(self._may_lack(node) for node in pool)

    def _may_lack(self, node: int) -> bool:
        replica = self.replica(node)
        return replica.is_excused and not (replica.is_known and self._has_all(replica))

    def _has_all(self, replica: ReplicaLog) -> bool:
        return replica.match(self.fixed, is_compacted=self._is_compacted)

    def _pay(self) -> None:
        """Once the log of a new leader is known: it has all, or may have lost some."""
        if self._owes is None:
            return
        leader, may_lose = self._owes
        replica = self.replica(leader)
        if not replica.is_known:
            return
        self._owes = None
        if self._has_all(replica):
            return
        if may_lose or (self.registration is not None and self._all_lost(self.registration)):
            self._forget(replica.matched)
        else:
            self._lacks(leader, "is elected")

    def _forget(self, kept: int) -> None:
        assert self.registration is not None
        self.losses += 1
        self._counters.losses += 1
        self._lossy_epoch = self.registration.leader_epoch
        for batch in self.fixed[kept:]:
            del self._crcs[batch.base]
        del self.fixed[kept:]
        self.fixed_end = self.fixed[-1].end if self.fixed else 0
        self._sequences.clear()
        for replica in self.replicas.values():
            replica.matched = min(replica.matched, kept)

    # --- what the replicas have -----------------------------------------------------------------------

    def power_lost(self, node: int) -> None:
        self.replica(node).lost(is_excused=not self._is_flushed)

    def directory_lost(self, node: int) -> None:
        self.replica(node).lost(is_excused=True)

    def check(self) -> None:
        """Every member of ISR and ELR has all that is fixed."""
        state = self.registration
        self._pay()
        if state is None or self.is_broken or self._owes is not None:
            return
        for node in (*state.isr, *state.elr):
            replica = self.replica(node)
            if not replica.is_known:
                continue
            if self._has_all(replica):
                if node in state.isr:
                    replica.rejoined()
                continue
            if not self._all_lost(state):
                self._lacks(node, f"is complete by {_shown(state)}")
                return

    def _lacks(self, node: int, doing: str) -> None:
        replica = self.replica(node)
        batch = self.fixed[replica.matched]
        rule = rules.OFFSETS if batch.base in replica.crcs else rules.NEVER_LOST
        self._fail(rule, f"{node} {doing} without {batch}; its log ends at {replica.end}")

    def led(self, node: int, view: LeaderView, before: LeaderView | None) -> None:
        """A leader shows itself. `before` is what it showed before in this epoch."""
        replica, state = self.replica(node), self.registration
        replica.led_epoch = view.epoch
        if view.epoch < self._lossy_epoch or state is None:
            return
        if view.epoch == state.leader_epoch and node == state.leader:
            self._check_leader(node, view, before, state)
        if view.high_watermark > self.fixed_end:
            self._fix(node, replica, view)

    def _check_leader(
        self, node: int, view: LeaderView, before: LeaderView | None, state: PartitionRegistration
    ) -> None:
        if not set(state.isr) <= set(view.maximal):
            self._fail(rules.MAXIMAL, f"leader {node} waits for {view.maximal}, {_shown(state)}")
        if before is None or view.high_watermark <= before.high_watermark:
            return
        for member in view.maximal:
            other = self.replica(member)
            if other.standing is Standing.WHOLE and other.end < view.high_watermark:
                text = f"leader {node} has high watermark {view.high_watermark}, "
                self._fail(rules.LEAST_END, f"{text}the log of {member} ends at {other.end}")
        if not view.has_min_isr and not before.has_min_isr:
            text = f"leader {node} moves it to {view.high_watermark} with ISR {view.members}"
            self._fail(rules.MIN_ISR, f"{text}, min ISR {view.min_isr}")

    def _fix(self, node: int, replica: ReplicaLog, view: LeaderView) -> None:
        if not self._has_all(replica):
            if self._owes is None and not self.is_broken:
                self._lacks(node, f"moves the high watermark in epoch {view.epoch}")
            return
        for batch in replica.between(self.fixed_end, view.high_watermark):
            self.fixed.append(batch)
            self._crcs[batch.base] = batch.crc
            self.fixed_end = batch.end
            self._counters.fixed += 1
            if batch.sequence != NO_SEQUENCE and batch.producer_id != NO_PRODUCER_ID:
                self._check_sequence(batch)
        self.check()

    def _check_sequence(self, batch: Batch) -> None:
        known = self._sequences.get(batch.producer_id)
        following = (batch.sequence + batch.end - batch.base) & MAX_INT32
        self._sequences[batch.producer_id] = _Sequence(batch.producer_epoch, following)
        if known is None or self._is_compacted:
            return
        expected = known.following if known.producer_epoch == batch.producer_epoch else 0
        if batch.sequence != expected:
            self._fail(rules.SEQUENCES, f"{batch} follows sequence {expected - 1}")

    # --- what clients are answered --------------------------------------------------------------------

    def mark(self, node: int) -> Mark:
        return Mark(self.losses, self.replica(node).led_epoch)

    def acknowledged(self, node: int, base: int, crc: int, mark: Mark) -> None:
        """A producer was answered by a node: its batch is at this offset, with acks=all."""
        now = self.mark(node)
        if now.losses != mark.losses or min(now.led_epoch, mark.led_epoch) < self._lossy_epoch:
            return
        if base >= self._log_start and self._crcs.get(base) != crc:
            text = f"{node} acknowledged a batch at {base} with crc {crc:08x}"
            self._fail(rules.ACKNOWLEDGED, f"{text}, fixed is {self._crcs.get(base, 0):08x}")

    def read(self, node: int, base: int, crc: int, mark: Mark) -> None:
        """A consumer was given a batch by a node."""
        now = self.mark(node)
        if now.losses != mark.losses or min(now.led_epoch, mark.led_epoch) < self._lossy_epoch:
            return
        if not self._is_compacted and base >= self._log_start and self._crcs.get(base) != crc:
            text = f"{node} served a batch at {base} with crc {crc:08x}"
            self._fail(rules.READ, f"{text}, fixed is {self._crcs.get(base, 0):08x}")

    @property
    def _log_start(self) -> int:
        return max((replica.start for replica in self.replicas.values()), default=0)


def _shown(state: PartitionRegistration) -> str:
    text = f"ISR {state.isr}, ELR {state.elr}, leader {state.leader} of {state.leader_epoch}"
    return text + (f", last known {state.last_known_elr}" if state.last_known_elr else "")
