"""A node with two log directories: partitions are spread, and one that fails takes only its own with it."""

import errno
import os
import shutil
import time

import pytest

from odradek.testing.broker import Broker
from tests.support.batches import batch
from tests.support.produce import produce
from tests.support.raw import Connection
from tests.support.stored import fetch, split
from tests.support.topics import create_topic

KAFKA_STORAGE_ERROR, LEADER_NOT_AVAILABLE, NOT_LEADER = 56, 5, 6
METADATA, DELETE_TOPICS, DESCRIBE_LOG_DIRS = 3, 20, 35
PARTITIONS = 6


class FailingDisk:
    """A disk of which everything below a path can be told to fail."""

    def __init__(self, disk):
        self._disk = disk
        self._paths = {}
        self.broken = None

    def __getattr__(self, name):
        return getattr(self._disk, name)

    def _check(self, path):
        if self.broken is not None and path.startswith(self.broken):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    def open(self, path, flags, mode=0o644):
        self._check(path)
        fd = self._disk.open(path, flags, mode)
        self._paths[fd] = path
        return fd

    def pwrite(self, fd, data, offset, /):
        self._check(self._paths[fd])
        return self._disk.pwrite(fd, data, offset)

    def pwritev(self, fd, buffers, offset, /):
        self._check(self._paths[fd])
        return self._disk.pwritev(fd, buffers, offset)

    def pread(self, fd, count, offset, /):
        self._check(self._paths[fd])
        return self._disk.pread(fd, count, offset)


class TwoDirectories(Broker):
    def make_runtime(self):
        runtime = super().make_runtime()
        self.disk = runtime.disk = FailingDisk(runtime.disk)
        return runtime


@pytest.fixture
def broker(tmp_path):
    with TwoDirectories(data_dir=f"{tmp_path}/a,{tmp_path}/b") as node:
        create_topic(node.bootstrap_servers, "t", PARTITIONS)
        yield node


def where(directory):
    return sorted(int(name.rpartition("-")[2]) for name in os.listdir(directory) if name.startswith("t-"))


def leaders(connection):
    topic = connection.call(METADATA, 12, {"topics": [{"name": "t", "topic_id": None}]}).topics[0]
    return {
        p.partition_index: (int(p.error_code), p.leader_id, tuple(p.offline_replicas))
        for p in topic.partitions
    }


def until(condition, timeout_s=20):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def write_everywhere(connection):
    answers = {i: produce(connection, "t", batch([b"v"]), partition=i) for i in range(PARTITIONS)}
    return {i: int(answer.error_code) for i, answer in answers.items()}


def test_partitions_are_spread_and_the_controller_is_told_where(broker, tmp_path):
    assert len(where(tmp_path / "a")) == len(where(tmp_path / "b")) == PARTITIONS // 2
    ids = broker.look(lambda node: {d.path: d.meta.directory_id for d in node.logs.directories})

    def told():
        image = broker.look(lambda node: node.metadata.image.topics_by_name["t"])
        return {i: p.directories[0] for i, p in image.partitions.items()}

    wanted = {i: ids[f"{tmp_path}/{d}"] for d in "ab" for i in where(tmp_path / d)}
    until(lambda: told() == wanted)
    with Connection(broker.bootstrap_servers) as connection:
        rows = connection.call(DESCRIBE_LOG_DIRS, 4, {"topics": None}).results
        assert [(r.log_dir, int(r.error_code)) for r in rows] == [(f"{tmp_path}/{d}", 0) for d in "ab"]
        for row in rows:
            held = [p.partition_index for t in row.topics if t.name == "t" for p in t.partitions]
            assert sorted(held) == where(row.log_dir)


def test_a_directory_that_fails_takes_only_its_own_partitions_offline(broker, tmp_path):
    lost, kept = where(tmp_path / "b"), where(tmp_path / "a")
    with Connection(broker.bootstrap_servers) as connection:
        assert set(write_everywhere(connection).values()) == {0}
        broker.disk.broken = f"{tmp_path}/b"
        errors = write_everywhere(connection)
        assert {i: errors[i] for i in kept} == dict.fromkeys(kept, 0)
        assert {errors[i] for i in lost} <= {KAFKA_STORAGE_ERROR, NOT_LEADER}
        until(lambda: all(leaders(connection)[i][1] == -1 for i in lost))
        for index, (code, leader, offline) in leaders(connection).items():
            if index in lost:
                assert (code, leader, offline) == (LEADER_NOT_AVAILABLE, -1, (1,))
            else:
                assert (code, leader, offline) == (0, 1, ())
        rows = connection.call(DESCRIBE_LOG_DIRS, 4, {"topics": None}).results
        assert [int(r.error_code) for r in rows] == [0, KAFKA_STORAGE_ERROR]
        create_topic(broker.bootstrap_servers, "new", 4)
        assert len([name for name in os.listdir(tmp_path / "a") if name.startswith("new-")]) == 4
    registered = broker.look(lambda node: node.metadata.image.brokers[1].log_dirs)
    assert len(registered) == 1, "the controller knows of one directory"
    assert "Input/output error" in broker.look(lambda node: node.health.trouble())
    broker.disk.broken = None
    broker.stop()
    broker.start()
    with Connection(broker.bootstrap_servers) as connection:
        until(lambda: all(code == 0 for code, *_ in leaders(connection).values()))
        for index in range(PARTITIONS):
            error, records = fetch(connection, "t", partition=index)
            assert (error, len(split(records))) == (0, 2 if index in kept else 1)


def test_a_start_without_one_of_its_directories_begins_nothing_in_its_place(tmp_path):
    """What the missing directory holds is offline, not empty: it comes back with the directory."""
    a, b = tmp_path / "a", tmp_path / "b"
    node = Broker(data_dir=f"{a},{b}")
    with node:
        create_topic(node.bootstrap_servers, "t", PARTITIONS)
        with Connection(node.bootstrap_servers) as connection:
            assert set(write_everywhere(connection).values()) == {0}
    lost, kept = where(b), where(a)
    shutil.move(b, tmp_path / "away")
    b.write_bytes(b"a file in the way")
    with node, Connection(node.bootstrap_servers) as connection:
        found = leaders(connection)
        assert {i for i, (code, *_) in found.items() if code == 0} == set(kept)
        assert where(a) == kept, "nothing was begun in place of what is missing"
        errors = write_everywhere(connection)
        assert {errors[i] for i in kept} == {0}
        assert 0 not in {errors[i] for i in lost}
    b.unlink()
    shutil.move(tmp_path / "away", b)
    with node, Connection(node.bootstrap_servers) as connection:
        until(lambda: all(code == 0 for code, *_ in leaders(connection).values()))
        for index in range(PARTITIONS):
            error, records = fetch(connection, "t", partition=index)
            assert (error, len(split(records))) == (0, 2 if index in kept else 1)
        rows = connection.call(DESCRIBE_LOG_DIRS, 4, {"topics": None}).results
        assert [int(r.error_code) for r in rows] == [0, 0]


def test_a_partition_that_cannot_be_deleted_keeps_no_other_directory_from_its_changes(tmp_path):
    """One request deletes a topic in each directory, and the folder of one of them is gone."""
    node = Broker(data_dir=f"{tmp_path}/a,{tmp_path}/b")
    with node:
        create_topic(node.bootstrap_servers, "t")
        create_topic(node.bootstrap_servers, "u")
        lost, kept = ("t", "u") if where(tmp_path / "b") else ("u", "t")
        with Connection(node.bootstrap_servers) as connection:
            for topic in (lost, kept):
                assert int(produce(connection, topic, batch([b"old"])).error_code) == 0
            shutil.rmtree(tmp_path / "b" / f"{lost}-0")
            answer = connection.call(
                DELETE_TOPICS, 6, {"topics": [{"name": lost}, {"name": kept}], "timeout_ms": 10_000}
            )
            assert [int(r.error_code) for r in answer.responses] == [0, 0]
            until(lambda: not (tmp_path / "a" / f"{kept}-0").exists())
            rows = connection.call(DESCRIBE_LOG_DIRS, 4, {"topics": None}).results
            assert [int(r.error_code) for r in rows] == [0, KAFKA_STORAGE_ERROR]
            create_topic(node.bootstrap_servers, kept)
            assert fetch(connection, kept) == (0, b"")
            assert int(produce(connection, kept, batch([b"new"])).error_code) == 0
    with node, Connection(node.bootstrap_servers) as connection:
        until(lambda: int(produce(connection, kept, batch([b"newer"])).error_code) == 0)
        error, records = fetch(connection, kept)
        assert (error, [b.base_offset for b in split(records)]) == (0, [0, 1])
