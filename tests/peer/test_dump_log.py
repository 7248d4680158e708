"""What we write, read by Apache Kafka's own dump-log: every kind of file, without a complaint."""

import asyncio
import re
import uuid
from pathlib import Path

import pytest

from odradek.core.types import TopicPartition
from odradek.log.log import Log
from odradek.log.manager import LogManager
from odradek.log.producers.rules import AppendOrigin
from tests.support import peer
from tests.unit.log.support import (
    NOW_MS,
    LogRuntime,
    append,
    batch,
    config,
    idempotent,
    marker,
    transactional,
)

pytestmark = pytest.mark.apache

# It always says that the first offset of a later segment does not follow -1.
COMPLAINTS = re.compile(
    r"mismatch|corrupt|out of order|isvalid: false|^ *\d+ is followed by|exception|error", re.I | re.M
)


def fill(log: Log) -> None:
    """Plain, idempotent, compressed and transactional batches over several segments and epochs."""
    for i in range(40):
        append(log, batch(5, value=b"x" * 200, timestamp=NOW_MS + 10 * i, step_ms=1), epoch=i // 20)
        append(log, idempotent(3 * i, 3, producer_id=11), epoch=i // 20)
        append(log, batch(4, codec=i % 5), epoch=i // 20)
    for i in range(6):
        append(log, transactional(2 * i, 2, producer_id=12), transactional(3 * i, 3, producer_id=13), epoch=2)
        append(log, marker(committed=i % 2 == 0, producer_id=12), epoch=2, origin=AppendOrigin.COORDINATOR)
        append(log, marker(committed=i % 3 == 0, producer_id=13), epoch=2, origin=AppendOrigin.COORDINATOR)
    append(log, transactional(12, 2, producer_id=12), epoch=2)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs")
    manager = LogManager(LogRuntime(), [str(path)])
    manager.open()

    async def write() -> None:
        manager.load(lambda topic: config())
        small = config(segment_bytes=20_000, index_interval_bytes=600)
        log = manager.get_or_create(TopicPartition("orders", 0), uuid.UUID(int=5), small)
        fill(log)
        await manager.close(broker_epoch=3)

    asyncio.run(write())
    return path / "orders-0"


def dump(files: list[Path], *options: str) -> str:
    done = peer.tool("dump-log", "--files", ",".join(map(str, files)), *options)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_segments_and_all_indexes_are_read_deeply(directory: Path) -> None:
    files = sorted(
        p for p in directory.iterdir() if p.suffix in (".log", ".index", ".timeindex", ".txnindex")
    )
    assert {p.suffix for p in files} == {".log", ".index", ".timeindex", ".txnindex"}
    assert len([p for p in files if p.suffix == ".log"]) > 2
    text = dump(files, "--deep-iteration", "--print-data-log")
    assert not COMPLAINTS.search(text), COMPLAINTS.findall(text)
    assert text.count("Dumping") == len(files)
    assert "endTxnMarker: ABORT" in text
    assert "endTxnMarker: COMMIT" in text


def test_indexes_pass_apaches_sanity_check(directory: Path) -> None:
    files = sorted(p for p in directory.iterdir() if p.suffix in (".index", ".timeindex"))
    text = dump(files, "--index-sanity-check")
    assert text.count("passed sanity check") == len(files), text
    assert not COMPLAINTS.search(text), text


def test_snapshots_are_read(directory: Path) -> None:
    files = sorted(directory.glob("*.snapshot"))
    assert len(files) > 2
    text = dump(files)
    assert not COMPLAINTS.search(text), text
    for producer in (11, 12, 13):
        assert f"producerId: {producer}" in text
    open_since = re.search(r"producerId: 12 .*currentTxnFirstOffset: Optional\w*\[(\d+)\]", text)
    assert open_since is not None, text
