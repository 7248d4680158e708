"""MachineLog: the log of a partition for the machine of replication, without files. A power loss may cost a
suffix of what was not flushed.

It has the methods of Log that partitions, leaders, followers and fetches use. The epoch cache is real.
"""

from collections.abc import Callable, Sequence
from random import Random
from struct import Struct
from types import SimpleNamespace
from typing import Any, NamedTuple
from uuid import UUID

from odradek.core.configs import TopicConfig
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import Buffer, TopicPartition
from odradek.log.log import AppendInfo, Isolation
from odradek.log.parts.epoch_cache import EpochCache
from odradek.sim.replication.replica_log import Batch

TOPIC, TOPIC_ID = "t", UUID(int=7)
PARTITION = TopicPartition(TOPIC, 0)

# base_offset i64, bytes that follow i32, leader epoch i32, crc u32, number of records i32
_BATCH = Struct(">qiiIi")
_FRONT_BYTES = 12


class Disk:
    """What a node leaves behind: all records after a kill, the flushed ones at least after a power loss."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.flushed = 0
        self.high_watermark = 0
        self.clean_epoch: int | None = None
        """The broker epoch of a clean stop."""

    @property
    def end(self) -> int:
        return self.batches[-1].end if self.batches else 0

    def lose_power(self, random: Random) -> None:
        unflushed = [batch.base for batch in self.batches if batch.end > self.flushed]
        if unflushed and random.random() < 0.7:
            cut = random.choice(unflushed)
            self.batches = [batch for batch in self.batches if batch.base < cut]
        self.flushed = self.end


class _Slice(NamedTuple):
    data: bytes
    size: int

    def read(self) -> bytes:
        return self.data


class _Read(NamedTuple):
    slice: _Slice | None
    size: int
    aborted: None = None


class MachineLog:
    """`changed` hears of every change but that of the high watermark; whether it was a truncation."""

    def __init__(
        self,
        disk: Disk,
        config: TopicConfig,
        next_crc: Callable[[], int],
        changed: Callable[[bool], None],
        *,
        flushes: bool,
    ) -> None:
        self.disk = disk
        self.config = config
        self.topic_partition, self.topic_id = PARTITION, TOPIC_ID
        self.failure = None
        self.directory = "/"
        self.settling = SimpleNamespace(on_settled=None)
        self.epochs = EpochCache()
        for batch in disk.batches:
            self.epochs.assign(batch.epoch, batch.base)
        self.log_start_offset = 0
        self.log_end_offset = disk.end
        self.high_watermark = min(disk.high_watermark, disk.end)
        self.flushes_by_count = flushes
        self.appended_bytes = 0
        self.on_append: Callable[[], None] = lambda: None
        self._next_crc = next_crc
        self._changed = changed

    def __repr__(self) -> str:
        return str(self.topic_partition)

    @property
    def bounds(self) -> "MachineLog":
        return self

    @property
    def latest_epoch(self) -> int:
        return self.epochs.latest

    @property
    def last_stable_offset(self) -> int:
        return self.high_watermark

    @property
    def settled_offset(self) -> int:
        return self.disk.flushed if self.flushes_by_count else self.log_end_offset

    def check_online(self) -> None: ...

    def update_config(self, config: TopicConfig) -> None:
        self.config = config

    # --- appending ------------------------------------------------------------------------------------

    def append_as_leader(self, sets: Sequence[Any], leader_epoch: int, *_: object) -> list[AppendInfo]:
        """Every set is a number of records."""
        infos = []
        for count in sets:
            base = self.log_end_offset
            self._append(Batch(base, base + count, self._next_crc(), leader_epoch))
            infos.append(AppendInfo(base, base + count - 1, -1, self.log_start_offset, False))
        self._changed(False)
        self.on_append()
        return infos

    def append_as_follower(self, records: Buffer, leader_epoch: int = -1) -> None:
        position = 0
        while position < len(records):
            base, _, epoch, crc, count = _BATCH.unpack_from(records, position)
            if base != self.log_end_offset:
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
            self._append(Batch(base, base + count, crc, epoch))
            position += _BATCH.size
        self._changed(False)
        self.on_append()

    def _append(self, batch: Batch) -> None:
        self.disk.batches.append(batch)
        self.epochs.assign(batch.epoch, batch.base)
        self.log_end_offset = batch.end

    def flush(self) -> None:
        if self.disk.flushed < self.log_end_offset:
            self.disk.flushed = self.log_end_offset
            if self.settling.on_settled is not None:
                self.settling.on_settled()

    # --- reading --------------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, isolation: Isolation, min_one_message: bool = True) -> _Read:
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        end = self.log_end_offset if isolation is Isolation.LOG_END else self.high_watermark
        data = bytearray()
        for batch in reversed(self.disk.batches):
            if batch.end <= offset:
                break
            if batch.end <= end:
                data[:0] = _BATCH.pack(
                    batch.base, _BATCH.size - _FRONT_BYTES, batch.epoch, batch.crc, batch.end - batch.base
                )
        data = data[: max(_BATCH.size, max_bytes // _BATCH.size * _BATCH.size)]
        return _Read(_Slice(bytes(data), len(data)) if data else None, len(data))

    def advance_high_watermark(self, offset: int) -> bool:
        if offset <= self.high_watermark:
            return False
        assert offset <= self.log_end_offset, f"high watermark {offset} beyond {self.log_end_offset}"
        self.high_watermark = offset
        return True

    def assign_epoch_start_offset(self, epoch: int, offset: int) -> None:
        self.epochs.assign(epoch, offset)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    # --- start and end --------------------------------------------------------------------------------

    def increment_log_start_offset(self, offset: int) -> bool:
        return False

    def truncate_to(self, offset: int) -> bool:
        if offset >= self.log_end_offset:
            self.epochs.truncate_from_end(offset)
            return False
        batches = self.disk.batches
        while batches and batches[-1].end > offset:
            batches.pop()
        self._ends_at(batches[-1].end if batches else self.log_start_offset)
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        assert offset == 0, "nothing is deleted here"
        self.disk.batches.clear()
        self._ends_at(0)

    def _ends_at(self, offset: int) -> None:
        self.log_end_offset = offset
        self.high_watermark = min(self.high_watermark, offset)
        self.disk.flushed = min(self.disk.flushed, offset)
        self.epochs.truncate_from_end(offset)
        self._changed(True)
