"""A partition's log in memory, with real batches and a high watermark that a test moves by hand."""

import asyncio

from odradek.core.errors import ErrorCode, KafkaError
from odradek.records.batch import build_batch, iter_batches
from odradek.records.control import EndTransactionMarker, marker_record


class FakeLog:
    """Implements coordinators.host.PartitionLog. `held` keeps the high watermark back until `commit`."""

    def __init__(self, *, held: bool = False) -> None:
        self.batches: list[tuple[int, bytes]] = []
        self.held = held
        self.high_watermark = 0
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.leader_epoch = 0
        self.error: KafkaError | None = None
        self.reads = 0
        self.max_batch_bytes = 1 << 20
        self.waiters: list[tuple[int, asyncio.Future[None]]] = []

    def append(
        self, records: list[tuple[bytes, bytes | None]], now_ms: int, producer: tuple[int, int] | None = None
    ) -> int:
        if self.error is not None:
            raise self.error
        producer_id, producer_epoch = (-1, -1) if producer is None else producer
        batch = build_batch(
            [(now_ms, key, value, ()) for key, value in records],
            base_offset=self.log_end_offset,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transactional=producer is not None,
        )
        return self.append_batch(bytes(batch), len(records))

    def append_marker(
        self, producer: tuple[int, int], marker: EndTransactionMarker, transaction_version: int, now_ms: int
    ) -> int:
        if self.error is not None:
            raise self.error
        batch = build_batch(
            [(now_ms, *marker_record(marker), ())],
            base_offset=self.log_end_offset,
            producer_id=producer[0],
            producer_epoch=producer[1],
            transactional=True,
            control=True,
        )
        return self.append_batch(bytes(batch), 1)

    def append_batch(self, batch: bytes, count: int) -> int:
        self.batches.append((self.log_end_offset, batch))
        self.log_end_offset += count
        if not self.held:
            self.commit()
        return self.log_end_offset

    def append_segment(self, segment: bytes) -> None:
        """Take over batches as another broker wrote them."""
        for batch in iter_batches(segment):
            self.batches.append((batch.base_offset, segment[batch.position : batch.position + batch.size]))
            self.log_end_offset = self.high_watermark = batch.last_offset + 1

    def commit(self) -> None:
        self.high_watermark = self.log_end_offset
        waiting, self.waiters = self.waiters, []
        for offset, future in waiting:
            if future.done():
                continue
            if offset <= self.high_watermark:
                future.set_result(None)
            else:
                self.waiters.append((offset, future))

    def lose_leadership(self) -> None:
        waiting, self.waiters = self.waiters, []
        for _, future in waiting:
            if not future.done():
                future.set_exception(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))

    def when_committed(self, offset: int, timeout_ms: int | None = None) -> "asyncio.Future[None]":
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self.waiters.append((offset, future))
        if timeout_ms is not None:
            loop.call_later(timeout_ms / 1000, self._time_out, future)
        return future

    @staticmethod
    def _time_out(future: "asyncio.Future[None]") -> None:
        if not future.done():
            future.set_exception(KafkaError(ErrorCode.REQUEST_TIMED_OUT))

    def read(self, offset: int, max_bytes: int) -> bytes:
        self.reads += 1
        data = b""
        for base_offset, batch in self.batches:
            if next(iter_batches(batch)).last_offset < offset:
                continue
            if data and len(data) + len(batch) > max_bytes:
                break
            assert base_offset >= 0
            data += batch
        return data
