"""A log directory that fails: KAFKA_STORAGE_ERROR, nothing acknowledged is lost, the process lives."""

import errno
import os

import pytest

from odradek.testing.broker import Broker
from tests.support.batches import batch
from tests.support.produce import produce
from tests.support.raw import Connection
from tests.support.stored import fetch, split
from tests.support.topics import create_topic

KAFKA_STORAGE_ERROR, API_VERSIONS = 56, 18


class FailingDisk:
    """A disk that works until it is told to fail: writes to the logs of topics, or their syncs."""

    def __init__(self, disk) -> None:
        self._disk = disk
        self._paths: dict[int, str] = {}
        self.code: int | None = None
        self.syncs_only = False
        self.refused = 0

    def __getattr__(self, name):
        return getattr(self._disk, name)

    def open(self, path, flags, mode=0o644):
        fd = self._disk.open(path, flags, mode)
        self._paths[fd] = path
        return fd

    def _fail(self, fd) -> None:
        if self.code is not None and "/t-" in self._paths.get(fd, ""):
            self.refused += 1
            raise OSError(self.code, os.strerror(self.code), self._paths[fd])

    def pwrite(self, fd, data, offset, /):
        if not self.syncs_only:
            self._fail(fd)
        return self._disk.pwrite(fd, data, offset)

    def pwritev(self, fd, buffers, offset, /):
        if not self.syncs_only:
            self._fail(fd)
        return self._disk.pwritev(fd, buffers, offset)

    def fallocate_keep_size(self, fd, offset, length):
        if not self.syncs_only:
            self._fail(fd)
        return self._disk.fallocate_keep_size(fd, offset, length)

    def fsync(self, fd):
        self._fail(fd)

    def fdatasync(self, fd):
        self._fail(fd)


class FailingBroker(Broker):
    def make_runtime(self):
        runtime = super().make_runtime()
        self.disk = runtime.disk = FailingDisk(runtime.disk)
        return runtime


@pytest.fixture
def broker(tmp_path):
    with FailingBroker(data_dir=str(tmp_path / "data")) as running:
        create_topic(running.bootstrap_servers, "t")
        yield running


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO], ids=errno.errorcode.get)
def test_a_write_that_fails_is_a_storage_error_and_loses_nothing_acknowledged(broker, code):
    acknowledged = 0
    with Connection(broker.bootstrap_servers) as connection:
        for _ in range(5):
            acknowledged += produce(connection, "t", batch([b"kept"])).error_code == 0
        broker.disk.code = code
        for _ in range(3):
            assert int(produce(connection, "t", batch([b"refused"])).error_code) == KAFKA_STORAGE_ERROR
        assert broker.disk.refused > 0
        assert int(connection.call(API_VERSIONS, 0, {}).error_code) == 0, "the process lives"
        assert int(fetch(connection, "t")[0]) in (0, KAFKA_STORAGE_ERROR)
    assert any("ERROR" in line for line in broker.log_tail()), "an operator must find it in the log"
    broker.disk.code = None
    broker.stop()
    broker.start()
    with Connection(broker.bootstrap_servers) as connection:
        error, records = fetch(connection, "t")
        assert error == 0
        assert [b.base_offset for b in split(records)] == list(range(acknowledged))
        assert produce(connection, "t", batch([b"again"])).base_offset == acknowledged


def test_a_sync_that_fails_takes_the_directory_offline(broker):
    with Connection(broker.bootstrap_servers) as connection:
        assert produce(connection, "t", batch([b"kept"])).error_code == 0
        broker.disk.syncs_only = True
        broker.disk.code = errno.EIO
        broker.look(
            lambda node: [p.log.roll() for tp, p in node.replicas.partitions.items() if tp.topic == "t"]
        )
        broker.advance(120)
        assert broker.disk.refused > 0
        assert int(produce(connection, "t", batch([b"refused"])).error_code) == KAFKA_STORAGE_ERROR
        assert int(connection.call(API_VERSIONS, 0, {}).error_code) == 0, "the process lives"
    assert broker.look(lambda node: node.health.trouble()) is not None


def test_health_reports_the_failed_directory(broker):
    assert broker.look(lambda node: node.health.trouble()) is None
    broker.disk.code = errno.EIO
    with Connection(broker.bootstrap_servers) as connection:
        assert int(produce(connection, "t", batch()).error_code) == KAFKA_STORAGE_ERROR
    assert "Input/output error" in broker.look(lambda node: node.health.trouble())
