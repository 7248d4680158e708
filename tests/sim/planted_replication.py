"""Faults planted into replication, one rule broken each. The simulation must catch each by a named rule.

`python -m tests.sim.planted_replication` searches for the first seed that catches each; CI plays the seeds in
CAUGHT. The machine of replication alone is much cheaper than whole nodes, so it plays what it can show.
"""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from odradek.controller import brokers, isr
from odradek.controller.elections import change_partition
from odradek.log.parts.epoch_cache import EpochCache
from odradek.replication import follower_fetch, leader
from odradek.replication.fetching.fetcher import Fetcher
from odradek.replication.follower import PartitionFollower
from odradek.replication.isr import CommittedIsr, PendingExpand, PendingShrink, high_watermark_of
from odradek.replication.leader import PartitionLeader
from odradek.replication.manager import ReplicaManager
from odradek.replication.partition import Partition
from odradek.replication.progress import FollowerProgress
from odradek.replication.proposals import IsrAnswer, IsrProposal
from odradek.sim.replication import rules
from odradek.sim.replication.machine.story import play

Planted = tuple[tuple[object, str, Any], ...]

_begin_epoch = Partition._begin_epoch
_advance, _alter_partition = PartitionLeader.advance_high_watermark, isr.alter_partition
_records_for_shutdown = brokers.records_for_shutdown
_end_offset_for, _record_fetch = EpochCache.end_offset_for, Partition.record_fetch


# --- leaders ------------------------------------------------------------------------------------------


def _on_any_log(replicas: Any, partition: Partition, fetch: Any, follower: Any) -> bool:
    """Whether the follower's log diverges is not asked."""
    log = partition.log
    return partition.is_leader and log.log_start_offset <= fetch.fetch_offset <= log.log_end_offset


def _only_the_heard(leader_end: int, in_sync: Any, outside: Any, may_join: Any) -> int:
    return high_watermark_of(leader_end, [f for f in in_sync if f.is_heard], outside, may_join)


def _advance_always(self: PartitionLeader) -> bool:
    under, self.under_min_isr = self.under_min_isr, False
    moved = _advance(self)
    self.under_min_isr = under
    return moved


def _keep_followers(self: Partition, registration: Any) -> None:
    """What was known of the followers in the last epoch that this node led."""
    log: Any = self.log
    if self.leader is not None:
        log.last_followers = dict(self.leader._followers._by_id)
    _begin_epoch(self, registration)
    if self.leader is not None:
        for known in getattr(log, "last_followers", {}).values():
            follower = self.leader._followers.get(known.broker_id)
            if follower is not None and known.is_heard:
                follower.log_end_offset = known.log_end_offset
                follower.broker_epoch = known.broker_epoch


def _end_of_the_log(self: EpochCache, epoch: int, log_end_offset: int) -> tuple[int, int]:
    found, end = _end_offset_for(self, epoch, log_end_offset)
    return found, end if end < 0 else log_end_offset


def _count_any_incarnation(
    self: Partition, replica_id: int, fetch_offset: int, log_start_offset: int = -1, broker_epoch: int = -1
) -> None:
    _record_fetch(self, replica_id, fetch_offset, log_start_offset, -1)


def _expand_early(self: PartitionLeader, follower: FollowerProgress) -> None:
    isr_state = self.isr
    if type(isr_state) is CommittedIsr and follower.broker_id not in isr_state.members:
        has_committed = follower.log_end_offset >= self._log.high_watermark
        if has_committed and self._context.is_eligible(follower):
            self._propose(PendingExpand(isr_state, follower.broker_id))


def _take_any_answer(self: PartitionLeader, proposal: IsrProposal, answer: IsrAnswer) -> bool:
    """An answer is taken for the current state, whatever it answers; a refusal is taken for a success."""
    self._set_isr(CommittedIsr(proposal.state.proposed))
    if answer.partition_epoch > self.partition_epoch:
        self.partition_epoch = answer.partition_epoch
    self.configure()
    self.advance_high_watermark()
    return False


# --- followers ----------------------------------------------------------------------------------------


def _to_the_high_watermark(self: PartitionFollower) -> None:
    self.log.truncate_to(self.log.high_watermark)


def _stays(self: Fetcher, key: Any) -> None:
    """A fetcher does not hear that a partition has another leader."""


# --- the controller -----------------------------------------------------------------------------------


def _any_partition_epoch(c: Any, request: Any, now_ms: int, next_offset: int) -> Any:
    for topic in request.topics:
        for asked in topic.partitions:
            partition = c.image.topics_by_id[topic.topic_id].partitions[asked.partition_index]
            asked.partition_epoch = partition.partition_epoch
    return _alter_partition(c, request, now_ms, next_offset)


def _any_member_epoch(c: Any, request: Any, now_ms: int, next_offset: int) -> Any:
    for topic in request.topics:
        for asked in topic.partitions:
            for member in asked.new_isr_with_epochs:
                member.broker_epoch = -1
    return _alter_partition(c, request, now_ms, next_offset)


def _always_clean(c: Any, broker_id: int, clean: bool) -> Any:
    return _records_for_shutdown(c, broker_id, True)


def _keep_in_the_elr(*args: Any, unclean_shutdown: Any = (), **kwargs: Any) -> Any:
    return change_partition(*args, **kwargs)


PLANTED: dict[str, Planted] = {
    "a diverging fetch counted": ((follower_fetch, "_is_on_our_log", _on_any_log),),
    "an unheard follower counted as caught up": ((leader, "high_watermark_of", _only_the_heard),),
    "a high watermark under min ISR": ((PartitionLeader, "advance_high_watermark", _advance_always),),
    "follower ends kept over an epoch": ((Partition, "_begin_epoch", _keep_followers),),
    "the end of an old epoch taken from the log end": ((EpochCache, "end_offset_for", _end_of_the_log),),
    "truncation to the high watermark": ((PartitionFollower, "begin", _to_the_high_watermark),),
    "AlterPartition without the partition epoch": ((isr, "alter_partition", _any_partition_epoch),),
    "AlterPartition without the member epoch": ((isr, "alter_partition", _any_member_epoch),),
    "a stale answer taken": (
        (PartitionLeader, "holds", lambda self, proposal: True),
        (PartitionLeader, "answered", _take_any_answer),
    ),
    "a shrink before it is committed": ((PendingShrink, "maximal", property(lambda s: s.proposed)),),
    "expansion before the epoch start": ((PartitionLeader, "_maybe_expand", _expand_early),),
    "a response of an old epoch appended": ((Fetcher, "remove", _stays),),
    "the fetch of a previous incarnation counted": (
        (ReplicaManager, "require_current", lambda self, follower: None),
        (Partition, "record_fetch", _count_any_incarnation),
    ),
    "a registration always taken as clean": ((brokers, "records_for_shutdown", _always_clean),),
    "unclean replicas kept in the ELR": ((brokers, "change_partition", _keep_in_the_elr),),
}


@contextmanager
def planted(fault: str) -> Iterator[None]:
    with ExitStack() as stack:
        for target, name, broken in PLANTED[fault]:
            stack.enter_context(patch.object(target, name, broken))
        yield


SEARCHED = 200

# The seed that catches each fault.
CAUGHT: dict[str, int] = {
    "a diverging fetch counted": 1,
    "an unheard follower counted as caught up": 0,
    "a high watermark under min ISR": 1,
    "follower ends kept over an epoch": 57,
    "the end of an old epoch taken from the log end": 0,
    "truncation to the high watermark": 126,
    "AlterPartition without the partition epoch": 178,
    "AlterPartition without the member epoch": 5,
    "a stale answer taken": 6,
    "a shrink before it is committed": 0,
    "expansion before the epoch start": 12,
    "a response of an old epoch appended": 3,
    "the fetch of a previous incarnation counted": 5,
    "a registration always taken as clean": 6,
    "unclean replicas kept in the ELR": 6,
}
NEARBY = 10
"""A change of the code tells other stories, so CI goes on with the seeds behind one that catches nothing."""
NAMED = rules.RULES


def search(fault: str, first: int = 0, count: int = SEARCHED) -> tuple[int, str] | None:
    """The first seed that catches a fault, and what is violated."""
    with planted(fault):
        for seed in range(first, first + count):
            violation = play(seed).violation
            if violation is not None and violation.startswith(NAMED):
                return seed, violation
    return None


if __name__ == "__main__":
    found = {fault: search(fault) for fault in PLANTED}
    for fault, catch in found.items():
        print(f"{fault}: {'not caught' if catch is None else f'seed {catch[0]}: {catch[1]}'}")
    sys.exit(0 if all(found.values()) else 3)
