"""A disk that is full or read-only, and a directory of another node: the error names it, and nothing is
lost."""

import asyncio
import contextlib
import errno
import logging
import re
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from odradek.core.errors import StorageError
from odradek.core.types import TopicPartition
from odradek.log.log import Log
from odradek.log.manager import LogManager
from odradek.runtime.slices import at_once
from odradek.sim.world.disk import DiskFault, DiskFaults
from odradek.sim.world.volume import Volume
from odradek.testing.broker import Broker
from odradek.testing.inline import done_at_once
from tests.support.node import ODRADEK
from tests.unit.log.support import VolumeRuntime, append, batch, config, offsets

T = TypeVar("T")
A, B = TopicPartition("a", 0), TopicPartition("b", 0)
IDS = {A: uuid.UUID(int=1), B: uuid.UUID(int=2)}
SIZE = len(batch().buffer)


class Runtime(VolumeRuntime):
    """A simulated disk that can be told to fail, and no thread beside the loop."""

    def offload(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        return done_at_once(work, carried=OSError)


class Node:
    """Two log directories: `a` lies in the first, `b` in the second."""

    def __init__(self) -> None:
        self.volume = Volume()
        self.faults = DiskFaults()
        self.manager = self._start()

    def _start(self) -> LogManager:
        manager = LogManager(Runtime(self.volume, faults=self.faults), ["/one", "/two"])
        manager.open()
        manager.load(lambda topic: config(segment_bytes=4 * SIZE))
        for tp, topic_id in IDS.items():
            log = manager.get_or_create(tp, topic_id, config(segment_bytes=4 * SIZE))
            log.advance_high_watermark(log.log_end_offset)
        return manager

    def log(self, tp: TopicPartition) -> Log:
        return self.manager.logs[tp]

    async def restart(self) -> None:
        """As after a kill: what the failed directory holds is all there is."""
        await self.manager.close(clean=False)
        self.faults.rules.clear()
        self.manager = self._start()


Step = Callable[[Node], object]
FULL: dict[str, tuple[DiskFault, Step, str]] = {
    "append": (
        DiskFault(errno.ENOSPC, ["pwrite"], "/one/a-0/*.log"),
        lambda node: append(node.log(A), batch()),
        r"/one/a-0/0{20}\.log",
    ),
    "roll": (
        DiskFault(errno.ENOSPC, ["open"], "/one/a-0/*4.log"),
        lambda node: append(node.log(A), batch(), batch()),
        r"/one/a-0/0{19}4\.log",
    ),
    "roll, at the index": (
        DiskFault(errno.ENOSPC, ["open"], "/one/a-0/*4.index"),
        lambda node: append(node.log(A), batch(), batch()),
        r"/one/a-0/0{19}4\.index",
    ),
    "snapshot": (
        DiskFault(errno.ENOSPC, ["pwrite"], "/one/a-0/*.snapshot*"),
        lambda node: append(node.log(A), batch(), batch()),
        r"/one/a-0",
    ),
    "flush": (
        DiskFault(errno.ENOSPC, ["fsync"], "/one/a-0/*.log"),
        lambda node: node.log(A).flush(),
        r"/one/a-0/0{20}\.log",
    ),
    "checkpoint": (
        DiskFault(errno.ENOSPC, ["pwrite"], "/one/replication-offset-checkpoint*"),
        lambda node: node.manager.checkpoint_high_watermarks(),
        r"/one/replication-offset-checkpoint",
    ),
    "epochs": (
        DiskFault(errno.ENOSPC, ["pwrite"], "/one/a-0/leader-epoch-checkpoint*"),
        lambda node: node.log(A).flush(),
        r"/one/a-0/leader-epoch-checkpoint",
    ),
}


@pytest.mark.parametrize("when", FULL)
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS], ids=errno.errorcode.get)
def test_a_directory_that_takes_no_more_goes_offline_and_loses_nothing(
    when: str, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    fault, step, named = FULL[when]

    async def scenario() -> None:
        node = Node()
        for tp in (A, B):
            append(node.log(tp), *(batch() for _ in range(3)))
        node.faults.rules.append(DiskFault(code, fault.operations, fault.pattern))
        with contextlib.suppress(StorageError):
            step(node)
        while node.manager.work.in_flight:
            await asyncio.sleep(0)
        assert [info.failure is None for info in at_once(node.manager.describe())] == [False, True]
        assert re.search(f"Log directory /one is offline: .*{named}", caplog.text), caplog.text
        with pytest.raises(StorageError):
            append(node.log(A), batch())
        append(node.log(B), batch())
        await node.restart()
        left = offsets(node.log(A))
        assert left[:3] == [0, 1, 2]
        assert left == list(range(len(left)))
        assert offsets(node.log(B)) == [0, 1, 2, 3]
        (info,) = append(node.log(A), batch())
        assert info.first_offset == len(left)
        await node.manager.close()

    asyncio.run(scenario())


def test_a_full_disk_in_recovery_takes_the_directory_offline_and_the_next_start_mends_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        node = Node()
        for tp in (A, B):
            append(node.log(tp), *(batch() for _ in range(9)))
        await node.manager.close(clean=False)
        node.faults.rules.append(DiskFault(errno.ENOSPC, ["open"], "/one/a-0/*.index"))
        manager = LogManager(Runtime(node.volume, faults=node.faults), ["/one", "/two"])
        manager.open()
        manager.load(lambda topic: config(segment_bytes=4 * SIZE))
        assert list(manager.logs) == [B]
        assert re.search(r"Log directory /one is offline: .*/one/a-0/\d+\.index", caplog.text)
        await manager.close(clean=False)
        node.faults.rules.clear()
        node.manager = node._start()
        assert offsets(node.log(A)) == offsets(node.log(B)) == list(range(9))
        await node.manager.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES], ids=errno.errorcode.get)
def test_a_read_only_directory_is_named_and_the_other_one_serves(
    code: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        node = Node()
        for tp in (A, B):
            append(node.log(tp), batch())
        await node.manager.close()
        operations = ["open", "pwrite", "ftruncate", "unlink", "rename", "mkdir"]
        node.faults.rules.append(DiskFault(code, operations, "/one/*"))
        manager = LogManager(Runtime(node.volume, faults=node.faults), ["/one", "/two"])
        manager.open()
        manager.load(lambda topic: config())
        assert list(manager.logs) == [B]
        assert re.search(
            "Log directory /one is offline: .*Cannot use log directory /one: .*/one/.lock", caplog.text
        )
        await manager.close()
        alone = LogManager(Runtime(node.volume, faults=node.faults), ["/one"])
        with pytest.raises(StorageError, match="/one"):
            alone.open()
        node.faults.rules.clear()
        node.manager = node._start()
        assert offsets(node.log(A)) == [0]
        await node.manager.close()

    caplog.set_level(logging.INFO)
    asyncio.run(scenario())


# --- whose directory it is ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("used") / "data"
    with Broker(data_dir=str(path)):
        pass
    return path


def started(log_dirs: object, *settings: str) -> "subprocess.CompletedProcess[str]":
    arguments = [argument for setting in settings for argument in ("--set", setting)]
    return subprocess.run(
        [ODRADEK, "start", "--port", "0", "--http", "off", "--set", f"log.dirs={log_dirs}", *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def state(path: Path) -> dict[str, bytes]:
    return {
        str(file): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.name != ".lock"
    }


def test_a_directory_of_another_node_is_refused_and_left_alone(used: Path) -> None:
    before = state(used)
    done = started(used, "node.id=7", "controller.quorum.voters=7@127.0.0.1:9093")
    assert done.returncode == 1
    assert f"{used}/meta.properties" in done.stderr
    assert "Stored node id 1 doesn't match" in done.stderr
    assert state(used) == before


def test_directories_of_two_clusters_are_refused(used: Path, tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path / "other")):
        pass
    before = state(used), state(tmp_path / "other")
    done = started(f"{used},{tmp_path / 'other'}")
    assert done.returncode == 1
    assert f"Invalid cluster.id in: {tmp_path / 'other'}/meta.properties" in done.stderr
    assert (state(used), state(tmp_path / "other")) == before


def with_cluster_id(path: Path, cluster_id: bytes) -> bytes:
    return re.sub(rb"cluster\.id=.*", b"cluster.id=" + cluster_id, path.read_bytes())


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda path: path.unlink(), "No `meta.properties` found in"),
        (lambda path: path.write_bytes(b"\xff\0nonsense"), "meta.properties"),
        (lambda path: path.write_bytes(path.read_bytes()[:20]), "meta.properties"),
        (lambda path: path.write_bytes(path.read_bytes()[:-5]), "its last line is incomplete: 'cluster.id="),
        (lambda path: path.write_bytes(with_cluster_id(path, b"")), "cluster.id '' must be 1 to 22"),
        (lambda path: path.write_bytes(with_cluster_id(path, b"a" * 39)), "must be 1 to 22"),
    ],
    ids=["missing", "nonsense", "torn", "torn id", "empty id", "long id"],
)
def test_a_directory_that_does_not_tell_whose_it_is_is_refused(
    tmp_path: Path, damage: Callable[[Path], object], said: str
) -> None:
    path = tmp_path / "data"
    with Broker(data_dir=str(path)):
        pass
    damage(path / "meta.properties")
    before = state(path)
    done = started(path)
    assert done.returncode == 1
    assert said in done.stderr
    assert str(path) in done.stderr
    assert state(path) == before
