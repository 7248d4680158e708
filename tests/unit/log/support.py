"""Logs on real, faulty or simulated disks, a stopped clock, and the batches to put into a log."""

import asyncio
import dataclasses
import functools
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from odradek.core.configs import NodeConfig, TopicConfig
from odradek.core.errors import KafkaError
from odradek.core.types import Buffer, TopicPartition
from odradek.log.log import AppendInfo, Isolation, Log
from odradek.log.producers.rules import AppendOrigin
from odradek.records.batch import Record, build_batch, iter_batches, iter_records
from odradek.records.check import CheckedRecords
from odradek.records.control import ControlType, EndTransactionMarker, marker_record, parse_control_key
from odradek.runtime.real import RealDisk, RealNet
from odradek.sim.world.disk import DiskFaults, SimDisk
from odradek.sim.world.process import Process
from odradek.sim.world.trace import Trace
from odradek.sim.world.volume import Volume

T = TypeVar("T")
TP = TopicPartition("orders", 0)
NOW_MS = 1_750_000_000_000


class StillClock:
    def __init__(self) -> None:
        self.ms = NOW_MS
        self.jumped_ms = 0  # how far somebody has set the wall clock

    def now_ms(self) -> int:
        return self.ms + self.jumped_ms

    def steady_ms(self) -> int:
        return self.ms


class FaultyDisk(RealDisk):
    """A real disk whose next writes or syncs can be told to fail or to fall short."""

    __slots__ = ("fail", "short")

    def __init__(self) -> None:
        super().__init__()
        self.fail: dict[str, int] = {}
        self.short = 0

    def _strike(self, name: str) -> None:
        code = self.fail.get(name)
        if code is not None:
            raise OSError(code, os.strerror(code))

    def pwrite(self, fd: int, data: Buffer, offset: int) -> int:
        if self.short and len(data) > self.short:
            return os.pwrite(fd, memoryview(data)[: self.short], offset)
        self._strike("pwrite")
        return os.pwrite(fd, data, offset)

    def pwritev(self, fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        if self.short:
            return os.pwrite(fd, memoryview(b"".join(buffers))[: self.short], offset)
        self._strike("pwritev")
        return os.pwritev(fd, buffers, offset)

    def fdatasync(self, fd: int) -> None:
        self._strike("fdatasync")
        os.fdatasync(fd)

    def ftruncate(self, fd: int, length: int) -> None:
        self._strike("ftruncate")
        os.ftruncate(fd, length)


class LogRuntime:
    def __init__(self) -> None:
        self.clock = StillClock()
        self.disk = FaultyDisk()
        self.net = RealNet()
        self.rng = random.Random(1)

    def offload(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        return asyncio.get_running_loop().run_in_executor(None, work)

    in_background = for_quorum = offload


class VolumeRuntime(LogRuntime):
    """One life of a process on a volume that outlives it: what a crash takes is for the next one to find.

    A machine that goes through many lives hands each the clock and the chance of the one before.
    """

    def __init__(
        self,
        volume: Volume,
        *,
        clock: StillClock | None = None,
        rng: random.Random | None = None,
        faults: DiskFaults | None = None,
    ) -> None:
        super().__init__()
        self.clock = clock or self.clock
        self.rng = rng or self.rng
        self.faults = faults or DiskFaults()
        self.process = Process("node")
        self.disk = SimDisk(  # type: ignore[assignment]
            volume,
            self.process,
            self.faults,
            self.rng,
            Trace(lambda: 0.0),
            self.clock.now_ms,
            lambda seconds: None,
        )


@functools.cache
def _default_config() -> TopicConfig:
    return TopicConfig.resolve(NodeConfig.from_sources({}, {})[0])


def config(**changes: Any) -> TopicConfig:
    return dataclasses.replace(_default_config(), **changes)


def batch(
    count: int = 1,
    *,
    value: bytes = b"value",
    timestamp: int = NOW_MS,
    step_ms: int = 0,
    **fields: Any,
) -> CheckedRecords:
    records = [(timestamp + i * step_ms, None, value, ()) for i in range(count)]
    data = build_batch(records, **fields)
    return CheckedRecords(data, list(iter_batches(data)))


def idempotent(
    sequence: int, count: int = 1, producer_id: int = 7, epoch: int = 0, **fields: Any
) -> CheckedRecords:
    return batch(count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, **fields)


def transactional(sequence: int, count: int = 1, **fields: Any) -> CheckedRecords:
    return idempotent(sequence, count, transactional=True, **fields)


def marker(
    *,
    committed: bool,
    producer_id: int = 7,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    timestamp: int = NOW_MS,
) -> CheckedRecords:
    key, value = marker_record(EndTransactionMarker(committed, coordinator_epoch))
    data = build_batch(
        [(timestamp, key, value, ())],
        producer_id=producer_id,
        producer_epoch=epoch,
        transactional=True,
        control=True,
    )
    return CheckedRecords(data, list(iter_batches(data)))


def merged(*sets: CheckedRecords) -> CheckedRecords:
    """Several batches as one set."""
    data = bytearray().join(bytes(s.buffer) for s in sets)
    return CheckedRecords(data, list(iter_batches(data)))


def open_log(
    runtime: LogRuntime, path: Path, *, changes: dict[str, Any] | None = None, **options: Any
) -> Log:
    return Log.open(runtime, str(path / str(TP)), TP, None, config(**(changes or {})), **options)


def append(
    log: Log, *sets: CheckedRecords, epoch: int = 0, origin: AppendOrigin = AppendOrigin.CLIENT
) -> list[AppendInfo]:
    """Append sets that must be accepted, and let readers see them."""
    results = log.append_as_leader(sets, epoch, origin)
    infos = []
    for result in results:
        if isinstance(result, KafkaError):
            raise result
        infos.append(result)
    log.advance_high_watermark(log.log_end_offset)
    return infos


def records(log: Log, offset: int = 0, isolation: Isolation = Isolation.HIGH_WATERMARK) -> list[Record]:
    """Everything a reader sees from an offset on, fetched in small pieces."""
    found = []
    while True:
        info = log.read(offset, 200, isolation)
        if info.slice is None:
            return found
        data = info.slice.read()
        for located in iter_batches(data):
            found += [r for r in iter_records(data, located) if r.offset >= offset]
            offset = located.last_offset + 1


def consume(log: Log, isolation: Isolation, max_bytes: int) -> list[Record]:
    """What a consumer makes of what it fetches: aborted data skipped, control records not shown."""
    found: list[Record] = []
    offset = log.log_start_offset
    while (info := log.read(offset, max_bytes, isolation)).slice is not None:
        data = info.slice.read()
        aborted = sorted(info.aborted or [], key=lambda txn: txn[1])
        skipped: set[int] = set()
        for located in iter_batches(data):
            while aborted and aborted[0][1] <= located.last_offset:
                skipped.add(aborted.pop(0)[0])
            inside = list(iter_records(data, located))
            if located.is_control:
                if inside and parse_control_key(inside[0].key) is ControlType.ABORT:
                    skipped.discard(located.producer_id)
            elif not (located.is_transactional and located.producer_id in skipped):
                found += [record for record in inside if record.offset >= offset]
            offset = located.last_offset + 1
    return found


def offsets(log: Log, offset: int = 0) -> list[int]:
    return [record.offset for record in records(log, offset)]


def files(log: Log) -> list[str]:
    return sorted(os.listdir(log.path))
