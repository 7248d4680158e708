"""Slot: a shard with its log, the commands that wait for an answer, and whether a long command holds it."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from odradek.coordinators.shard import CoordinatorResult, Encoded, Now, Shard, Ticket
from odradek.records.control import EndTransactionMarker


class PartitionLog(Protocol):
    """One partition of an internal topic that this node leads."""

    @property
    def high_watermark(self) -> int: ...
    @property
    def log_end_offset(self) -> int: ...
    @property
    def log_start_offset(self) -> int: ...

    @property
    def leader_epoch(self) -> int:
        """The epoch at which this node was elected."""
        ...

    def append(self, records: list[Encoded], now_ms: int, producer: tuple[int, int] | None = None) -> int:
        """Append one batch, transactional if `producer` is given. Returns the log end offset after it.

        Raises KafkaError.
        """
        ...

    def append_marker(
        self, producer: tuple[int, int], marker: EndTransactionMarker, transaction_version: int, now_ms: int
    ) -> int:
        """End a producer's transaction. Returns the log end offset after the marker. Raises KafkaError."""
        ...

    def when_committed(self, offset: int, timeout_ms: int | None = None) -> "asyncio.Future[None]":
        """Done when the high watermark is at least `offset`. Fails with NOT_LEADER_OR_FOLLOWER or
        REQUEST_TIMED_OUT."""
        ...

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Complete batches from `offset`, up to the log end."""
        ...

    @property
    def max_batch_bytes(self) -> int:
        """Larger batches are refused."""
        ...


class Slot:
    """A shard, its log, and the commands that wait for it."""

    __slots__ = (
        "applied_end_offset",
        "failed",
        "graces",
        "is_loaded",
        "is_serving",
        "is_taken",
        "is_ticking",
        "loading",
        "log",
        "partition_index",
        "resumed",
        "shard",
        "timer",
        "waiting",
        "waiting_long",
        "waiting_short",
    )

    def __init__(self, partition_index: int, partition_log: PartitionLog, shard: Shard) -> None:
        self.partition_index = partition_index
        self.log = partition_log
        self.shard = shard
        self.applied_end_offset = partition_log.log_start_offset
        self.is_loaded = False
        self.failed = False
        self.loading: asyncio.Task[None] | None = None
        self.waiting: dict[Ticket, asyncio.Future[Any]] = {}
        self.timer: asyncio.TimerHandle | None = None
        self.graces = 0
        self.is_taken = False  # a long command holds it
        self.is_ticking = False  # due deadlines are being handled
        self.is_serving = False  # `_serve_waiting` is scheduled
        self.resumed: deque[Callable[[Now], CoordinatorResult]] = deque()  # committed while it was held
        self.waiting_short: deque[tuple[Any, asyncio.Future[Any]]] = deque()
        self.waiting_long: deque[tuple[Any, asyncio.Future[Any]]] = deque()

    @property
    def queues(self) -> "tuple[deque[tuple[Any, asyncio.Future[Any]]], ...]":
        """Commands that wait for the slot."""
        return self.waiting_short, self.waiting_long

    @property
    def is_busy(self) -> bool:
        """Whether deadlines must wait: for a long command, or for the short commands that wait for the
        slot."""
        return self.is_taken or bool(self.waiting_short)
