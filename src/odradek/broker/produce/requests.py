"""PendingProduce: one Produce request from its frame to its reply, with the outcome of each partition."""

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from odradek.core.errors import ErrorCode, KafkaError, ProtocolError, RecordError
from odradek.log.log import AppendInfo
from odradek.runtime.reply import Reply
from odradek.wire.headers import RequestHeader
from odradek.wire.produce import PartitionProduced, ProduceRequest, encode_produce_response

if TYPE_CHECKING:
    from odradek.broker.network.connection import Connection, Place
    from odradek.replication.leader import PartitionLeader
    from odradek.replication.partition import Partition
    from odradek.replication.verification import Guard

ACKS_ALL = -1
ACKS_NONE = 0
ACKS_LEADER = 1

_TOLD_WITH_LOG_START = frozenset({ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_TXN_STATE})


class Entry:
    """The records of one request for one partition, and their outcome."""

    __slots__ = ("guard", "index", "leader", "outcome", "partition", "records")

    def __init__(self, index: int, records: memoryview | None) -> None:
        self.index = index
        self.records = records
        self.partition: Partition | None = None
        self.leader: PartitionLeader | None = None  # the leader that appended it
        self.outcome: AppendInfo | KafkaError | None = None
        self.guard: Guard | None = None  # while the transaction coordinator is asked

    def answer(self) -> PartitionProduced:
        assert self.outcome is not None
        return produced(self.index, self.outcome, self.partition)


def produced(
    index: int, outcome: AppendInfo | KafkaError, partition: "Partition | None"
) -> PartitionProduced:
    """The answer for one partition. As in Apache, only errors that name records have a message."""
    if not isinstance(outcome, KafkaError):
        return PartitionProduced(
            index, 0, outcome.first_offset, outcome.log_append_time_ms, outcome.log_start_offset
        )
    records, message = (outcome.records, outcome.message) if isinstance(outcome, RecordError) else ((), None)
    leader, log_start_offset = None, -1
    if outcome.code in _TOLD_WITH_LOG_START and partition is not None and message is None:
        log_start_offset = partition.log.log_start_offset
    if outcome.code is ErrorCode.NOT_LEADER_OR_FOLLOWER and partition is not None:
        leader = partition.leader_id, partition.leader_epoch
    return PartitionProduced(index, outcome.code, -1, -1, log_start_offset, records, message, leader)


class PendingProduce:
    """One Produce request from its frame to its reply."""

    __slots__ = (
        "acks",
        "connection",
        "header",
        "place",
        "then",
        "timeout_ms",
        "timer",
        "topics",
        "transactional_id",
        "waiting",
    )

    def __init__(self, connection: "Connection", header: RequestHeader, parsed: ProduceRequest) -> None:
        self.connection = connection
        self.header = header
        self.acks = parsed.acks
        self.transactional_id = parsed.transactional_id
        self.timeout_ms = parsed.timeout_ms
        self.topics = [
            (topic, [Entry(index, records) for index, records in partitions])
            for topic, partitions in parsed.topics
        ]
        self.waiting: dict[Entry, None] = {}
        self.place: Place | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.then: Callable[[], None] | None = None  # called after the wait

    @property
    def entries(self) -> Iterator[Entry]:
        for _, entries in self.topics:
            yield from entries

    def detach(self) -> None:
        """Copy the records, because the receive buffer will be reused."""
        for _, entries in self.topics:
            for entry in entries:
                if entry.records is not None:
                    entry.records = memoryview(bytearray(entry.records))

    def encoded(self) -> bytes:
        topics = [(topic, [entry.answer() for entry in entries]) for topic, entries in self.topics]
        return encode_produce_response(self.header.api_version, self.header.correlation_id, topics)

    def finish(self) -> None:
        """Reply now, or when the high watermark has passed all written records.

        With acks=1 and flush.messages: when all written records are flushed.
        """
        if self.acks == ACKS_NONE:
            self._finish_unacknowledged()
            return
        for _, entries in self.topics:
            for entry in entries:
                self._wait_for_acks(entry)
        if not self.waiting:
            if self.place is None:
                self.connection.reply(self.header, self.encoded())
            else:
                self.connection.fulfil(self.place, self.encoded())
            return
        if self.place is None:
            self.place = self.connection.reserve(self.header)
        self._begin_to_wait(self._reply_late)

    def when_acknowledged(self) -> Reply[None]:
        """The same wait for a part of a request, without a reply."""
        if self.acks != ACKS_NONE:
            for entry in self.entries:
                self._wait_for_acks(entry)
        if not self.waiting:
            return Reply(None)
        acknowledged: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._begin_to_wait(lambda: acknowledged.set_result(None))
        return Reply.later(acknowledged)

    def _begin_to_wait(self, then: Callable[[], None]) -> None:
        self.then = then
        loop = asyncio.get_running_loop()
        self.timer = loop.call_later(self.timeout_ms / 1000, self._time_out)

    def _reply_late(self) -> None:
        assert self.place is not None
        self.connection.fulfil(self.place, self.encoded())

    def _finish_unacknowledged(self) -> None:
        if self.place is None:
            self.connection.reply(self.header)  # an empty reply, so that the request is counted
        else:
            self.connection.fulfil(self.place)
        self.raise_if_refused()

    def raise_if_refused(self) -> None:
        """With acks=0 the only way to report an error is to close the connection."""
        for _, entries in self.topics:
            for entry in entries:
                if isinstance(entry.outcome, KafkaError):
                    raise ProtocolError(f"produce with acks=0 failed: {entry.outcome.code.name}")

    def _wait_for_acks(self, entry: Entry) -> None:
        info, partition = entry.outcome, entry.partition
        if not isinstance(info, AppendInfo) or partition is None:
            return
        leader = entry.leader
        if leader is None or partition.leader is not leader:
            # It resigned since the append: another record may be at that offset now.
            if self.acks == ACKS_ALL:
                entry.outcome = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        if self.acks == ACKS_ALL:
            end_offset, waiters = partition.log.high_watermark, leader.commit_waiters
        elif leader.flushes:
            end_offset, waiters = partition.log.settled_offset, leader.flush_waiters
        else:
            return
        if end_offset > info.last_offset:
            if self.acks == ACKS_ALL and leader.under_min_isr and not leader.has_enough_replicas:
                entry.outcome = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
            return
        self.waiting[entry] = None
        waiters.add(info.last_offset + 1, lambda error: self._end_wait(entry, error))

    def _end_wait(self, entry: Entry, error: KafkaError | None) -> None:
        if entry not in self.waiting:
            return
        del self.waiting[entry]
        leader = entry.leader
        assert leader is not None
        if error is None and self.acks == ACKS_ALL and not leader.has_enough_replicas:
            error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        if error is not None:
            entry.outcome = error
        if not self.waiting:
            assert self.timer is not None and self.then is not None
            self.timer.cancel()
            self.then()

    def _time_out(self) -> None:
        for entry in list(self.waiting):
            self._end_wait(entry, KafkaError(ErrorCode.REQUEST_TIMED_OUT))
