"""Reads the partitions of one fetch, within its byte limits and isolation, with an answer for each.

It does not read the records: an answer has slices of log files, which the connection sends.
"""

from typing import TYPE_CHECKING

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_LEADER_EPOCH
from odradek.log.log import Isolation
from odradek.replication.fetch_sessions import GONE, PartitionFetch, PartitionKey
from odradek.replication.follower_fetch import FetchingReplica
from odradek.replication.manager import ReplicaManager
from odradek.replication.waiters import FetchWatch
from odradek.runtime.slices import Paced

if TYPE_CHECKING:
    from odradek.log.files import FileSlice
    from odradek.replication.partition import Partition

UNKNOWN = -1
_AT_A_TIME = 16
_READ_CALLS = 40
_OPEN_CALLS = 110  # includes closing another file of the pool


class PartitionAnswer:
    """The answer of one partition."""

    __slots__ = (
        "aborted",
        "current_leader",
        "diverging_epoch",
        "error",
        "high_watermark",
        "is_idle",
        "key",
        "last_stable_offset",
        "log_start_offset",
        "partition",
        "records",
        "size",
    )

    def __init__(self, key: PartitionKey) -> None:
        self.key = key
        self.error = ErrorCode.NONE
        self.high_watermark = UNKNOWN
        self.last_stable_offset = UNKNOWN
        self.log_start_offset = UNKNOWN
        self.aborted: list[tuple[int, int]] | None = None
        self.diverging_epoch: tuple[int, int] | None = None
        self.current_leader: tuple[int, int] | None = None
        self.records: FileSlice | None = None
        self.size = 0
        self.is_idle = False  # there are no records for this reader
        self.partition: Partition | None = None


class FetchRead:
    """The answers of one pass over the requested partitions."""

    __slots__ = ("answers", "must_answer", "size")

    def __init__(self) -> None:
        self.answers: list[PartitionAnswer] = []
        self.size = 0
        self.must_answer = False  # an error or a divergence must be answered at once

    def add(self, answer: PartitionAnswer) -> None:
        assert answer.error is ErrorCode.NONE or answer.size == 0
        self.answers.append(answer)
        self.size += answer.size
        if answer.error is not ErrorCode.NONE or answer.diverging_epoch is not None:
            self.must_answer = True


def read_partitions(
    replicas: ReplicaManager,
    wanted: dict[PartitionKey, PartitionFetch],
    max_bytes: int,
    isolation: Isolation,
    follower: FetchingReplica | None,
    most_files: int,
    watch: FetchWatch | None = None,
) -> Paced[FetchRead]:
    """One pass. The first partition with data returns at least one batch, even above every limit.

    The records of each partition keep a file open. After `most_files` partitions with records, the read stops
    as if the byte limit were reached. In the `watch` of a session, a partition without news is no longer
    dirty, and those that were read are marked by their next change.
    """
    read = FetchRead()
    min_one = True
    calls = 0
    for key, fetch in wanted.items() if len(wanted) < _AT_A_TIME else list(wanted.items()):
        answer = PartitionAnswer(key)
        try:
            _read_one(replicas, answer, fetch, max(0, max_bytes - read.size), isolation, min_one, follower)
        except KafkaError as e:
            answer.error = e.code
        else:
            if watch is not None and answer.partition is not None and fetch.turn != GONE:
                fetch.watched = answer.partition.fetch_waiters
                fetch.watched.add(watch, fetch)
                if answer.is_idle and not fetch.has_news(
                    0, False, answer.high_watermark, answer.log_start_offset
                ):
                    watch.dirty.pop(fetch, None)
        if answer.size:
            min_one = False
            most_files -= 1
            if most_files <= 0:
                max_bytes = 0
        read.add(answer)
        calls += _READ_CALLS if not answer.size else _READ_CALLS + _OPEN_CALLS
        if calls >= _AT_A_TIME * _READ_CALLS:
            yield calls
            calls = 0
    return read


def _read_one(
    replicas: ReplicaManager,
    answer: PartitionAnswer,
    fetch: PartitionFetch,
    budget: int,
    isolation: Isolation,
    min_one: bool,
    follower: FetchingReplica | None,
) -> None:
    partition = replicas.partition_of(*answer.key)
    answer.partition = partition
    try:
        if follower is not None:
            leader = partition.require_leader(fetch.current_leader_epoch)
            leader.require_replica(follower.broker_id, fetch.current_leader_epoch)
            replicas.require_current(follower)
        elif isolation is not Isolation.LOG_END:  # replica id -2, with which replicas are compared, reads any
            partition.require_leader(fetch.current_leader_epoch)
    except KafkaError as e:
        if e.code is not ErrorCode.UNKNOWN_LEADER_EPOCH:  # the client has newer metadata than we have
            answer.current_leader = partition.leader_id, partition.leader_epoch
        raise
    if fetch.last_fetched_epoch != NO_LEADER_EPOCH:
        answer.diverging_epoch = partition.diverging_epoch(fetch.last_fetched_epoch, fetch.fetch_offset)
    if answer.diverging_epoch is None:
        info = partition.log.read(fetch.fetch_offset, min(fetch.max_bytes, budget), isolation, min_one)
        answer.records = info.slice
        answer.size = info.size
        answer.aborted = info.aborted
    log = partition.log
    assert answer.size == 0 or answer.diverging_epoch is None
    answer.high_watermark = log.high_watermark
    answer.last_stable_offset = log.last_stable_offset
    answer.log_start_offset = log.log_start_offset
    if answer.size == 0 and answer.diverging_epoch is None:
        # Otherwise there are records, but no room for them.
        if isolation is Isolation.LOG_END:
            bound = log.log_end_offset
        else:
            committed = isolation is Isolation.TXN_COMMITTED
            bound = answer.last_stable_offset if committed else answer.high_watermark
        answer.is_idle = fetch.fetch_offset >= bound
