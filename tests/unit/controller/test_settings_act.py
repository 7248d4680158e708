"""Every `metadata.*`, `broker.session.*`, `broker.heartbeat.*`, `controlled.shutdown.*` and
`initial.broker.registration.*` key changes what a node does. Time is virtual."""

import asyncio
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from odradek.broker.lifecycle import RegistrationError
from odradek.broker.node import Node
from odradek.client import Admin, Client
from odradek.core.configs import NodeConfig
from odradek.core.errors import ErrorCode, KafkaError
from odradek.log.managing.log_dir import DirectoryInUseError, LogDir
from odradek.raft.driver import RaftDriver
from odradek.runtime.real import RealRuntime
from odradek.sim.world.cluster import SimHost
from odradek.wire.api_keys import ApiKey
from tests.unit.controller.test_quorum import simulate, stack


def raft(host: SimHost) -> RaftDriver:
    return stack(host).controller.raft


def test_append_linger_delays_the_flush_and_all_that_waits_for_it() -> None:
    took: dict[str, float] = {}
    flushes: dict[str, int] = {}
    for linger in ("0", "250"):

        async def main(host: SimHost, linger: str = linger) -> None:
            await host.start()
            node = stack(host)
            flusher = node.controller.raft._flusher
            on_flushed = flusher._on_flushed

            def counted(end_offset: int) -> None:
                flushes[linger] = flushes.get(linger, 0) + 1
                on_flushed(end_offset)

            flusher._on_flushed = counted
            loop = asyncio.get_running_loop()
            began = loop.time()

            async def later(n: int) -> None:
                await asyncio.sleep(n / 50)
                assert await node.create_topic(f"t{n}") == 0

            await asyncio.gather(*(later(n) for n in range(10)))
            took[linger] = loop.time() - began

        simulate(main, controller_quorum_append_linger_ms=linger, metadata_max_idle_interval_ms="0")
    assert took["0"] < 0.25 <= took["250"] < 0.35
    assert flushes == {"0": 10, "250": 1}, "ten topics share a flush"


def test_max_idle_interval_is_how_often_an_idle_log_grows() -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        before = stack(host).image.offset
        await asyncio.sleep(10)
        assert 4 <= stack(host).image.offset - before <= 5

    simulate(main, metadata_max_idle_interval_ms="2000")


@pytest.mark.parametrize(("interval_ms", "has_one"), [("60000", True), ("0", False), ("600000", False)])
def test_max_snapshot_interval_is_how_old_the_log_grows_without_one(interval_ms: str, has_one: bool) -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        await asyncio.sleep(80)
        newest = raft(host).snapshots.newest
        assert (newest is not None and newest.end_offset > 0) == has_one

    simulate(main, metadata_log_max_snapshot_interval_ms=interval_ms)


@pytest.mark.parametrize(("size", "has_one"), [("3000", True), ("20971520", False)])
def test_max_record_bytes_between_snapshots_is_how_long_it_grows_without_one(
    size: str, has_one: bool
) -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        for n in range(20):
            await stack(host).create_topic(f"t{n}", 4)
        await asyncio.sleep(0.4)
        newest = raft(host).snapshots.newest
        assert (newest is not None and newest.end_offset > 0) == has_one

    simulate(main, metadata_log_max_record_bytes_between_snapshots=size)


async def snapshots_of_ten_minutes(host: SimHost) -> tuple[int, int]:
    """How many there are at the end, and where the log begins then."""
    await host.start()
    for n in range(10):
        await stack(host).create_topic(f"t{n}", 4)
        await asyncio.sleep(60)
    return len(raft(host).snapshots.ids), raft(host).log.log_start_offset


@pytest.mark.parametrize(
    ("key", "value", "kept"),
    [
        ("metadata_max_retention_bytes", "1", 1),
        ("metadata_max_retention_bytes", "-1", 12),
        ("metadata_max_retention_ms", "150000", 3),
        ("metadata_max_retention_ms", "-1", 12),
        ("metadata_max_retention_ms", "604800000", 12),
    ],
)
def test_retention_is_how_much_of_the_past_snapshots_keep(key: str, value: str, kept: int) -> None:
    async def main(host: SimHost) -> None:
        count, start = await snapshots_of_ten_minutes(host)
        assert abs(count - kept) <= 1
        assert (start > 0) == (kept < 12), "the log begins where the oldest snapshot ends"

    simulate(main, metadata_log_max_snapshot_interval_ms="50000", **{key: value})


def test_segment_ms_is_when_the_log_rolls() -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        await asyncio.sleep(35)
        assert 3 <= len(raft(host).log.segments) <= 5

    simulate(main, metadata_log_segment_ms="10000")


@pytest.mark.parametrize(("size", "segments"), [("8388608", 2), ("1073741824", 1)])
def test_segment_bytes_is_when_the_log_rolls(size: str, segments: int) -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        driver = raft(host)
        for _ in range(9):
            driver.append([bytes(1 << 20)], 0)
        assert len(driver.log.segments) == segments

    simulate(main, metadata_log_segment_bytes=size)


def test_session_timeout_is_when_a_silent_broker_is_fenced() -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        await stack(host).lifecycle.close()
        await asyncio.sleep(2.5)
        assert not stack(host).image.brokers[1].fenced
        await asyncio.sleep(2)
        assert stack(host).image.brokers[1].fenced

    simulate(main, broker_session_timeout_ms="3000", broker_heartbeat_interval_ms="500")


@pytest.mark.parametrize(("is_on", "leader"), [("true", -1), ("false", 1)])
def test_controlled_shutdown_is_whether_a_broker_that_stops_gives_its_leads_away(
    is_on: str, leader: int
) -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        node = stack(host)
        await node.create_topic("t")
        await node.lifecycle.shut_down()
        assert node.image.brokers[1].fenced == (is_on == "true")
        assert node.image.topics_by_name["t"].partitions[0].leader == leader

    simulate(main, controlled_shutdown_enable=is_on)


@pytest.mark.parametrize(("interval_ms", "least", "most"), [("1000", 9, 10), ("3000", 3, 4)])
def test_heartbeat_interval_is_how_often_a_broker_tells_that_it_lives(
    interval_ms: str, least: int, most: int
) -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        controller = stack(host).controller
        call, beats = controller.call, []

        async def counted(api_key: ApiKey, request: Any) -> Any:
            if api_key is ApiKey.BROKER_HEARTBEAT:
                beats.append(request)
            return await call(api_key, request)

        controller.call = counted  # type: ignore[method-assign]
        await asyncio.sleep(10.5)
        assert least <= len(beats) <= most

    simulate(main, broker_heartbeat_interval_ms=interval_ms)


@pytest.mark.parametrize("timeout_ms", [4000, 30000])
def test_initial_registration_timeout_is_how_long_a_broker_tries_to_register(timeout_ms: int) -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        node = stack(host)

        async def duplicate(api_key: ApiKey, request: Any) -> Any:
            raise KafkaError(ErrorCode.DUPLICATE_BROKER_REGISTRATION)

        node.controller.call = duplicate  # type: ignore[method-assign]
        loop = asyncio.get_running_loop()
        began = loop.time()
        with pytest.raises(RegistrationError):
            await node.lifecycle.register(node.config.advertised_listeners)
        assert timeout_ms / 1000 <= loop.time() - began < timeout_ms / 1000 + 1.5

    simulate(main, initial_broker_registration_timeout_ms=str(timeout_ms))


def test_log_dir_is_where_the_metadata_log_lies_and_no_partition_does(tmp_path: Path) -> None:
    settings = {
        "log.dirs": str(tmp_path / "data"),
        "metadata.log.dir": str(tmp_path / "metadata"),
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    }

    async def life() -> UUID:
        node = Node(NodeConfig.from_sources({}, settings)[0], RealRuntime())
        await node.start()
        try:
            with pytest.raises(DirectoryInUseError):
                LogDir(node.runtime.disk, str(tmp_path / "metadata")).open()
            async with Client(f"127.0.0.1:{node.address[1]}") as client:
                if "t" not in node.metadata.image.topics_by_name:
                    await Admin(client).create_topics({"t": 3}, replication_factor=1)
            (directory,) = node.metadata.image.brokers[1].log_dirs
            assert node.metadata.image.topics_by_name["t"].partitions.keys() == {0, 1, 2}
        finally:
            await node.stop()
        return directory

    assert asyncio.run(life()) == asyncio.run(life()), "one directory for partitions, the same again"
    assert (tmp_path / "metadata/__cluster_metadata-0/quorum-state").exists()
    assert not (tmp_path / "data/__cluster_metadata-0").exists()
    assert sorted(p.name for p in (tmp_path / "data").glob("t-*")) == ["t-0", "t-1", "t-2"]
    assert not list((tmp_path / "metadata").glob("t-*"))
