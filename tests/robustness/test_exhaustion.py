"""Descriptors or memory run out at any call: no directory goes offline, nothing is lost or half-made."""

import asyncio
import errno
import random
import re
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

import pytest

from odradek.core.configs import NodeConfig, TopicConfig
from odradek.core.errors import ErrorCode, ExhaustedError, KafkaError, StorageError
from odradek.core.types import TopicPartition
from odradek.log.cleaning.cleaner import Cleaner
from odradek.log.cleaning.settings import CleanerSettings
from odradek.log.log import Isolation, Log
from odradek.log.manager import LogManager
from odradek.log.producers.rules import AppendOrigin
from odradek.records.batch import build_batch, iter_batches
from odradek.records.check import CheckedRecords
from odradek.runtime.slices import at_once
from odradek.sim.world.disk import DiskFault, DiskFaults
from odradek.sim.world.loop import SimLoop
from odradek.sim.world.volume import CrashModel, Volume
from odradek.testing.inline import done_at_once
from tests.unit.log.support import (
    VolumeRuntime,
    batch,
    config,
    consume,
    idempotent,
    marker,
    offsets,
    transactional,
)

T = TypeVar("T")
A = TopicPartition("a", 0)
A_ID = uuid.UUID(int=1)
SIZE = len(batch().buffer)
SEGMENT_FILE = re.compile(r"(.*/\d{20})\.(?:log|index|timeindex)")
DIRECTORY = re.compile(r"(/one)?(/a-0)?/?")
# What needs a descriptor; and what may lack memory. An fsync of a file is neither: it is never tried again.
NEEDS_DESCRIPTOR = ("open", "listdir", "fsync")
NEEDS_MEMORY = (*NEEDS_DESCRIPTOR, "pwrite", "ftruncate", "unlink")


class Exhaustion(DiskFault):
    """Strikes a run of calls, from the n-th on; counts them."""

    __slots__ = ("_first", "_length", "calls", "marks")

    def __init__(self, code: int, first: int | None, length: int = 1) -> None:
        super().__init__(code, NEEDS_MEMORY if code == errno.ENOMEM else NEEDS_DESCRIPTOR)
        self._first, self._length = first, length
        self.calls = self.marks = 0

    def strikes(self, operation: str, path: str, rng: random.Random) -> bool:
        if operation not in self.operations or (operation == "fsync" and not DIRECTORY.fullmatch(path)):
            return False
        is_mark = path.endswith(".unflushed")
        if operation == "unlink" and not is_mark:
            return False
        self.marks += is_mark
        self.calls += 1
        return self._first is not None and 0 <= self.calls - 1 - self._first < self._length


class Runtime(VolumeRuntime):
    def offload(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        return done_at_once(work, carried=OSError)

    in_background = for_quorum = offload


CONFIG = config(segment_bytes=4 * SIZE + 40, index_interval_bytes=1, flush_messages=3)
MARKED = config(segment_bytes=4 * SIZE + 40, index_interval_bytes=1)  # no segment is durable when it ends


def start(volume: Volume, faults: DiskFaults) -> LogManager:
    manager = LogManager(Runtime(volume, faults=faults), ["/one"], max_descriptors=3)
    manager.open()
    manager.load(lambda topic: CONFIG)
    return manager


def steps() -> Iterator[list[CheckedRecords]]:
    """Appends of one set and of several, over rolls; producers, a commit, an abort."""
    for number in range(6):
        yield [batch(), batch(), batch()]
        yield [idempotent(number)]
        yield [transactional(number, producer_id=9)]
        yield [marker(committed=number % 2 == 0, producer_id=9)]


def append(log: Log, sets: list[CheckedRecords], volume: Volume) -> None:
    """As a producer does: what has failed is sent again, the rest is not. No failure leaves a file behind."""
    for _ in range(20):
        copies = [CheckedRecords(bytearray(s.buffer), s.batches) for s in sets]
        origin = AppendOrigin.COORDINATOR if sets[0].batches[0].is_control else AppendOrigin.CLIENT
        try:
            results = log.append_as_leader(copies, 0, origin)
        except KafkaError as e:
            results = [e] * len(sets)
        for result in results:
            if isinstance(result, KafkaError):
                assert result.code is ErrorCode.KAFKA_STORAGE_ERROR and result.retriable
                assert isinstance(result, ExhaustedError), result
        sets = [s for s, result in zip(sets, results, strict=True) if isinstance(result, KafkaError)]
        segments = {segment.file.path.removesuffix(".log") for segment in log.segments.all()}
        assert segments >= {found[1] for path in volume.files() if (found := SEGMENT_FILE.fullmatch(path))}
        if not sets:
            return
    raise AssertionError("never appended")


def retried(work: Callable[[], T]) -> T:
    for _ in range(20):
        try:
            return work()
        except ExhaustedError:
            continue
    raise AssertionError("never done")


async def play(manager: LogManager, volume: Volume, topic: TopicConfig) -> None:
    log = retried(lambda: manager.get_or_create(A, A_ID, topic))
    manager.persist_topic_ids()
    for number, sets in enumerate(steps()):
        append(log, sets, volume)
        log.advance_high_watermark(log.log_end_offset)
        at = max(log.log_start_offset, log.high_watermark - 3)
        retried(partial(log.read, at, 200, Isolation.TXN_COMMITTED))
        retried(partial(log.read, log.log_start_offset, 200, Isolation.TXN_COMMITTED))
        manager.checkpoint_high_watermarks()
        if number == 12:
            log.increment_log_start_offset(9)
            manager.checkpoint_log_starts()
            await manager.tick_retention()
            await manager.tick_deletes()
        await asyncio.sleep(0)
    await asyncio.sleep(30)  # what was put off is done
    await manager.tick_deletes()
    manager.checkpoint_high_watermarks()
    manager.checkpoint_log_starts()
    manager.checkpoint_recovery_points()
    await asyncio.sleep(0)


class Seen(dict[str, bytes]):
    """The files of a directory that are about records."""

    @classmethod
    def of(cls, volume: Volume) -> "Seen":
        kept = (".log", ".index", ".timeindex", ".txnindex", ".unflushed", "checkpoint", ".metadata")
        return cls({p: f.data.to_bytes() for p, f in volume.files().items() if p.endswith(kept)})


def run(
    exhaustion: Exhaustion, *, topic: TopicConfig = CONFIG, clean: bool = True, crash: int | None = None
) -> tuple[Seen, list[int]]:
    """Play all of it; what the directory holds in the end, and what a reader of the next life sees."""
    volume, faults = Volume(), DiskFaults()
    loop = SimLoop()

    async def scenario() -> tuple[Seen, list[int]]:
        manager = start(volume, faults)
        faults.rules.append(exhaustion)
        await play(manager, volume, topic)
        faults.rules.clear()
        (info,) = at_once(manager.describe())
        assert info.failure is None
        log = manager.logs[A]
        assert log.failure is None
        assert log.settled_offset == log.log_end_offset, "no acknowledgement waits for a flush for ever"
        log.flush()
        assert not [path for path in volume.files() if path.endswith(".unflushed")], "all of it is durable"
        before = offsets(log, log.log_start_offset)
        committed = [r.offset for r in consume(log, Isolation.TXN_COMMITTED, 10_000)]
        await manager.close(clean=clean)
        seen = Seen.of(volume)
        if crash is not None:
            volume.crash(random.Random(crash), CrashModel())
        again = start(volume, faults)
        found = again.logs[A]
        found.advance_high_watermark(found.log_end_offset)
        assert offsets(found, found.log_start_offset) == before
        assert [r.offset for r in consume(found, Isolation.TXN_COMMITTED, 10_000)] == committed
        await again.close(clean=False)
        return seen, committed

    try:
        return loop.run_until_complete(scenario())
    finally:
        loop.close()


def calls(code: int, topic: TopicConfig = CONFIG) -> int:
    counting = Exhaustion(code, None)
    run(counting, topic=topic)
    assert counting.marks > 3 or topic is not MARKED
    assert counting.calls > 100
    return counting.calls


CODES = [errno.EMFILE, errno.ENFILE, errno.ENOMEM]


@pytest.mark.parametrize("topic", [CONFIG, MARKED], ids=["flushed by count", "marked"])
@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
def test_whichever_call_lacks_a_descriptor_or_memory_nothing_is_lost_or_half_made(
    code: int, topic: TopicConfig
) -> None:
    undisturbed = run(Exhaustion(code, None), topic=topic)
    total = calls(code, topic)
    for first in range(0, total, 2 if code == errno.EMFILE else 7):
        # Long enough that a pool of files which makes room for itself fails too.
        assert run(Exhaustion(code, first, 3), topic=topic) == undisturbed, first


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENOMEM], ids=errno.errorcode.get)
@pytest.mark.parametrize("topic", [CONFIG, MARKED], ids=["flushed by count", "marked"])
def test_after_a_power_loss_all_that_was_flushed_is_there(topic: TopicConfig, code: int) -> None:
    for first in range(0, calls(code, topic), 5):
        run(Exhaustion(code, first, 12), topic=topic, clean=False, crash=first)


@pytest.mark.parametrize("operation", ["fsync"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOMEM], ids=errno.errorcode.get)
def test_records_that_could_not_be_synced_take_the_directory_offline(operation: str, code: int) -> None:
    """Whatever the reason: the cache may have dropped them, and another fsync would say that all is well."""

    async def scenario() -> None:
        faults = DiskFaults()
        manager = start(volume := Volume(), faults)
        log = manager.get_or_create(A, A_ID, CONFIG)
        append(log, [batch()], volume)
        faults.rules.append(DiskFault(code, [operation], "/one/a-0/*.log"))
        with pytest.raises(StorageError):
            log.flush()
        assert [info.failure is None for info in at_once(manager.describe())] == [False]
        await manager.close(clean=False)

    asyncio.run(scenario())


def test_a_cleaning_that_lacks_descriptors_is_tried_again() -> None:
    compacted = config(segment_bytes=4 * SIZE, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0)

    def keyed(key: bytes) -> CheckedRecords:
        data = build_batch([(1_750_000_000_000, key, b"v", ())])
        return CheckedRecords(data, list(iter_batches(data)))

    def clean(exhaustion: Exhaustion) -> list[int]:
        faults, loop = DiskFaults(), SimLoop()

        async def scenario() -> list[int]:
            manager = start(volume := Volume(), faults)
            log = manager.get_or_create(A, A_ID, compacted)
            for number in range(24):
                append(log, [keyed(b"%d" % (number % 3))], volume)
            log.advance_high_watermark(log.log_end_offset)
            node_config, _ = NodeConfig.from_sources({}, {"log.cleaner.backoff.ms": "100"})
            settings = CleanerSettings.from_node(node_config)
            cleaner = Cleaner(manager._runtime, manager, settings)
            faults.rules.append(exhaustion)
            cleaner.start()
            await asyncio.sleep(30)
            await cleaner.close()
            assert cleaner.uncleanable == {} and cleaner.cleanings > 0
            assert [info.failure is None for info in at_once(manager.describe())] == [True]
            left = offsets(log)
            await manager.close()
            return left

        try:
            return loop.run_until_complete(scenario())
        finally:
            loop.close()

    counting = Exhaustion(errno.EMFILE, None)
    undisturbed = clean(counting)
    assert len(undisturbed) < 12
    for first in range(min(counting.calls, 60)):
        assert clean(Exhaustion(errno.EMFILE, first, 3)) == undisturbed


def test_an_index_that_cannot_be_written_yet_holds_up_no_append() -> None:
    whole = config(index_interval_bytes=1)

    async def indexes(lacking: bool) -> dict[str, bytes]:
        volume, faults = Volume(), DiskFaults()
        manager = start(volume, faults)
        log = manager.get_or_create(A, A_ID, whole)
        append(log, [batch()], volume)
        if lacking:
            faults.rules.append(DiskFault(errno.EMFILE, ["open"], "/one/a-0/*index"))
        for number in range(2000):
            segment = log.segments.active
            segment.offset_index.file.close()
            segment.time_index.file.close()
            append(log, [batch(timestamp=1_750_000_000_000 + number)], volume)
        log.advance_high_watermark(log.log_end_offset)
        assert offsets(log) == list(range(2001))
        faults.rules.clear()
        await manager.close()
        return {p: f.data.to_bytes() for p, f in volume.files().items() if p.endswith("index")}

    assert asyncio.run(indexes(lacking=True)) == asyncio.run(indexes(lacking=False))


def test_a_deleted_log_is_removed_once_its_directory_can_be_read() -> None:
    async def scenario() -> None:
        volume, faults = Volume(), DiskFaults()
        manager = start(volume, faults)
        append(manager.get_or_create(A, A_ID, CONFIG), [batch()], volume)
        manager.delete(A)
        manager._runtime.clock.ms += CONFIG.file_delete_delay_ms + 1
        faults.rules.append(DiskFault(errno.EMFILE, ["listdir"], times=1))
        await manager.tick_deletes()
        assert any("-delete/" in path for path in volume.files())
        assert [info.failure for info in at_once(manager.describe())] == [None]
        await manager.tick_deletes()
        assert not any("-delete/" in path for path in volume.files())
        await manager.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("operation", ["open", "listdir"])
def test_a_node_does_not_start_without_a_directory_that_only_lacks_descriptors(operation: str) -> None:
    async def scenario() -> None:
        volume, faults = Volume(), DiskFaults()
        manager = start(volume, faults)
        append(manager.get_or_create(A, A_ID, CONFIG), [batch()], volume)
        await manager.close(clean=False)
        faults.rules.append(DiskFault(errno.EMFILE, [operation], "/one*"))
        with pytest.raises(ExhaustedError, match="/one"):
            start(volume, faults)

    asyncio.run(scenario())


def test_a_log_whose_topic_cannot_be_written_down_yet_is_asked_for_again() -> None:
    async def scenario() -> None:
        volume, faults = Volume(), DiskFaults()
        manager = start(volume, faults)
        append(manager.get_or_create(A, A_ID, CONFIG), [batch()], volume)
        await manager.close()
        volume.unlink("/one/a-0/partition.metadata")
        manager = start(volume, faults)
        faults.rules.append(DiskFault(errno.EMFILE, ["open"], "/one/a-0/partition.metadata*", times=1))
        with pytest.raises(ExhaustedError):
            manager.get_or_create(A, A_ID, CONFIG)
        assert manager.get_or_create(A, A_ID, CONFIG).topic_id == A_ID
        await manager.close()

    asyncio.run(scenario())


def test_a_log_that_is_cut_off_halfway_is_given_up_alone() -> None:
    """A truncation has several steps: after the first the log is not what it says. Others are."""
    other = TopicPartition("b", 0)

    async def scenario() -> None:
        volume, faults = Volume(), DiskFaults()
        manager = start(volume, faults)
        log = manager.get_or_create(A, A_ID, CONFIG)
        append(log, [batch() for _ in range(9)], volume)
        faults.rules.append(DiskFault(errno.EMFILE, ["fsync"], "/one/a-0", times=1))
        with pytest.raises(StorageError):
            log.truncate_to(2)
        assert log.failure is not None
        assert [info.failure for info in at_once(manager.describe())] == [None]
        await manager.close(clean=False)
        again = start(volume, faults)
        assert offsets_of(again.logs[A])[:2] == [0, 1]
        (info,) = again.get_or_create(other, uuid.UUID(int=2), CONFIG).append_as_leader([batch()], 0)
        assert not isinstance(info, KafkaError)
        await again.close()

    def offsets_of(log: Log) -> list[int]:
        log.advance_high_watermark(log.log_end_offset)
        return offsets(log)

    asyncio.run(scenario())
