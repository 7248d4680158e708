"""libfaketime sets the wall clock of a running node forward and back, by a day or ten years.

Sessions, waits and delays use a steady clock and do not change. Retention, timestamp limits and transaction
timeouts use the wall clock and do. The tests skip if the library is not installed (Debian: faketime); the
simulator tests clock jumps too.
"""

import pathlib
import time
from collections.abc import Iterator

import pytest

from tests.support.batches import batch
from tests.support.group import Member
from tests.support.node import NodeProcess, running
from tests.support.produce import produce
from tests.support.raw import Connection
from tests.support.stored import fetch, split
from tests.support.topics import create_topic
from tests.support.transactions import TransactionalProducer

LIBRARIES = sorted(pathlib.Path("/usr/lib").glob("**/faketime/libfaketime.so.1"))
INVALID_TIMESTAMP = 32
DAY_S, TEN_YEARS_S = 86_400, 10 * 365 * 86_400
SETTINGS = ("log.retention.check.interval.ms=500", "log.segment.delete.delay.ms=1000")

pytestmark = pytest.mark.skipif(not LIBRARIES, reason="libfaketime is not installed (Debian: faketime)")


class Clock:
    """The wall clock of nodes that are started with it."""

    def __init__(self, path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._path = path
        self.jump(0)
        monkeypatch.setenv("LD_PRELOAD", str(LIBRARIES[0]))
        monkeypatch.setenv("FAKETIME_TIMESTAMP_FILE", str(path))
        monkeypatch.setenv("FAKETIME_NO_CACHE", "1")
        monkeypatch.setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        monkeypatch.setenv("DONT_FAKE_MONOTONIC", "1")

    def jump(self, seconds: int) -> None:
        new = self._path.with_suffix(".new")
        new.write_text(f"{seconds:+d}s\n")
        new.rename(self._path)


@pytest.fixture
def clock(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(tmp_path / "time", monkeypatch)


@pytest.fixture
def node(tmp_path: pathlib.Path, clock: Clock) -> Iterator[NodeProcess]:
    args = [arg for setting in SETTINGS for arg in ("--set", setting)]
    with running(tmp_path / "data", *args) as process:
        yield process


@pytest.mark.parametrize("seconds", [DAY_S, TEN_YEARS_S, -DAY_S, -TEN_YEARS_S])
def test_sessions_and_short_waits_do_not_notice(node: NodeProcess, clock: Clock, seconds: int) -> None:
    create_topic(
        node.bootstrap, "t", configs={"retention.ms": "-1", "message.timestamp.type": "LogAppendTime"}
    )
    with Connection(node.bootstrap) as connection, Member(node.bootstrap, "g") as member:
        member.join(session_timeout=6_000)
        member.sync()
        assert produce(connection, "t", batch([b"before"])).error_code == 0
        for jumped in (seconds, 0):
            clock.jump(jumped)
            for _ in range(4):
                time.sleep(0.3)
                assert member.heartbeat() == 0
            assert produce(connection, "t", batch([b"after"])).error_code == 0
            began = time.monotonic()
            assert fetch(connection, "t", 99, max_wait_ms=300)[0] == 1  # out of range, at once
            assert time.monotonic() - began < 5
        assert all(split(fetch(connection, "t", offset)[1]) for offset in range(3))
        with TransactionalProducer(node.bootstrap, "id") as producer:
            producer.init()
            producer.run("t", b"committed")
    log = node.log()
    assert "Fencing" not in log and "Traceback" not in log and "ERROR" not in log
    assert node.stop() == 0


def test_timestamps_are_bounded_by_the_clock_of_the_broker(node: NodeProcess, clock: Clock) -> None:
    """A clock that was set back refuses what is right, as in Apache Kafka."""
    create_topic(node.bootstrap, "t")
    with Connection(node.bootstrap) as connection:
        clock.jump(-TEN_YEARS_S)
        assert produce(connection, "t", batch([b"from the future"])).error_code == INVALID_TIMESTAMP
        clock.jump(0)
        assert produce(connection, "t", batch([b"now"])).error_code == 0


def test_retention_follows_the_wall_clock(node: NodeProcess, clock: Clock) -> None:
    """As in Apache Kafka: ten years later, all is older than seven days. A look away, it is gone."""
    create_topic(node.bootstrap, "t")
    with Connection(node.bootstrap) as connection:
        assert produce(connection, "t", batch([b"old"])).error_code == 0
        clock.jump(TEN_YEARS_S)
        deadline = time.monotonic() + 20
        while not list(node.data_dir.glob("t-0/00000000000000000001.log")):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        clock.jump(-TEN_YEARS_S)
        while list(node.data_dir.glob("t-0/*.deleted")):  # the delay is not measured by that clock
            assert time.monotonic() < deadline
            time.sleep(0.1)
