"""The logs of a killed node: opened several at a time, outside the loop, with progress."""

import asyncio
import threading
import uuid
from pathlib import Path

from odradek.core.types import TopicPartition
from odradek.log.manager import LogManager
from odradek.log.opening.starting import Recovery
from tests.unit.log.support import LogRuntime, append, batch, config, idempotent, offsets

ID = uuid.UUID(int=1)
PARTITIONS = 6
VALUE = b"x" * 100_000


class WatchedRuntime(LogRuntime):
    """Counts how much is offloaded, and how much of it at once: the first waits for a second to begin."""

    def __init__(self) -> None:
        super().__init__()
        self.running = self.most = self.total = 0
        self._lock = threading.Lock()
        self.threads: set[str] = set()
        self._met = threading.Event()

    def offload(self, work):  # type: ignore[no-untyped-def]
        def watched():  # type: ignore[no-untyped-def]
            with self._lock:
                self.running += 1
                self.total += 1
                self.most = max(self.most, self.running)
                self.threads.add(threading.current_thread().name)
                if self.running > 1:
                    self._met.set()
            self._met.wait(1)
            try:
                return work()
            finally:
                with self._lock:
                    self.running -= 1

        return super().offload(watched)


def killed(path: Path, *, size: int = 10) -> None:
    async def scenario() -> None:
        manager = LogManager(LogRuntime(), [str(path)])
        manager.open()
        for partition in range(PARTITIONS):
            log = manager.get_or_create(TopicPartition("t", partition), ID, config())
            append(log, *(idempotent(i, value=VALUE) for i in range(size)))
        await manager.close(clean=False)

    asyncio.run(scenario())


def load(runtime: LogRuntime, path: Path, threads: int) -> LogManager:
    manager = LogManager(runtime, [str(path)])
    manager.open()
    asyncio.run(manager.load_beside(lambda topic: config(), threads))
    return manager


def test_logs_are_recovered_beside_the_loop_so_many_at_a_time(tmp_path: Path) -> None:
    killed(tmp_path)
    runtime = WatchedRuntime()
    manager = load(runtime, tmp_path, 2)
    assert list(manager.logs) == [TopicPartition("t", i) for i in range(PARTITIONS)]
    for log in manager.logs.values():
        assert offsets(log, 9) == [] or offsets(log) == list(range(10))
        assert log.log_end_offset == 10
        assert log.producers.entries[7].last_sequence == 9
    assert runtime.total == PARTITIONS
    assert runtime.most == 2
    assert threading.main_thread().name not in runtime.threads
    asyncio.run(manager.close(clean=False))


def test_parallel_and_plain_loading_give_the_same_logs(tmp_path: Path) -> None:
    killed(tmp_path)
    with (tmp_path / "t-3" / "00000000000000000000.log").open("r+b") as file:
        file.seek(5 * len(idempotent(0, value=VALUE).buffer) + 70)
        file.write(b"?")
    manager = load(LogRuntime(), tmp_path, 4)
    ends = {tp: (log.log_end_offset, log.size_bytes) for tp, log in manager.logs.items()}
    assert ends[TopicPartition("t", 3)][0] == 5
    asyncio.run(manager.close(clean=False))
    plain = LogManager(LogRuntime(), [str(tmp_path)])
    plain.open()
    plain.load(lambda topic: config())
    assert {tp: (log.log_end_offset, log.size_bytes) for tp, log in plain.logs.items()} == ends
    asyncio.run(plain.close(clean=False))


def test_progress_is_told_in_partitions_and_bytes(tmp_path: Path) -> None:
    killed(tmp_path)
    manager = LogManager(LogRuntime(), [str(tmp_path)])
    manager.open()
    told: list[tuple[int, int]] = []
    recovery = manager.recovery
    recovery.on_progress = lambda: told.append((recovery.logs_done, recovery.size_bytes_done))
    asyncio.run(manager.load_beside(lambda topic: config(), 2))
    size = sum(log.size_bytes for log in manager.logs.values())
    assert (recovery.logs, recovery.size_bytes) == (PARTITIONS, size)
    assert told[-1] == (PARTITIONS, size)
    assert told == sorted(told)
    asyncio.run(manager.close())


def test_a_clean_stop_leaves_nothing_to_recover(tmp_path: Path) -> None:
    killed(tmp_path)
    asyncio.run(load(LogRuntime(), tmp_path, 2).close())
    runtime = WatchedRuntime()
    manager = load(runtime, tmp_path, 2)
    assert (manager.recovery.logs, runtime.total) == (0, 0)
    assert [log.log_end_offset for log in manager.logs.values()] == [10] * PARTITIONS
    asyncio.run(manager.close())


def test_progress_reads_as_a_person_reads_it() -> None:
    recovery = Recovery()
    for _ in range(120):
        recovery.expect(92_000_000)
    for _ in range(37):
        recovery.opened()
    recovery.read(4_200_000_000)
    assert str(recovery) == "recovered 37 of 120 partitions, 4.2 of 11 GB"


def test_small_logs_are_read_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        manager = LogManager(LogRuntime(), [str(tmp_path)])
        manager.open()
        append(manager.get_or_create(TopicPartition("t", 0), ID, config()), batch(3))
        await manager.close(clean=False)

    asyncio.run(scenario())
    runtime = WatchedRuntime()
    manager = load(runtime, tmp_path, 2)
    assert runtime.total == 0
    assert manager.logs[TopicPartition("t", 0)].log_end_offset == 3
    asyncio.run(manager.close())
