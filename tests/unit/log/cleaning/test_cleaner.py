"""The node's cleaner: every setting acts, a changed log ends its job, and each kind of failure has its own
reaction."""

import asyncio
import errno
import threading
import time
import uuid
import zlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from odradek.core.configs import TopicConfig
from odradek.core.types import TRANSACTION_STATE_TOPIC, Buffer, TopicPartition
from odradek.log.cleaning.candidates import examine
from odradek.log.cleaning.cleaner import Cleaner
from odradek.log.cleaning.planning import delete_retention_ms, prepare
from odradek.log.cleaning.settings import CleanerSettings
from odradek.log.log import Log
from odradek.log.manager import LogManager
from tests.support.cleaning import SETTINGS, keyed, pairs
from tests.unit.log.support import NOW_MS, FaultyDisk, LogRuntime, append, config, files

QUICK = SETTINGS._replace(backoff_ms=20)
COMPACT: dict[str, Any] = {"cleanup_policy": ("compact",), "segment_bytes": 2000, "index_interval_bytes": 100}


class Node:
    """Logs and their cleaner, without anything else of a node."""

    def __init__(self, path: Path, settings: CleanerSettings, disk: FaultyDisk | None = None) -> None:
        self.runtime = LogRuntime()
        if disk is not None:
            self.runtime.disk = disk
        self.path = path
        self.manager = LogManager(self.runtime, [str(path)])
        self.manager.open()
        self.manager.load(lambda topic: config(**COMPACT))
        self.cleaner = Cleaner(self.runtime, self.manager, settings)

    def log(self, name: str = "orders", **changes: Any) -> Log:
        topic_config: TopicConfig = config(**{**COMPACT, **changes})
        return self.manager.get_or_create(
            TopicPartition(name, 0), uuid.UUID(int=zlib.crc32(name.encode())), topic_config
        )


def fill(log: Log, count: int = 100, keys: int = 10, value: bytes = b"v" * 50) -> None:
    for i in range(count):
        append(log, keyed([(b"%d" % (i % keys), value)]))


def play(
    path: Path, story: Callable[[Node], Awaitable[None]], settings: CleanerSettings = QUICK, **how: Any
) -> None:
    async def main() -> None:
        node = Node(path, settings, **how)
        try:
            await asyncio.wait_for(story(node), 30)
        finally:
            await node.cleaner.close()
            await node.manager.close()

    asyncio.run(main())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


def leftovers(log: Log) -> list[str]:
    return [name for name in files(log) if name.endswith((".cleaned", ".swap"))]


def checkpoint(path: Path) -> str:
    return (path / "cleaner-offset-checkpoint").read_text()


def test_a_dirty_log_is_cleaned_and_its_checkpoint_written(tmp_path: Path) -> None:
    async def story(node: Node) -> None:
        log = node.log()
        fill(log)
        node.cleaner.start()
        await until(lambda: node.cleaner.cleanings == 1)
        assert len(pairs(log)) < 40
        await until(lambda: (tmp_path / "cleaner-offset-checkpoint").exists())
        assert checkpoint(tmp_path) == f"0\n1\norders 0 {log.cleaned_offset}\n"
        assert node.cleaner.written_bytes < node.cleaner.read_bytes
        assert 0 < node.cleaner.recopied_ratio < 1
        assert leftovers(log) == []

    play(tmp_path, story)

    async def again(node: Node) -> None:
        log = node.log()
        assert log.cleaned_offset is not None
        node.cleaner.start()
        await until(lambda: node.cleaner.max_dirty_ratio >= 0)
        await asyncio.sleep(0.1)
        assert node.cleaner.cleanings == 0, "what was cleaned before a restart is not dirty after it"

    play(tmp_path, again)


def test_a_log_that_is_not_compacted_is_left_alone(tmp_path: Path) -> None:
    async def story(node: Node) -> None:
        fill(node.log("plain", cleanup_policy=("delete",)))
        assert await node.cleaner.start_due() == 0

    play(tmp_path, story)


def test_log_cleaner_enable_turns_it_off(tmp_path: Path) -> None:
    async def story(node: Node) -> None:
        fill(node.log())
        node.cleaner.start()
        await asyncio.sleep(0.1)
        assert node.cleaner.cleanings == 0
        node.cleaner.reconfigure(QUICK)
        await until(lambda: node.cleaner.cleanings == 1)

    play(tmp_path, story, QUICK._replace(enabled=False))


def test_log_cleaner_threads_bounds_the_logs_cleaned_at_once(tmp_path: Path) -> None:
    async def story(node: Node) -> None:
        logs = [node.log(f"t{i}") for i in range(5)]
        for log in logs:
            fill(log)
        assert await node.cleaner.start_due() == 2
        assert [log.being_cleaned for log in logs].count(True) == 2
        assert await node.cleaner.start_due() == 0
        node.cleaner.reconfigure(QUICK._replace(threads=3))
        assert await node.cleaner.start_due() == 1
        await until(lambda: node.cleaner.cleanings == 3)

    play(tmp_path, story, QUICK._replace(threads=2))


def test_the_dirtiest_is_cleaned_first(tmp_path: Path) -> None:
    async def story(node: Node) -> None:
        clean, dirty = node.log("clean"), node.log("dirty")
        fill(clean)
        fill(dirty)
        clean.compaction.cleaned_offset = 30
        assert await node.cleaner.start_due() == 1
        assert dirty.being_cleaned
        assert not clean.being_cleaned
        await until(lambda: node.cleaner.cleanings == 1)
        assert await node.cleaner.start_due() == 1
        assert clean.being_cleaned

    play(tmp_path, story)


def test_log_cleaner_backoff_ms_is_the_pause_between_looks(tmp_path: Path) -> None:
    async def looks(node: Node, seconds: float) -> int:
        seen: list[int] = []
        look = node.cleaner.start_due
        node.cleaner.start_due = lambda: seen.append(1) or look()  # type: ignore[method-assign,func-returns-value]
        node.cleaner.start()
        await asyncio.sleep(seconds)
        return len(seen)

    async def short(node: Node) -> None:
        assert await looks(node, 0.3) >= 5

    async def long(node: Node) -> None:
        assert await looks(node, 0.3) == 1
        node.cleaner.reconfigure(QUICK)
        await until(lambda: node.cleaner.last_look_ms == NOW_MS)

    play(tmp_path / "short", short, QUICK._replace(backoff_ms=20))
    play(tmp_path / "long", long, QUICK._replace(backoff_ms=60_000))


def test_log_cleaner_io_max_bytes_per_second_slows_it_down(tmp_path: Path) -> None:
    """Without a limit it is done in less time than the limit asks for: the best of several, since the machine
    may be busy."""
    durations: list[float] = []

    async def duration(node: Node) -> float:
        log = node.log()
        fill(log, 200)
        moved = log.size_bytes
        loop = asyncio.get_running_loop()
        began = loop.time()
        node.cleaner.start_due()
        await until(lambda: node.cleaner.cleanings == 1)
        assert moved > 20_000
        return loop.time() - began

    async def fast(node: Node) -> None:
        durations.append(await duration(node))

    async def slow(node: Node) -> None:
        # Everything is read twice, and a part of it written.
        assert await duration(node) > 0.7

    while len(durations) < 10 and min(durations, default=1.0) >= 0.5:
        play(tmp_path / f"fast-{len(durations)}", fast)
    assert min(durations) < 0.5, durations
    play(tmp_path / "slow", slow, QUICK._replace(max_bytes_per_second=50_000.0, io_buffer_bytes=8192))


class CountingDisk(FaultyDisk):
    """Notes how much a cleaning asks for at once, and can hold a call until it is let go."""

    __slots__ = ("_gate", "reached", "sizes")

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []
        self._gate: threading.Event | None = None
        self.reached = threading.Event()

    def hold(self) -> threading.Event:
        self._gate = threading.Event()
        return self._gate

    def preadv(self, fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        self.sizes.append(sum(len(buffer) for buffer in buffers))
        if self._gate is not None:
            self.reached.set()
            self._gate.wait(20)
        return RealPreadv(fd, buffers, offset)


RealPreadv = FaultyDisk.preadv


@pytest.mark.parametrize(
    ("io_buffer_bytes", "threads", "most"), [(16384, 1, 8192), (32768, 2, 8192), (10, 1, 4096)]
)
def test_log_cleaner_io_buffer_size_is_what_is_read_at_once(
    tmp_path: Path, io_buffer_bytes: int, threads: int, most: int
) -> None:
    disk = CountingDisk()

    async def story(node: Node) -> None:
        log = node.log(segment_bytes=30_000)
        fill(log, 600)
        disk.sizes.clear()
        node.cleaner.start_due()
        await until(lambda: node.cleaner.cleanings == 1)
        assert max(disk.sizes) == most

    settings = QUICK._replace(io_buffer_bytes=io_buffer_bytes, threads=threads, dedupe_buffer_bytes=4 << 20)
    play(tmp_path, story, settings, disk=disk)


def test_a_batch_larger_than_the_buffer_is_read_nevertheless(tmp_path: Path) -> None:
    async def story(node: Node) -> None:
        log = node.log(segment_bytes=200_000)
        append(
            log, keyed([(b"a", b"x" * 50_000), (b"a", b"y" * 50_000), (b"b", None)]), keyed([(b"b", b"1")])
        )
        log.roll()
        node.cleaner.start_due()
        await until(lambda: node.cleaner.cleanings == 1)
        assert [(offset, key) for offset, key, _ in pairs(log)] == [(1, b"a"), (3, b"b")]

    play(tmp_path, story, QUICK._replace(io_buffer_bytes=8192))


def test_log_cleaner_dedupe_buffer_size_is_shared_by_the_threads(tmp_path: Path) -> None:
    assert SETTINGS._replace(dedupe_buffer_bytes=24 * 1000, threads=4).map_bytes == 24 * 250

    async def story(node: Node) -> None:
        log = node.log()
        fill(log, 100, keys=100)
        node.cleaner.start_due()
        await until(lambda: node.cleaner.cleanings == 1)
        assert log.cleaned_offset == 36, "90 per cent of 40 slots"

    play(tmp_path, story, QUICK._replace(dedupe_buffer_bytes=24 * 80, threads=2))


# --- changes under a job ----------------------------------------------------------------------------------


def held(tmp_path: Path, change: Callable[[Node, Log], None], after: Callable[[Node, Log], None]) -> None:
    """Change a log while a piece of its cleaning is under way elsewhere."""
    disk = CountingDisk()

    async def story(node: Node) -> None:
        log = node.log()
        fill(log)
        gate = disk.hold()
        node.cleaner.start_due()
        await until(disk.reached.is_set)
        change(node, log)
        gate.set()
        await until(lambda: not log.being_cleaned)
        assert node.cleaner.cleanings == 0
        assert node.cleaner.uncleanable == {}
        after(node, log)

    play(tmp_path, story, disk=disk)


def test_a_truncation_ends_a_job(tmp_path: Path) -> None:
    def after(node: Node, log: Log) -> None:
        assert log.log_end_offset == 50
        assert [offset for offset, _, _ in pairs(log)] == list(range(50))
        assert leftovers(log) == []

    held(tmp_path, lambda node, log: log.truncate_to(50) and None, after)  # type: ignore[func-returns-value]


def test_a_deletion_ends_a_job(tmp_path: Path) -> None:
    def after(node: Node, log: Log) -> None:
        assert "-delete" in log.path
        assert leftovers(log) == []
        assert not (tmp_path / "orders-0").exists()

    held(tmp_path, lambda node, log: node.manager.delete(log.topic_partition), after)


def test_a_policy_without_compaction_ends_a_job(tmp_path: Path) -> None:
    def change(node: Node, log: Log) -> None:
        log.update_config(config(**{**COMPACT, "cleanup_policy": ("delete",)}))

    held(tmp_path, change, lambda node, log: leftovers(log) == [] or pytest.fail("files are left"))


def test_a_failed_directory_ends_a_job(tmp_path: Path) -> None:
    held(
        tmp_path,
        lambda node, log: log.fail(OSError(errno.EIO, "broken"), "testing") and None,  # type: ignore[func-returns-value]
        lambda node, log: leftovers(log) == [] or pytest.fail("files are left"),
    )


def test_a_stop_ends_a_job_and_leaves_no_file(tmp_path: Path) -> None:
    disk = CountingDisk()

    async def story(node: Node) -> None:
        log = node.log()
        fill(log)
        gate = disk.hold()
        node.cleaner.start_due()
        await until(disk.reached.is_set)
        closing = asyncio.ensure_future(node.cleaner.close())
        await asyncio.sleep(0.05)
        assert not closing.done(), "it waits for the piece under way"
        gate.set()
        await closing
        assert leftovers(log) == []
        assert not log.being_cleaned

    play(tmp_path, story, disk=disk)


def test_retention_waits_for_the_cleaning_and_then_has_its_turn(tmp_path: Path) -> None:
    disk = CountingDisk()

    async def story(node: Node) -> None:
        log = node.log(cleanup_policy=("compact", "delete"), retention_ms=1)
        fill(log)
        node.runtime.clock.ms = int(time.time() * 1000) + 10_000
        gate = disk.hold()
        node.cleaner.start_due()
        await until(disk.reached.is_set)
        assert await node.manager.tick_retention() == 0
        gate.set()
        await until(lambda: not log.being_cleaned)
        assert node.cleaner.cleanings == 1
        assert log.log_start_offset == log.log_end_offset

    play(tmp_path, story, disk=disk)


# --- failures ---------------------------------------------------------------------------------------------


def test_a_corrupt_log_is_left_alone_and_the_others_are_cleaned(tmp_path: Path) -> None:
    async def story(node: Node) -> None:
        broken, good = node.log("broken"), node.log("good")
        fill(broken)
        fill(good)
        path = Path(broken.segments.first.file.path)
        data = bytearray(path.read_bytes())
        data[70] ^= 1
        path.write_bytes(data)
        node.cleaner.start()
        await until(lambda: node.cleaner.cleanings == 1 and bool(node.cleaner.uncleanable))
        assert list(node.cleaner.uncleanable) == [broken]
        assert leftovers(broken) == []
        assert broken.failure is None
        append(broken, keyed([(b"a", b"still served")]))
        await asyncio.sleep(0.1)
        assert node.cleaner.cleanings == 1
        node.manager.delete(broken.topic_partition)
        assert node.cleaner.uncleanable == {}

    play(tmp_path, story)


class FullDisk(FaultyDisk):
    """Has no room for cleaned segments as long as it is told so."""

    __slots__ = ("code",)

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code

    def open(self, path: str, flags: int, mode: int = 0o644) -> int:
        if path.endswith(".cleaned") and self.code:
            raise OSError(self.code, "told to fail", path)
        return FaultyDiskOpen(path, flags, mode)


FaultyDiskOpen = FaultyDisk.open


def test_without_space_it_tries_again_later_and_the_log_stays_online(tmp_path: Path) -> None:
    disk = FullDisk(errno.ENOSPC)

    async def story(node: Node) -> None:
        log = node.log()
        fill(log)
        node.cleaner.start()
        await asyncio.sleep(0.15)
        assert (log.failure, node.cleaner.cleanings, node.cleaner.uncleanable) == (None, 0, {})
        disk.code = 0
        await until(lambda: node.cleaner.cleanings == 1)

    play(tmp_path, story, disk=disk)


def test_a_disk_that_fails_takes_the_directory_offline(tmp_path: Path) -> None:
    async def story(node: Node) -> None:
        log = node.log()
        fill(log)
        node.cleaner.start_due()
        await until(lambda: log.failure is not None)
        assert node.manager.directories[0].failure is not None
        assert node.cleaner.uncleanable == {}

    play(tmp_path, story, disk=FullDisk(errno.EIO))


# --- what protects fencing --------------------------------------------------------------------------------


def test_tombstones_of_the_transaction_log_are_kept_for_a_day_at_least(tmp_path: Path) -> None:
    async def story(node: Node) -> None:
        day_ms = 86_400_000
        state = node.log(TRANSACTION_STATE_TOPIC, delete_retention_ms=0)
        other = node.log(delete_retention_ms=0)
        assert (delete_retention_ms(state), delete_retention_ms(other)) == (day_ms, 0)
        state.update_config(config(**{**COMPACT, "delete_retention_ms": 3 * day_ms}))
        assert delete_retention_ms(state) == 3 * day_ms
        append(state, keyed([(b"txn-1", None)]), keyed([(b"z", b"1")]))
        state.roll()
        state.update_config(config(**{**COMPACT, "delete_retention_ms": 0}))
        for wait_ms, left in ((0, 2), (day_ms - 1, 2), (1, 1)):
            node.runtime.clock.ms += wait_ms
            state.compaction.cleaned_offset = None
            node.cleaner.start_due()
            await until(lambda: not state.being_cleaned)
            assert len(pairs(state)) == left

    play(tmp_path, story)


def test_the_secret_of_a_map_is_drawn_anew_each_time(tmp_path: Path) -> None:
    async def story(node: Node) -> None:
        log = node.log()
        fill(log)
        candidate = examine(log, NOW_MS)
        plans = [prepare(candidate, QUICK, NOW_MS, node.runtime.rng) for _ in range(2)]
        assert plans[0].secret != plans[1].secret
        assert len(plans[0].secret) == 16

    play(tmp_path, story)
