"""LedLog: the log of an internal topic's partition for its coordinator: appends, reads, and waits for
commits."""

import asyncio

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, TRANSACTION_STATE_TOPIC
from odradek.log.log import Isolation
from odradek.records.batch import build_batch, iter_batches
from odradek.records.check import CheckedRecords
from odradek.records.control import EndTransactionMarker
from odradek.replication.partition import Partition
from odradek.replication.waiters import future_of


class LedLog:
    """A partition at the leader epoch at which this node was elected. At any other epoch it refuses
    appends."""

    __slots__ = ("_leader", "_partition", "_sequence", "leader_epoch")

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._leader = partition.require_leader()
        # As Apache's coordinators write it: 0 in batches of __consumer_offsets. Nothing reads it.
        of_transactions = partition.topic_partition.topic == TRANSACTION_STATE_TOPIC
        self._sequence = NO_SEQUENCE if of_transactions else 0
        self.leader_epoch = self._leader.epoch

    @property
    def high_watermark(self) -> int:
        return self._partition.log.high_watermark

    @property
    def log_end_offset(self) -> int:
        return self._partition.log.log_end_offset

    @property
    def log_start_offset(self) -> int:
        return self._partition.log.log_start_offset

    @property
    def max_batch_bytes(self) -> int:
        return self._partition.log.config.max_message_bytes

    def append(
        self,
        records: list[tuple[bytes, bytes | None]],
        now_ms: int,
        producer: tuple[int, int] | None = None,
    ) -> int:
        """Append one batch with acks=all, transactional if `producer` is given. Returns the log end
        offset."""
        assert records, "a batch has records"
        partition = self._partition
        self._require_same_epoch()
        rows = [(now_ms, key, value, ()) for key, value in records]
        producer_id, producer_epoch = producer or (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
        batch = build_batch(
            rows,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=self._sequence,
            transactional=producer is not None,
        )
        if len(batch) > partition.log.config.max_message_bytes:
            raise KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE)
        return partition.append_own(CheckedRecords(batch, list(iter_batches(batch)))).last_offset + 1

    def append_marker(
        self,
        producer: tuple[int, int],
        marker: EndTransactionMarker,
        transaction_version: int,
        now_ms: int,
    ) -> int:
        """End a producer's transaction. Returns the log end offset after the marker."""
        self._require_same_epoch()
        return self._partition.append_marker(producer, marker, transaction_version, now_ms).last_offset + 1

    def when_committed(self, offset: int, timeout_ms: int | None = None) -> "asyncio.Future[None]":
        """Wait until the high watermark is at least `offset`, at this leader epoch."""
        waiters = self._leader.commit_waiters
        future = future_of(waiters, offset, timeout_ms)
        if self._partition.leader is self._leader:
            waiters.release(self._partition.log.high_watermark)
        else:
            waiters.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return future

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Complete batches from an offset, at least one, up to the log end."""
        info = self._partition.read(offset, max_bytes, Isolation.LOG_END, min_one_message=True)
        return b"" if info.slice is None else info.slice.read()

    def _require_same_epoch(self) -> None:
        if self._partition.leader is not self._leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
