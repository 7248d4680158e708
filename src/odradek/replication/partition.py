"""One replica of a partition on this node: its role, its in-sync set, its high watermark, who waits on it.

The log below knows offsets, not leaders; the manager above knows partitions, not their state.
"""

import asyncio
from typing import TYPE_CHECKING

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_LEADER_EPOCH, TopicPartition
from odradek.log.log import AppendInfo, FetchInfo, Isolation, Log
from odradek.records.batch import build_batch, iter_batches
from odradek.records.check import CheckedRecords, CheckRules, Origin
from odradek.records.control import EndTransactionMarker, marker_record
from odradek.replication.isr import CommittedIsr, IsrState, committed_offset
from odradek.replication.rules import check_rules
from odradek.replication.verification import Verification
from odradek.replication.waiters import CommitWaiters, FetchWaiters, future_of
from odradek.runtime.slices import Slices

if TYPE_CHECKING:
    from odradek.core.configs import TopicConfig
    from odradek.core.metrics import TopicMetrics
    from odradek.metadata.image import PartitionRegistration


class Partition:
    """A replica: leader or follower at a leader epoch."""

    __slots__ = (
        "_follower_ends",
        "alone",
        "broker_id",
        "commit_waiters",
        "epoch_start_offset",
        "fetch_waiters",
        "flushes",
        "is_leader",
        "isr",
        "leader_epoch",
        "leader_id",
        "log",
        "metrics",
        "partition_epoch",
        "replicas",
        "rules",
        "settle_waiters",
        "topic_id",
        "topic_partition",
        "under_min_isr",
        "verification",
    )

    def __init__(
        self, log: Log, broker_id: int, metrics: "TopicMetrics", slices: Slices | None = None
    ) -> None:
        self.log = log
        self.broker_id = broker_id
        self.metrics = metrics
        self.topic_partition: TopicPartition = log.topic_partition
        self.topic_id = log.topic_id
        self.is_leader = False
        self.leader_id = -1
        self.leader_epoch = NO_LEADER_EPOCH
        self.epoch_start_offset = 0
        self.partition_epoch = -1
        self.replicas: tuple[int, ...] = ()
        self.isr: IsrState = CommittedIsr(())
        self.under_min_isr = True
        self.alone = False  # the in-sync set is this node: what it has is committed
        self.rules: CheckRules = check_rules(log.config)
        self.flushes = log.flushes_by_count
        self.commit_waiters = CommitWaiters()
        self.settle_waiters = CommitWaiters()
        log.settling.on_settled = self._settled
        self.verification = Verification()
        self.fetch_waiters = FetchWaiters(slices or Slices())
        self._follower_ends: dict[int, int] = {}

    # --- roles ----------------------------------------------------------------------------------------

    def apply(self, registration: "PartitionRegistration") -> bool:
        """Take the role the metadata log gives. True when the leader epoch moved."""
        if registration.partition_epoch < self.partition_epoch:
            return False
        new_epoch = registration.leader_epoch != self.leader_epoch
        assert registration.leader_epoch >= self.leader_epoch, "leader epochs never go back"
        self.partition_epoch = registration.partition_epoch
        self.leader_id = registration.leader
        self.replicas = tuple(registration.replicas)
        self.isr = CommittedIsr(tuple(registration.isr))
        self._count_isr()
        was_leader = self.is_leader
        self.is_leader = registration.leader == self.broker_id
        self.leader_epoch = registration.leader_epoch
        if new_epoch:
            if was_leader:
                self.commit_waiters.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
                self.settle_waiters.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            self._follower_ends.clear()
            if self.is_leader:
                self.epoch_start_offset = self.log.log_end_offset
                self.log.assign_epoch_start_offset(self.leader_epoch, self.epoch_start_offset)
        if self.is_leader:
            self._advance_high_watermark()
        self.fetch_waiters.wake()
        return new_epoch

    def configure(self, config: "TopicConfig") -> None:
        self.log.update_config(config)
        self.rules = check_rules(config)
        self.flushes = self.log.flushes_by_count
        self._count_isr()

    def stop(self, code: ErrorCode) -> None:
        """This node no longer has the partition: whoever waits on it is told."""
        self.is_leader = False
        self.commit_waiters.fail(code)
        self.settle_waiters.fail(code)
        self.fetch_waiters.wake()
        self.log.settling.on_settled = None  # else log and partition would keep each other alive

    def require_leader(self, current_leader_epoch: int = NO_LEADER_EPOCH) -> None:
        """Refuse what only the leader of the caller's epoch may answer."""
        if current_leader_epoch != NO_LEADER_EPOCH and current_leader_epoch != self.leader_epoch:
            if current_leader_epoch < self.leader_epoch:
                raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    @property
    def is_leading(self) -> bool:
        """Whether this node leads it, in a directory that works."""
        return self.is_leader and self.log.failure is None

    @property
    def is_caught_up(self) -> bool:
        """Whether a leader knows all that was committed under earlier ones: it had all of it when it was
        elected, and learns from its followers that they have, too."""
        return self.log.high_watermark >= self.epoch_start_offset

    # --- in -------------------------------------------------------------------------------------------

    def _count_isr(self) -> None:
        """Keep what every append asks."""
        self.under_min_isr = len(self.isr.members) < self._min_isr()
        self.alone = self.isr.maximal == (self.broker_id,)

    def _min_isr(self) -> int:
        """min.insync.replicas, as far as there are so many replicas."""
        return min(self.log.config.min_insync_replicas, max(1, len(self.replicas)))

    @property
    def at_min_isr(self) -> bool:
        """Whether one in-sync replica less would be too few for acks=all."""
        return len(self.isr.members) == self._min_isr()

    def append_own(self, records: CheckedRecords, transaction_version: int = 0) -> AppendInfo:
        """Append what this node itself wrote, with acks=all. Raises KafkaError."""
        self.require_leader()
        if self.under_min_isr:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        (result,) = self.append_as_leader([records], Origin.COORDINATOR, transaction_version)
        if isinstance(result, KafkaError):
            raise result
        return result

    def append_marker(
        self,
        producer: tuple[int, int],
        marker: EndTransactionMarker,
        transaction_version: int,
        now_ms: int,
    ) -> AppendInfo:
        """End a producer's transaction here. Raises KafkaError."""
        producer_id, producer_epoch = producer
        batch = build_batch(
            [(now_ms, *marker_record(marker), ())],
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transactional=True,
            control=True,
        )
        info = self.append_own(CheckedRecords(batch, list(iter_batches(batch))), transaction_version)
        self.verification.ended(producer_id)
        return info

    def when_committed(self, offset: int, timeout_ms: int | None) -> "asyncio.Future[None] | None":
        """A wait until the high watermark is at least `offset`; None where it is already."""
        if self.log.high_watermark >= offset:
            return None
        return future_of(self.commit_waiters, offset, timeout_ms)

    def append_as_leader(
        self,
        sets: list[CheckedRecords],
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
    ) -> list[AppendInfo | KafkaError]:
        """Append what was checked; the high watermark follows as far as the in-sync set allows."""
        assert self.is_leader
        log = self.log
        end, size = log.log_end_offset, log.appended_bytes
        results = log.append_as_leader(sets, self.leader_epoch, origin, transaction_version)
        if log.log_end_offset != end:
            metrics = self.metrics
            metrics.messages_in += log.log_end_offset - end
            metrics.bytes_in += log.appended_bytes - size
            self._advance_high_watermark()
            if self.fetch_waiters.waiting:
                self.fetch_waiters.wake()
        return results

    def append_checked(self, checked: "list[CheckedRecords | KafkaError]") -> "list[AppendInfo | KafkaError]":
        """Append what passed its check; for each set, in order, where it stands or why it is refused."""
        metrics = self.metrics
        metrics.produces += len(checked)
        sets = [outcome for outcome in checked if type(outcome) is CheckedRecords]
        results: list[AppendInfo | KafkaError] = []
        if sets:
            try:
                self.require_leader()
                results = self.append_as_leader(sets)
            except KafkaError as e:
                results = [e] * len(sets)
        if len(sets) != len(checked):
            appended = iter(results)
            results = [outcome if isinstance(outcome, KafkaError) else next(appended) for outcome in checked]
        for result in results:
            if type(result) is not AppendInfo:
                metrics.failed_produces += 1
        return results

    def follower_fetched(self, replica_id: int, fetch_offset: int) -> None:
        """A follower asks for `fetch_offset`: it has everything below."""
        self._follower_ends[replica_id] = fetch_offset
        if self._advance_high_watermark():
            self.fetch_waiters.wake()

    def _settled(self) -> None:
        """A flush that acknowledgements waited for (flush.messages) has come further."""
        self.settle_waiters.release(self.log.settled_offset)
        if self.is_leader and self._advance_high_watermark():
            self.fetch_waiters.wake()

    def _advance_high_watermark(self) -> bool:
        if self.under_min_isr:
            return False
        log = self.log
        own_end = log.settled_offset if self.flushes else log.log_end_offset
        if self.alone:
            offset = own_end
        else:
            offset = committed_offset(self.broker_id, own_end, self._follower_ends, self.isr)
        if not log.advance_high_watermark(offset):
            return False
        if self.commit_waiters:
            self.commit_waiters.release(log.high_watermark)
        return True

    # --- out ------------------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, isolation: Isolation, min_one_message: bool) -> FetchInfo:
        return self.log.read(offset, max_bytes, isolation, min_one_message)

    def diverging_epoch(self, last_fetched_epoch: int, fetch_offset: int) -> tuple[int, int] | None:
        """Where the caller's log parts from ours: (epoch, end offset), or None when it does not."""
        epoch, end_offset = self.log.end_offset_for_epoch(last_fetched_epoch)
        if epoch == NO_LEADER_EPOCH or end_offset < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if epoch < last_fetched_epoch or end_offset < fetch_offset:
            return epoch, end_offset
        return None
