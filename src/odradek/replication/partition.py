"""Partition: one replica on this node, with its log, its role at a leader epoch, and the waiting fetches.

leader.py has the state of a leader, follower.py that of a follower.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_LEADER, NO_LEADER_EPOCH, TopicPartition
from odradek.log.log import AppendInfo, FetchInfo, Isolation, Log
from odradek.log.producers.rules import AppendOrigin
from odradek.records.batch import build_batch, iter_batches
from odradek.records.check import CheckedRecords, CheckRules
from odradek.records.control import EndTransactionMarker, marker_record
from odradek.replication.context import LeaderContext
from odradek.replication.follower import PartitionFollower
from odradek.replication.leader import PartitionLeader
from odradek.replication.progress import NO_BROKER_EPOCH, UNKNOWN_OFFSET
from odradek.replication.rules import check_rules
from odradek.replication.verification import Verification
from odradek.replication.waiters import FetchWaiters, future_of
from odradek.runtime.slices import Slices

if TYPE_CHECKING:
    from odradek.core.configs import TopicConfig
    from odradek.core.metrics import TopicMetrics
    from odradek.metadata.image import PartitionRegistration


class Partition:
    """A replica. `leader` is set while this node leads it, `follower` while it follows another leader.

    `on_settled` is called when a flush that a follower waits for has advanced.
    """

    __slots__ = (
        "_context",
        "broker_id",
        "fetch_waiters",
        "follower",
        "leader",
        "leader_epoch",
        "leader_id",
        "log",
        "metrics",
        "on_settled",
        "partition_epoch",
        "rules",
        "topic_id",
        "topic_partition",
        "verification",
    )

    def __init__(
        self,
        log: Log,
        broker_id: int,
        metrics: "TopicMetrics",
        context: LeaderContext,
        slices: Slices | None = None,
    ) -> None:
        self.log = log
        self.broker_id = broker_id
        self.metrics = metrics
        self._context = context
        self.topic_partition: TopicPartition = log.topic_partition
        self.topic_id = log.topic_id
        self.leader: PartitionLeader | None = None
        self.follower: PartitionFollower | None = None
        self.on_settled: Callable[[TopicPartition], None] | None = None
        self.leader_id = NO_LEADER
        self.leader_epoch = NO_LEADER_EPOCH
        self.partition_epoch = -1
        self.rules: CheckRules = check_rules(log.config)
        self.verification = Verification()
        self.fetch_waiters = FetchWaiters(slices or Slices())
        log.settling.on_settled = self._settled
        log.on_log_start_moved = self.fetch_waiters.wake

    # --- roles ----------------------------------------------------------------------------------------

    def apply(self, registration: "PartitionRegistration") -> bool:
        """Take the role from the metadata log. Returns whether the leader epoch changed."""
        if registration.partition_epoch < self.partition_epoch:
            return False
        assert registration.leader_epoch >= self.leader_epoch, "leader epochs never go back"
        is_new_epoch = registration.leader_epoch != self.leader_epoch
        self.partition_epoch = registration.partition_epoch
        self.leader_id = registration.leader
        self.leader_epoch = registration.leader_epoch
        if is_new_epoch:
            self._begin_epoch(registration)
        elif self.leader is not None:
            self.leader.update(registration)
        assert self.is_leader == (registration.leader == self.broker_id)
        if self.leader is not None:
            self.leader.advance_high_watermark()
        self.fetch_waiters.wake()
        return is_new_epoch

    def _begin_epoch(self, registration: "PartitionRegistration") -> None:
        resigned, self.leader, self.follower = self.leader, None, None
        if registration.leader == self.broker_id:
            self.leader = PartitionLeader(
                self.log, self.broker_id, registration, self._context, self.fetch_waiters.wake
            )
        elif registration.has_leader:
            self.follower = PartitionFollower(self.log, registration.leader, registration.leader_epoch)
        if resigned is not None:  # the answers of its waiting requests name the new leader
            resigned.resign(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if self.leader is not None:
            self.log.assign_epoch_start_offset(self.leader.epoch, self.leader.epoch_start_offset)
        elif self.follower is not None:
            self.follower.begin()

    def configure(self, config: "TopicConfig") -> None:
        self.log.update_config(config)
        self.rules = check_rules(config)
        if self.leader is not None:
            self.leader.configure()
            self.leader.advance_high_watermark()  # min.insync.replicas may be smaller now
        self.fetch_waiters.wake()

    def stop(self, code: ErrorCode) -> None:
        """This node no longer has the partition: fail all waits."""
        resigned, self.leader, self.follower = self.leader, None, None
        if resigned is not None:
            resigned.resign(code)
        self.fetch_waiters.wake()
        self.log.settling.on_settled = None  # break the reference cycle of log and partition
        self.log.on_log_start_moved = None

    def require_leader(self, current_leader_epoch: int = NO_LEADER_EPOCH) -> PartitionLeader:
        """The leader, if this node leads at the caller's leader epoch. Raises KafkaError otherwise."""
        if current_leader_epoch != NO_LEADER_EPOCH and current_leader_epoch != self.leader_epoch:
            if current_leader_epoch < self.leader_epoch:
                raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)
        if self.leader is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return self.leader

    @property
    def is_leader(self) -> bool:
        return self.leader is not None

    @property
    def is_leading(self) -> bool:
        """Whether this node leads it and its directory is online."""
        return self.leader is not None and self.log.failure is None

    # --- in -------------------------------------------------------------------------------------------

    def append_own(self, records: CheckedRecords, transaction_version: int = 0) -> AppendInfo:
        """Append records of this node itself, with acks=all. Raises KafkaError."""
        (result,) = self.append_as_leader(
            [records], AppendOrigin.COORDINATOR, transaction_version, acks_all=True
        )
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
        """Wait until the high watermark is at least `offset`. Returns None if it is. Raises KafkaError."""
        if self.log.high_watermark >= offset:
            return None
        return future_of(self.require_leader().commit_waiters, offset, timeout_ms)

    def when_deleted(self, offset: int, timeout_ms: int) -> "asyncio.Future[None] | None":
        """Wait until all replicas that are alive have deleted the records below `offset`. Returns None if
        they have. Raises KafkaError."""
        leader = self.require_leader()
        if leader.low_watermark >= offset:
            return None
        return future_of(leader.low_watermark_waiters, offset, timeout_ms)

    def append_as_leader(
        self,
        sets: list[CheckedRecords],
        origin: AppendOrigin = AppendOrigin.CLIENT,
        transaction_version: int = 0,
        *,
        acks_all: bool,
    ) -> list[AppendInfo | KafkaError]:
        """Append checked records, and advance the high watermark as far as the ISR allows.

        Raises KafkaError if nothing may be appended: not the leader, or under min ISR with acks=all.
        """
        leader, log = self.require_leader(), self.log
        if acks_all and leader.under_min_isr:
            raise leader.not_enough_replicas()
        end, size = log.log_end_offset, log.appended_bytes
        results = log.append_as_leader(sets, leader.epoch, origin, transaction_version)
        assert len(results) == len(sets) and log.log_end_offset >= end
        if log.log_end_offset != end:
            metrics = self.metrics
            metrics.messages_in += log.log_end_offset - end
            metrics.bytes_in += log.appended_bytes - size
            waiters = self.fetch_waiters
            moved = leader.advance_high_watermark()
            if moved and (waiters.consumers or waiters.followers or waiters.committed):
                waiters.high_watermark_moved(log.bounds)
            if waiters.followers:
                waiters.log_end_moved()
        return results

    def append_checked(
        self, checked: "list[CheckedRecords | KafkaError]", *, acks_all: bool
    ) -> "list[AppendInfo | KafkaError]":
        """Append the sets that passed the check. Returns for each set its offsets, or the error."""
        metrics = self.metrics
        metrics.produces += len(checked)
        sets = [outcome for outcome in checked if type(outcome) is CheckedRecords]
        results: list[AppendInfo | KafkaError] = []
        if sets:
            try:
                results = self.append_as_leader(sets, acks_all=acks_all)
            except KafkaError as e:
                results = [e] * len(sets)
        if len(sets) != len(checked):
            appended = iter(results)
            results = [outcome if isinstance(outcome, KafkaError) else next(appended) for outcome in checked]
        for result in results:
            if type(result) is not AppendInfo:
                metrics.failed_produces += 1
        return results

    def record_fetch(
        self,
        replica_id: int,
        fetch_offset: int,
        log_start_offset: int = UNKNOWN_OFFSET,
        broker_epoch: int = NO_BROKER_EPOCH,
    ) -> None:
        """A follower fetches from `fetch_offset`: it has all records below."""
        if self.require_leader().record_fetch(replica_id, fetch_offset, log_start_offset, broker_epoch):
            self.fetch_waiters.high_watermark_moved(self.log.bounds)

    def _settled(self) -> None:
        """A flush that acknowledgements wait for (flush.messages) has advanced."""
        if self.leader is not None and self.leader.record_flush():
            self.fetch_waiters.high_watermark_moved(self.log.bounds)
        if self.follower is not None and self.on_settled is not None:
            self.on_settled(self.topic_partition)

    # --- out ------------------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, isolation: Isolation, min_one_message: bool) -> FetchInfo:
        return self.log.read(offset, max_bytes, isolation, min_one_message)

    def diverging_epoch(self, last_fetched_epoch: int, fetch_offset: int) -> tuple[int, int] | None:
        """(epoch, end offset) where the caller's log diverges from ours, or None."""
        epoch, end_offset = self.log.end_offset_for_epoch(last_fetched_epoch)
        if epoch == NO_LEADER_EPOCH or end_offset < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if epoch < last_fetched_epoch or end_offset < fetch_offset:
            return epoch, end_offset
        return None
