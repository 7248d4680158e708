"""PartitionLeader: the state of a leader for one leader epoch: its followers, the ISR and the proposed one,
min ISR, and the requests that wait.

A new leader epoch gets a new `PartitionLeader`. `Partition` has appends and waiting fetches.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_LEADER_EPOCH
from odradek.log.log import Log
from odradek.replication.context import LeaderContext
from odradek.replication.followers import Followers
from odradek.replication.isr import (
    CommittedIsr,
    IsrState,
    PendingExpand,
    PendingIsr,
    PendingShrink,
    high_watermark_of,
)
from odradek.replication.progress import NO_BROKER_EPOCH, UNKNOWN_OFFSET, FollowerProgress
from odradek.replication.proposals import NOT_APPLIED, WAIT_FOR_METADATA, IsrAnswer, IsrProposal
from odradek.replication.waiters import CommitWaiters

if TYPE_CHECKING:
    from odradek.metadata.image import PartitionRegistration

_log = logging.getLogger(__name__)


class PartitionLeader:
    """This node leads a partition, at one leader epoch. `on_moved` is called if time, or an answer of the
    controller, moves the high watermark. All other moves are returned to the caller."""

    __slots__ = (
        "_broker_id",
        "_context",
        "_followers",
        "_log",
        "_on_moved",
        "alone",
        "commit_waiters",
        "epoch",
        "epoch_start_offset",
        "flush_waiters",
        "flushes",
        "isr",
        "low_watermark_waiters",
        "min_isr",
        "partition_epoch",
        "replicas",
        "under_min_isr",
    )

    def __init__(
        self,
        log: Log,
        broker_id: int,
        registration: "PartitionRegistration",
        context: LeaderContext,
        on_moved: Callable[[], None],
    ) -> None:
        self._log = log
        self._broker_id = broker_id
        self._context = context
        self._on_moved = on_moved
        self._followers = Followers(context)
        self.epoch = registration.leader_epoch
        self.epoch_start_offset = log.log_end_offset
        self.commit_waiters = CommitWaiters()  # for the high watermark: acks=all
        self.flush_waiters = CommitWaiters()  # for a flush: acks=1 with flush.messages
        self.low_watermark_waiters = CommitWaiters()  # for the low watermark: DeleteRecords
        self.replicas: tuple[int, ...]
        self.isr: IsrState = CommittedIsr(tuple(registration.isr))
        self.partition_epoch = registration.partition_epoch
        self.min_isr: int
        self.flushes: bool
        # Every append reads these two.
        self.under_min_isr: bool
        self.alone: bool  # no follower is waited for, so its records are committed at once
        self.update(registration)

    # --- what the metadata says -----------------------------------------------------------------------

    def update(self, registration: "PartitionRegistration") -> None:
        """Apply the assignment and the ISR of a partition epoch. A proposal made since stays."""
        assert registration.leader == self._broker_id, f"{registration.leader} leads, not {self._broker_id}"
        assert registration.leader_epoch == self.epoch, "a new leader epoch needs a new PartitionLeader"
        assert self._broker_id in registration.isr, "the leader is in the ISR"
        assert set(registration.isr) <= set(registration.replicas), "the ISR is within the assignment"
        if registration.partition_epoch < self.partition_epoch:
            return  # the controller's answer was faster
        self.replicas = tuple(registration.replicas)
        others = (id_ for id_ in self.replicas if id_ != self._broker_id)
        self._followers.assign(others, tuple(registration.isr))
        self.configure()
        is_newer = registration.partition_epoch > self.partition_epoch
        self.partition_epoch = registration.partition_epoch
        if is_newer or type(self.isr) is CommittedIsr or not self._is_possible(self.isr):
            self._commit(tuple(registration.isr))
        else:  # the proposal followed an answer that was faster than the metadata
            self._set_isr(self.isr)

    def _is_possible(self, isr: IsrState) -> bool:
        return set(isr.maximal) <= set(self.replicas)

    def configure(self) -> None:
        """Apply the log's current configuration."""
        # min.insync.replicas, but at most the number of replicas.
        self.min_isr = min(self._log.config.min_insync_replicas, len(self.replicas))
        assert 1 <= self.min_isr <= len(self.replicas)
        self.under_min_isr = len(self.isr.members) < self.min_isr
        self.flushes = self._log.flushes_by_count

    def resign(self, code: ErrorCode) -> None:
        """Another epoch starts, or this node loses the partition: fail all waits, drop the proposal."""
        self.isr = CommittedIsr(self.isr.members)
        self.commit_waiters.fail(code)
        self.flush_waiters.fail(code)
        self.low_watermark_waiters.fail(code)

    # --- what it may do -------------------------------------------------------------------------------

    @property
    def at_min_isr(self) -> bool:
        """Whether acks=all would fail with one in-sync replica fewer."""
        return len(self.isr.members) == self.min_isr

    @property
    def is_under_replicated(self) -> bool:
        return len(self.isr.members) < len(self.replicas)

    @property
    def has_enough_replicas(self) -> bool:
        """Whether what is committed is on min.insync.replicas, with a replica that joins."""
        return len(self.isr.maximal) >= self.min_isr

    @property
    def is_caught_up(self) -> bool:
        """Whether the high watermark includes all records committed under earlier leaders. The leader had
        them when it was elected, but first its followers must confirm that they have them too."""
        return self._log.high_watermark >= self.epoch_start_offset

    def require_replica(self, broker_id: int, current_leader_epoch: int) -> None:
        """Refuse a follower that is not a replica. It retries, because our metadata may be old."""
        if self._followers.get(broker_id) is None:
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

    def record_fetch(
        self,
        replica_id: int,
        fetch_offset: int,
        log_start_offset: int = UNKNOWN_OFFSET,
        broker_epoch: int = NO_BROKER_EPOCH,
    ) -> bool:
        """A follower fetches from `fetch_offset`: it has all records below. Returns whether the high
        watermark moved. A fetch from before its restart says nothing."""
        follower, log = self._followers.get(replica_id), self._log
        assert follower is not None, f"{replica_id} is not a replica"
        assert log.log_start_offset <= fetch_offset <= log.log_end_offset
        if follower.is_outdated(broker_epoch):
            return False
        follower.record(
            fetch_offset, log_start_offset, broker_epoch, log.log_end_offset, self._context.now_ms()
        )
        if follower not in self._followers.in_sync:
            if follower not in self._followers.outside:
                self._set_isr(self.isr)
            self._maybe_expand(follower)
        if self.low_watermark_waiters:
            self.low_watermark_waiters.release(self.low_watermark)
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
            followers = self._followers
            offset = high_watermark_of(own_end, followers.in_sync, followers.outside, self._may_join)
        if not log.advance_high_watermark(offset):
            return False
        if self.commit_waiters:
            self.commit_waiters.release(log.high_watermark)
        return True

    @property
    def low_watermark(self) -> int:
        """The smallest log start of the replicas that are alive; -1 if one of them has not fetched yet."""
        return self._followers.low_watermark(self._log.log_start_offset)

    def tick(self) -> None:
        """Time has passed: propose to shrink the ISR if members do not keep up. Replicas outside that stopped
        to fetch, or are not alive, are no longer waited for."""
        if not self._followers:
            return
        self._set_isr(self.isr)
        self._maybe_shrink()
        if self.low_watermark_waiters:
            self.low_watermark_waiters.release(self.low_watermark)
        if self.advance_high_watermark():
            self._on_moved()

    # --- proposals ------------------------------------------------------------------------------------

    def _may_join(self, follower: FollowerProgress) -> bool:
        return self._followers.may_join(follower, self._log.log_end_offset)

    def _maybe_expand(self, follower: FollowerProgress) -> None:
        """A replica joins that has all committed records. It must have reached this leader epoch, too: the
        high watermark of a new leader may be behind what was committed under the last one."""
        isr = self.isr
        if type(isr) is not CommittedIsr or follower.broker_id in isr.members:
            return
        is_in_sync = follower.log_end_offset >= max(self._log.high_watermark, self.epoch_start_offset)
        if is_in_sync and self._context.is_eligible(follower):
            self._propose(PendingExpand(isr, follower.broker_id))

    def _maybe_shrink(self) -> None:
        isr = self.isr
        if type(isr) is not CommittedIsr:
            return
        lagging = self._followers.lagging(self._log.log_end_offset)
        if lagging:
            self._propose(PendingShrink(isr, lagging))

    def _propose(self, state: PendingIsr) -> None:
        log, tp = self._log, self._log.topic_partition
        assert log.topic_id is not None
        _log.info("Proposing the ISR %s instead of %s for %s", state.proposed, state.members, tp)
        self._set_isr(state)
        epochs = tuple((id_, self._followers.broker_epoch(id_)) for id_ in state.proposed)
        self._context.proposals.submit(
            IsrProposal(self, state, tp, log.topic_id, self.epoch, self.partition_epoch, epochs)
        )

    def holds(self, proposal: IsrProposal) -> bool:
        return self.isr is proposal.state

    def answered(self, proposal: IsrProposal, answer: IsrAnswer) -> bool:
        """Take the controller's answer to the proposal. Returns whether to send it again."""
        assert self.holds(proposal)
        if answer.error is not ErrorCode.NONE:
            return self._refused(proposal, answer.error)
        is_ours = answer.leader_epoch == self.epoch and answer.partition_epoch >= self.partition_epoch
        if not is_ours or not set(answer.isr) <= set(self.replicas) or self._broker_id not in answer.isr:
            self._context.metrics.failed_updates += 1
            return False  # newer metadata is on its way
        self.partition_epoch = answer.partition_epoch
        self._commit(answer.isr)
        if self.advance_high_watermark():
            self._on_moved()
        return False

    def _refused(self, proposal: IsrProposal, error: ErrorCode) -> bool:
        refused, tp = proposal.state.proposed, proposal.topic_partition
        _log.info("The controller refused the ISR %s of %s: %s", refused, tp, error.name)
        self._context.metrics.failed_updates += 1
        if error in NOT_APPLIED:
            self._set_isr(proposal.state.committed)
        return error not in NOT_APPLIED and error not in WAIT_FOR_METADATA

    def _commit(self, members: tuple[int, ...]) -> None:
        """The controller has committed this ISR. A proposal has come true, or is gone."""
        before, metrics = self.isr, self._context.metrics
        if type(before) is PendingExpand and before.joining in members:
            metrics.expands += 1
        elif type(before) is PendingShrink and set(members) == set(before.proposed):
            metrics.shrinks += 1
        self._set_isr(CommittedIsr(members))

    def _set_isr(self, isr: IsrState) -> None:
        assert self._broker_id in isr.members
        assert self._is_possible(isr)
        self.isr = isr
        self.under_min_isr = len(isr.members) < self.min_isr
        self._followers.divide(isr.maximal)
        self.alone = not self._followers.in_sync and not self._followers.outside
