"""PartitionLeader: the state of a leader for one leader epoch: follower log ends, ISR, min ISR, and waiting
produces.

A new leader epoch gets a new `PartitionLeader`. `Partition` has appends and waiting fetches.
"""

from typing import TYPE_CHECKING

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_LEADER_EPOCH
from odradek.log.log import Log
from odradek.replication.isr import CommittedIsr, IsrState, high_watermark_of
from odradek.replication.waiters import CommitWaiters

if TYPE_CHECKING:
    from odradek.metadata.image import PartitionRegistration


class PartitionLeader:
    """This node leads a partition, at one leader epoch."""

    __slots__ = (
        "_broker_id",
        "_follower_ends",
        "_log",
        "alone",
        "commit_waiters",
        "epoch",
        "epoch_start_offset",
        "flush_waiters",
        "flushes",
        "isr",
        "min_isr",
        "replicas",
        "under_min_isr",
    )

    def __init__(self, log: Log, broker_id: int, registration: "PartitionRegistration") -> None:
        self._log = log
        self._broker_id = broker_id
        self._follower_ends: dict[int, int] = {}
        self.epoch = registration.leader_epoch
        self.epoch_start_offset = log.log_end_offset
        self.commit_waiters = CommitWaiters()  # for the high watermark: acks=all
        self.flush_waiters = CommitWaiters()  # for a flush: acks=1 with flush.messages
        self.replicas: tuple[int, ...]
        self.isr: IsrState
        self.min_isr: int
        self.flushes: bool
        # Every append reads these two.
        self.under_min_isr: bool
        self.alone: bool  # this node is the whole ISR, so its records are committed at once
        self.update(registration)

    # --- what the metadata says -----------------------------------------------------------------------

    def update(self, registration: "PartitionRegistration") -> None:
        """Apply the assignment and the ISR of a newer partition epoch."""
        assert registration.leader == self._broker_id, f"{registration.leader} leads, not {self._broker_id}"
        assert registration.leader_epoch == self.epoch, "a new leader epoch needs a new PartitionLeader"
        assert self._broker_id in registration.isr, "the leader is in the ISR"
        assert set(registration.isr) <= set(registration.replicas), "the ISR is within the assignment"
        self.replicas = tuple(registration.replicas)
        self.isr = CommittedIsr(tuple(registration.isr))
        for replica_id in [id_ for id_ in self._follower_ends if id_ not in self.replicas]:
            del self._follower_ends[replica_id]
        self.configure()

    def configure(self) -> None:
        """Apply the log's current configuration."""
        # min.insync.replicas, but at most the number of replicas.
        self.min_isr = min(self._log.config.min_insync_replicas, len(self.replicas))
        assert 1 <= self.min_isr <= len(self.replicas)
        self.under_min_isr = len(self.isr.members) < self.min_isr
        self.alone = self.isr.maximal == (self._broker_id,)
        self.flushes = self._log.flushes_by_count

    def resign(self, code: ErrorCode) -> None:
        """Another epoch starts, or this node loses the partition: fail all waits."""
        self.commit_waiters.fail(code)
        self.flush_waiters.fail(code)

    # --- what it may do -------------------------------------------------------------------------------

    @property
    def at_min_isr(self) -> bool:
        """Whether acks=all would fail with one in-sync replica fewer."""
        return len(self.isr.members) == self.min_isr

    @property
    def is_caught_up(self) -> bool:
        """Whether the high watermark includes all records committed under earlier leaders. The leader had
        them when it was elected, but first its followers must confirm that they have them too."""
        return self._log.high_watermark >= self.epoch_start_offset

    def require_replica(self, broker_id: int, current_leader_epoch: int) -> None:
        """Refuse a follower that is not a replica. It retries, because our metadata may be old."""
        if broker_id not in self.replicas or broker_id == self._broker_id:
            if current_leader_epoch == NO_LEADER_EPOCH:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def not_enough_replicas(self) -> KafkaError:
        """The error for an append with acks=all while `under_min_isr`."""
        return KafkaError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"The size of the current ISR {self.isr.members} is insufficient to satisfy the "
            f"min.isr requirement of {self.min_isr} for partition {self._log.topic_partition}",
        )

    # --- progress -------------------------------------------------------------------------------------

    def record_fetch(self, replica_id: int, fetch_offset: int) -> bool:
        """A follower fetches from `fetch_offset`: it has all records below. Returns whether the high
        watermark moved."""
        assert replica_id in self.replicas and replica_id != self._broker_id
        assert self._log.log_start_offset <= fetch_offset <= self._log.log_end_offset
        self._follower_ends[replica_id] = fetch_offset
        return self.advance_high_watermark()

    def record_flush(self) -> bool:
        """A flush that acknowledgements wait for has advanced. Returns whether the high watermark moved."""
        self.flush_waiters.release(self._log.settled_offset)
        return self.advance_high_watermark()

    def advance_high_watermark(self) -> bool:
        if self.under_min_isr:
            return False
        log = self._log
        own_end = log.settled_offset if self.flushes else log.log_end_offset
        if self.alone:
            offset = own_end
        else:
            offset = high_watermark_of(self._broker_id, own_end, self._follower_ends, self.isr)
        if not log.advance_high_watermark(offset):
            return False
        if self.commit_waiters:
            self.commit_waiters.release(log.high_watermark)
        return True
