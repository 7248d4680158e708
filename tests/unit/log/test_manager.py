"""All logs of a node: opened, created, deleted, checkpointed, and a directory that fails."""

import asyncio
import errno
import os
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odradek.core.configs import TopicConfig
from odradek.core.errors import StorageError
from odradek.core.types import TopicPartition
from odradek.log.checkpoints import (
    MetaProperties,
    format_meta_properties,
    format_partition_metadata,
    parse_offsets,
)
from odradek.log.manager import DirectoryInUseError, LogManager
from odradek.log.managing.log_dir import DuplicateLogError
from odradek.runtime.slices import at_once
from tests.unit.log.support import LogRuntime, append, batch, config, idempotent, offsets

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
ID_A, ID_B = uuid.UUID(int=1 << 90), uuid.UUID(int=2)
SIZE = len(batch().buffer)


def configs(**changes: Any) -> "Callable[[str], TopicConfig]":
    return lambda topic: config(**changes)


def started(runtime: LogRuntime, *paths: Path, **changes: Any) -> LogManager:
    manager = LogManager(runtime, [str(path) for path in paths])
    manager.open()
    manager.load(configs(**changes))
    return manager


def stopped(manager: LogManager, **options: Any) -> None:
    asyncio.run(manager.close(**options))


def checkpoint(path: Path, name: str) -> dict[TopicPartition, int]:
    return parse_offsets((path / name).read_bytes())


def test_logs_and_their_offsets_survive_a_clean_restart(runtime: LogRuntime, tmp_path: Path) -> None:
    manager = started(runtime, tmp_path)
    log = manager.get_or_create(A0, ID_A, config())
    manager.get_or_create(B0, ID_B, config())
    append(log, *(idempotent(i) for i in range(10)))
    log.increment_log_start_offset(4)
    stopped(manager, broker_epoch=17)
    assert (tmp_path / ".kafka_cleanshutdown").read_bytes() == b'{"version":0,"brokerEpoch":17}'
    assert checkpoint(tmp_path, "recovery-point-offset-checkpoint") == {A0: 10, B0: 0}
    assert checkpoint(tmp_path, "replication-offset-checkpoint") == {A0: 10, B0: 0}
    assert checkpoint(tmp_path, "log-start-offset-checkpoint") == {A0: 4}
    manager = LogManager(runtime, [str(tmp_path)])
    manager.open()
    assert manager.directories[0].previous_broker_epoch == 17
    manager.load(configs())
    log = manager.logs[A0]
    assert (log.topic_id, log.log_start_offset, log.high_watermark, log.recovery_point) == (ID_A, 4, 10, 10)
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert manager.logs[B0].topic_id == ID_B
    stopped(manager)


def test_an_unclean_stop_is_recovered_with_the_checkpoints(runtime: LogRuntime, tmp_path: Path) -> None:
    manager = started(runtime, tmp_path)
    log = manager.get_or_create(A0, ID_A, config())
    append(log, batch(), batch())
    stopped(manager, clean=False)
    with (tmp_path / "a-0" / "00000000000000000000.log").open("ab") as file:
        file.write(b"torn")
    manager = started(runtime, tmp_path)
    assert manager.logs[A0].log_end_offset == 2
    assert manager.logs[A0].recovery_point == 0
    stopped(manager)


def test_a_directory_in_use_is_refused(runtime: LogRuntime, tmp_path: Path) -> None:
    manager = started(runtime, tmp_path)
    with pytest.raises(DirectoryInUseError, match="another one, is using this directory"):
        started(runtime, tmp_path)
    stopped(manager)
    stopped(started(runtime, tmp_path))


def test_meta_properties_say_whose_directory_it_is(runtime: LogRuntime, tmp_path: Path) -> None:
    meta = MetaProperties("cluster", 3, uuid.UUID(int=77))
    (tmp_path / "meta.properties").write_bytes(format_meta_properties(meta, 0))
    manager = started(runtime, tmp_path)
    assert manager.directories[0].meta == meta
    assert at_once(manager.describe())[0].directory_id == uuid.UUID(int=77)
    stopped(manager)


def test_broken_checkpoints_cost_only_time(runtime: LogRuntime, tmp_path: Path) -> None:
    manager = started(runtime, tmp_path)
    append(manager.get_or_create(A0, ID_A, config()), batch(5))
    stopped(manager)
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (tmp_path / name).write_bytes(b"\0\0\0")
    (tmp_path / ".kafka_cleanshutdown").unlink()
    manager = started(runtime, tmp_path)
    assert manager.logs[A0].log_end_offset == 5
    stopped(manager)


def test_a_deleted_log_is_out_of_sight_at_once_and_gone_after_its_delay(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    manager = started(runtime, tmp_path)
    log = manager.get_or_create(A0, ID_A, config(file_delete_delay_ms=1000))
    append(log, batch())
    manager.delete(A0)
    assert manager.get(A0) is None
    assert not (tmp_path / "a-0").exists()
    assert [name for name in os.listdir(tmp_path) if name.endswith("-delete")]
    again = manager.get_or_create(A0, ID_B, config())
    assert (again.topic_id, again.log_end_offset) == (ID_B, 0)
    asyncio.run(manager.tick_deletes())
    runtime.clock.ms += 1000
    asyncio.run(manager.tick_deletes())
    assert not [name for name in os.listdir(tmp_path) if name.endswith("-delete")]
    stopped(manager)


@pytest.mark.parametrize("years", [-10, 10])
def test_a_clock_that_is_set_moves_neither_deletions_nor_flushes(
    runtime: LogRuntime, tmp_path: Path, years: int
) -> None:
    async def scenario() -> None:
        manager = started(runtime, tmp_path)
        append(manager.get_or_create(A0, ID_A, config(file_delete_delay_ms=1000)), batch())
        kept = manager.get_or_create(B0, ID_B, config(flush_ms=1000, file_delete_delay_ms=1000))
        append(kept, batch())
        kept.roll()
        await manager.flusher.flush(kept)
        append(kept, batch())
        manager.delete(A0)
        kept.increment_log_start_offset(1)
        assert kept.retain(runtime.clock.now_ms()) == 1
        runtime.clock.jumped_ms = years * 365 * 86_400_000
        await manager.tick_deletes()
        assert len(set_aside(tmp_path)) == 2 and not kept.is_flush_due
        runtime.clock.ms += 1000
        assert kept.is_flush_due  # before the flush of the roll comes back and begins the time anew
        await manager.tick_deletes()
        assert set_aside(tmp_path) == []
        await manager.close()

    asyncio.run(scenario())


def set_aside(directory: Path) -> list[Path]:
    """Deleted logs, and the first files of deleted segments."""
    return [*directory.glob("*-delete"), *directory.glob("*/*.log.deleted")]


def test_a_deletion_that_a_stop_interrupted_is_finished(runtime: LogRuntime, tmp_path: Path) -> None:
    manager = started(runtime, tmp_path)
    append(manager.get_or_create(A0, ID_A, config()), batch())
    manager.delete(A0)
    stopped(manager)
    manager = started(runtime, tmp_path, file_delete_delay_ms=0)
    assert manager.logs == {}
    asyncio.run(manager.tick_deletes())
    assert not [name for name in os.listdir(tmp_path) if name.startswith("a-0")]
    stopped(manager)


def test_strays_are_set_aside_and_left_alone(runtime: LogRuntime, tmp_path: Path) -> None:
    manager = started(runtime, tmp_path)
    append(manager.get_or_create(A0, ID_A, config()), batch())
    manager.get_or_create(B0, ID_B, config())
    stopped(manager)
    for _ in range(2):
        manager = LogManager(runtime, [str(tmp_path)])
        manager.open()
        manager.load(configs(), lambda tp, topic_id: topic_id == ID_A)
        assert list(manager.logs) == [B0]
        stopped(manager)
    (stray,) = [name for name in os.listdir(tmp_path) if name.endswith("-stray")]
    assert stray.startswith("a-0.")
    assert (tmp_path / stray / "00000000000000000000.log").stat().st_size == SIZE


def test_a_log_of_an_older_topic_of_the_same_name_gives_way(runtime: LogRuntime, tmp_path: Path) -> None:
    manager = started(runtime, tmp_path)
    append(manager.get_or_create(A0, ID_A, config()), batch())
    log = manager.get_or_create(A0, ID_B, config())
    assert (log.topic_id, log.log_end_offset) == (ID_B, 0)
    stopped(manager)


def test_the_metadata_log_is_not_the_managers(runtime: LogRuntime, tmp_path: Path) -> None:
    (tmp_path / "__cluster_metadata-0").mkdir()
    manager = started(runtime, tmp_path)
    assert manager.logs == {}
    stopped(manager)


def test_new_logs_go_where_there_are_fewest(runtime: LogRuntime, tmp_path: Path) -> None:
    manager = started(runtime, tmp_path / "x", tmp_path / "y")
    for tp in (A0, A1, B0):
        manager.get_or_create(tp, ID_A, config())
    assert sorted(len(info.sizes) for info in at_once(manager.describe())) == [1, 2]
    stopped(manager)


def test_a_failing_directory_takes_only_its_own_logs_offline(runtime: LogRuntime, tmp_path: Path) -> None:
    manager = started(runtime, tmp_path / "x", tmp_path / "y")
    told: list[str] = []
    manager.on_offline = lambda path, failure: told.append(path)
    first = manager.get_or_create(A0, ID_A, config())
    second = manager.get_or_create(A1, ID_A, config())
    third = manager.get_or_create(B0, ID_B, config())
    assert first.directory == third.directory != second.directory
    runtime.disk.fail["pwrite"] = errno.EIO
    with pytest.raises(StorageError):
        append(first, batch())
    runtime.disk.fail.clear()
    assert told == [first.directory]
    with pytest.raises(StorageError):
        append(third, batch())
    append(second, batch())
    assert [info.failure is None for info in at_once(manager.describe())] == [False, True]
    created = manager.get_or_create(TopicPartition("c", 0), ID_B, config())
    assert created.directory == second.directory
    stopped(manager)
    assert not (tmp_path / "x" / ".kafka_cleanshutdown").exists()
    assert (tmp_path / "y" / ".kafka_cleanshutdown").exists()


def test_a_node_without_a_working_directory_does_not_start(runtime: LogRuntime, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    manager = LogManager(runtime, [str(tmp_path / "file")])
    with pytest.raises(StorageError):
        manager.open()


def test_a_rolled_segment_is_flushed_and_checkpointed_by_itself(runtime: LogRuntime, tmp_path: Path) -> None:
    async def scenario() -> None:
        manager = started(runtime, tmp_path)
        log = manager.get_or_create(A0, ID_A, config(segment_bytes=2 * SIZE))
        append(log, *(batch() for _ in range(7)))
        while manager.flusher.flushing or manager.work.in_flight:
            await asyncio.sleep(0.001)
        assert log.recovery_point == 6
        assert checkpoint(tmp_path, "recovery-point-offset-checkpoint") == {A0: 6}
        await manager.close(clean=False)

    asyncio.run(scenario())


def test_a_flush_that_fails_takes_the_directory_offline(runtime: LogRuntime, tmp_path: Path) -> None:
    async def scenario() -> None:
        manager = started(runtime, tmp_path)
        log = manager.get_or_create(A0, ID_A, config())
        append(log, batch())
        runtime.disk.fail["fdatasync"] = errno.EIO
        log.roll()
        while manager.flusher.flushing or manager.work.in_flight:
            await asyncio.sleep(0.001)
        runtime.disk.fail.clear()
        assert log.recovery_point == 0
        with pytest.raises(StorageError):
            append(log, batch())
        assert at_once(manager.describe())[0].failure is not None
        await manager.close()
        assert not (tmp_path / ".kafka_cleanshutdown").exists()

    asyncio.run(scenario())


def test_a_flush_under_way_does_not_hurt_when_its_log_is_deleted(runtime: LogRuntime, tmp_path: Path) -> None:
    async def scenario() -> None:
        manager = started(runtime, tmp_path)
        log = manager.get_or_create(A0, ID_A, config())
        append(log, batch(), epoch=3)
        log.roll()
        manager.delete(A0)
        while manager.flusher.flushing or manager.work.in_flight:
            await asyncio.sleep(0.001)
        assert at_once(manager.describe())[0].failure is None
        await manager.close()

    asyncio.run(scenario())


def test_flush_ms_is_kept(runtime: LogRuntime, tmp_path: Path) -> None:
    async def scenario() -> None:
        manager = started(runtime, tmp_path)
        log = manager.get_or_create(A0, ID_A, config(flush_ms=50))
        append(log, batch(3))
        manager.tick_flush()
        assert not manager.work.in_flight
        runtime.clock.ms += 50
        manager.tick_flush()
        while manager.flusher.flushing or manager.work.in_flight:
            await asyncio.sleep(0.001)
        assert log.recovery_point == 3
        await manager.close(clean=False)

    asyncio.run(scenario())


def test_checkpoints_are_written_when_they_have_news(runtime: LogRuntime, tmp_path: Path) -> None:
    async def scenario() -> None:
        manager = started(runtime, tmp_path)
        log = manager.get_or_create(A0, ID_A, config())
        append(log, batch(9))
        log.increment_log_start_offset(2)
        for _ in range(2):
            manager.checkpoint_high_watermarks()
            manager.checkpoint_log_starts()
            manager.checkpoint_recovery_points()
            while manager.flusher.flushing or manager.work.in_flight:
                await asyncio.sleep(0.001)
        assert checkpoint(tmp_path, "replication-offset-checkpoint") == {A0: 9}
        assert checkpoint(tmp_path, "log-start-offset-checkpoint") == {A0: 2}
        assert checkpoint(tmp_path, "recovery-point-offset-checkpoint") == {A0: 0}
        await manager.close(clean=False)

    asyncio.run(scenario())


def test_retention_and_producer_expiry_reach_every_log(runtime: LogRuntime, tmp_path: Path) -> None:
    async def scenario() -> None:
        manager = started(runtime, tmp_path)
        for tp in (A0, A1):
            append(manager.get_or_create(tp, ID_A, config(retention_ms=10)), idempotent(0))
        runtime.clock.ms += 86_400_000
        assert await manager.tick_retention() == 2
        assert await manager.tick_producer_expiry() == 2
        assert [log.log_start_offset for log in manager.logs.values()] == [1, 1]
        await manager.close()

    asyncio.run(scenario())


def test_sizes_are_those_of_the_segments(runtime: LogRuntime, tmp_path: Path) -> None:
    manager = started(runtime, tmp_path)
    log = manager.get_or_create(A0, ID_A, config())
    append(log, batch(), batch())
    (info,) = at_once(manager.describe())
    assert info.sizes == [(A0, 2 * SIZE)]
    assert info.total_bytes >= info.usable_bytes > 0
    stopped(manager)


def test_many_logs_need_few_descriptors(runtime: LogRuntime, tmp_path: Path) -> None:
    manager = LogManager(runtime, [str(tmp_path)], max_descriptors=32)
    manager.open()
    manager.load(configs())
    before = len(os.listdir("/proc/self/fd"))
    for partition in range(100):
        append(manager.get_or_create(TopicPartition("a", partition), ID_A, config()), batch())
    assert len(os.listdir("/proc/self/fd")) - before <= 32
    for log in manager.logs.values():
        assert offsets(log) == [0]
    stopped(manager)


def test_a_file_that_is_named_like_a_partition_is_none(runtime: LogRuntime, tmp_path: Path) -> None:
    (tmp_path / "hs_err_pid-4711").write_text("no partition")
    manager = started(runtime, tmp_path)
    assert (manager.logs, manager.directories[0].failure) == ({}, None)
    stopped(manager)
    assert (tmp_path / "hs_err_pid-4711").exists()


def test_a_truncation_below_the_recovery_point_is_in_its_checkpoint_at_once(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    async def scenario() -> None:
        manager = started(runtime, tmp_path)
        log = manager.get_or_create(A0, ID_A, config())
        append(log, batch(5), batch(5))
        log.flush()
        manager.checkpoint_recovery_points()
        while manager.work.in_flight:
            await asyncio.sleep(0)
        log.truncate_to(5)
        assert checkpoint(tmp_path, "recovery-point-offset-checkpoint") == {A0: 5}
        await manager.close()

    asyncio.run(scenario())


def test_a_log_is_deleted_with_whatever_somebody_put_into_its_directory(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    manager = started(runtime, tmp_path / "data")
    log = manager.get_or_create(A0, ID_A, config(file_delete_delay_ms=0))
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("not in the log")
    folder = Path(log.path) / "backup" / "of" / "files"
    folder.mkdir(parents=True)
    (folder / "file").write_text("x")
    (Path(log.path) / "link").symlink_to(outside)
    manager.delete(A0)
    asyncio.run(manager.tick_deletes())
    assert manager.directories[0].failure is None
    assert not [name for name in os.listdir(tmp_path / "data") if name.startswith("a-0")]
    assert (outside / "kept").exists()
    stopped(manager)


def test_a_deleted_log_that_is_gone_already_is_no_failure(runtime: LogRuntime, tmp_path: Path) -> None:
    manager = started(runtime, tmp_path)
    log = manager.get_or_create(A0, ID_A, config(file_delete_delay_ms=0))
    manager.delete(A0)
    shutil.rmtree(log.path)
    asyncio.run(manager.tick_deletes())
    assert manager.directories[0].failure is None
    stopped(manager)


def test_a_partition_in_two_directories_is_told_and_never_guessed(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    """One that the metadata does not know is a stray, wherever the other lies."""
    a, b = tmp_path / "a", tmp_path / "b"
    manager = started(runtime, a, b)
    append(manager.get_or_create(A0, ID_A, config()), batch())
    stopped(manager)
    shutil.copytree(a / "a-0", b / "a-0")
    manager = LogManager(runtime, [str(a), str(b)])
    manager.open()
    with pytest.raises(
        DuplicateLogError, match=f"Duplicate log directories found for a-0: {a}/a-0 and {b}/a-0"
    ):
        manager.load(configs())
    stopped(manager, clean=False)
    (b / "a-0" / "partition.metadata").write_bytes(format_partition_metadata(ID_B))
    manager = LogManager(runtime, [str(a), str(b)])
    manager.open()
    manager.load(configs(), lambda tp, topic_id: topic_id == ID_B)
    assert [log.path for log in manager.logs.values()] == [str(a / "a-0")]
    assert any(name.endswith("-stray") for name in os.listdir(b))
    stopped(manager)
