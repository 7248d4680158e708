"""The replica on a disk: what it appends, when it calls it committed, what a crash leaves of it."""

import asyncio
import errno
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID

import pytest

from odradek.core.configs import NodeConfig
from odradek.core.errors import ErrorCode, KafkaError, StorageError
from odradek.raft.control import LeaderChangeMessage, QuorumFacts, read_control_batch
from odradek.raft.driver import RaftDriver
from odradek.raft.log_state import LogState
from odradek.raft.messages import VoteRequest
from odradek.raft.opening import QuorumError, open_replica
from odradek.raft.settings import metadata_log_config
from odradek.raft.snapshots import SnapshotBuilder, SnapshotId
from odradek.raft.voters import ReplicaKey, Voter, VoterSet
from odradek.records.batch import iter_batches
from odradek.runtime.real import OFFLOAD_THREADS, RealRuntime
from odradek.sim.world.disk import DiskFault, DiskFaults
from odradek.sim.world.runtime import SimRuntime
from odradek.sim.world.volume import CrashModel, Volume
from odradek.sim.world.world import World
from tests.unit.raft.drivers import open_driver, values_of

DIRECTORY = UUID(int=700)
VOTERS = VoterSet([Voter(1, DIRECTORY, ())])
CONFIG, _ = NodeConfig.from_sources({}, {})
PATH = "/data/__cluster_metadata-0"


class Host:
    """One disk on which drivers live one after another."""

    def __init__(self) -> None:
        self.world = World(3)
        self.volume = Volume()
        self.faults = DiskFaults()
        self.lives = 0

    def runtime(self) -> SimRuntime:
        self.lives += 1
        return self.world.runtime("h", f"h.{self.lives}", volume=self.volume, faults=self.faults)

    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        async def wrapped() -> None:
            await main()

        self.world.run(wrapped())

    def format(self, runtime: SimRuntime) -> None:
        """The snapshot that formatting leaves: quorum version and voters, nothing else."""
        runtime.disk.makedirs(PATH)
        data = SnapshotBuilder(0, 0, QuorumFacts(1, VOTERS), 0).finish()
        fd = runtime.disk.open(f"{PATH}/{SnapshotId(0, 0).file_name}", 0o102)
        runtime.disk.pwrite(fd, data, 0)
        runtime.disk.fsync(fd)
        for directory in (PATH, "/data", "/"):
            runtime.disk.fsync_dir(directory)
        runtime.disk.close(fd)

    async def start(self, runtime: SimRuntime | None = None) -> tuple[RaftDriver, list[bytes]]:
        """A started driver and the values it had."""
        runtime = runtime or self.runtime()
        if not runtime.disk.exists(PATH):
            self.format(runtime)
        driver = open_driver(runtime, "/data", metadata_log_config(CONFIG), node_id=1, directory_id=DIRECTORY)
        values = values_of(driver)
        driver.start()
        return driver, values

    def start_voter_of_three(self) -> RaftDriver:
        """The other two are nowhere."""
        runtime = self.runtime()
        runtime.disk.makedirs("/data")
        driver = open_driver(
            *(runtime, "/data", metadata_log_config(CONFIG)),
            node_id=1,
            directory_id=DIRECTORY,
            static_voters=VoterSet(Voter(n, UUID(int=0), ()) for n in (1, 2, 3)),
        )
        driver.start()
        return driver


async def until_committed(driver: RaftDriver, offset: int) -> None:
    while driver.high_watermark <= offset:
        await asyncio.sleep(0.001)


def test_a_new_log_begins_with_leader_version_and_voters_and_commits_them() -> None:
    host = Host()

    async def main() -> None:
        driver, values = await host.start()
        assert (driver.is_leader, driver.epoch, driver.log_end_offset, values) == (True, 1, 3, [])
        await until_committed(driver, 2)
        found = driver.log.read(0, 1000, 0).slice  # type: ignore[arg-type]
        assert found is not None
        data = found.read()
        (batch,) = iter_batches(data)
        assert len(read_control_batch(data, batch)) == 3
        assert batch.partition_leader_epoch == 1

    host.run(main)


def test_a_callback_says_who_leads_and_that_it_resigned() -> None:
    host = Host()

    async def main() -> None:
        driver, _ = await host.start()
        assert (driver.leader_id, driver.epoch_start_offset) == (1, 0)
        heard: list[tuple[int, int]] = []
        driver.on_leader_changed = lambda epoch, leader_id: heard.append((epoch, leader_id))
        driver.resign()
        driver.resign()
        assert heard == [(1, -1)]
        with pytest.raises(KafkaError):
            driver.append([b"a"], 5)
        await driver.close()
        again = open_driver(
            host.runtime(), "/data", metadata_log_config(CONFIG), node_id=1, directory_id=DIRECTORY
        )
        again.on_leader_changed = lambda epoch, leader_id: heard.append((epoch, leader_id))
        assert again.leader_id == -1
        again.start()
        assert heard[-1] == (2, 1)
        await again.close()

    host.run(main)


def test_a_restart_reads_everything_back_and_leads_the_next_epoch() -> None:
    host = Host()

    async def main() -> None:
        first, _ = await host.start()
        first.append([b"a", b"b"], 5)
        last = first.append([b"c"], 6)
        await until_committed(first, last)
        await first.close()
        second, values = await host.start()
        assert values == [b"a", b"b", b"c"]
        assert (second.epoch, second.log_end_offset) == (2, 7)
        await until_committed(second, 6)
        found = second.log.read(6, 1000, 0).slice  # type: ignore[arg-type]
        assert found is not None
        data = found.read()
        (batch,) = iter_batches(data)
        (record,) = read_control_batch(data, batch)
        assert isinstance(record, LeaderChangeMessage)

    host.run(main)


def test_appends_of_one_turn_share_one_fsync() -> None:
    host = Host()

    async def main() -> None:
        driver, _ = await host.start()
        await until_committed(driver, 2)
        offsets: list[int] = []
        driver.on_committed = offsets.append
        for n in range(20):
            last = driver.append([b"%d" % n], 0)
        await until_committed(driver, last)
        assert offsets == [last + 1]

    host.run(main)


def test_commits_do_not_wait_for_threads_that_sync_partitions(tmp_path: Path) -> None:
    async def main() -> None:
        runtime = RealRuntime()
        is_synced = threading.Event()
        slow = [runtime.offload(is_synced.wait) for _ in range(OFFLOAD_THREADS)]
        driver = open_driver(
            *(runtime, str(tmp_path), metadata_log_config(CONFIG)),
            node_id=1,
            directory_id=DIRECTORY,
            static_voters=VOTERS,
        )
        try:
            driver.start()
            async with asyncio.timeout(60):
                while not driver.is_leader:
                    await asyncio.sleep(0.001)
                await until_committed(driver, driver.append([b"a record"], 0))
            assert not any(work.done() for work in slow)
        finally:
            is_synced.set()
            await asyncio.gather(*slow)
            await driver.close()
            runtime.close()

    asyncio.run(main())


def test_appends_during_an_fsync_wait_for_the_next_one() -> None:
    host = Host()

    async def main() -> None:
        driver, _ = await host.start()
        await until_committed(driver, 2)
        offsets: list[int] = []
        driver.on_committed = offsets.append
        first = driver.append([b"1"], 0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        last = driver.append([b"2"], 0)
        await until_committed(driver, last)
        assert offsets == [first + 1, last + 1]

    host.run(main)


def test_what_was_committed_survives_a_power_cut_and_what_was_not_may_go() -> None:
    host = Host()
    lose_all = CrashModel(keep_all=0, lose_all=1, zero_tail=0, garbage_tail=0)

    async def main() -> None:
        runtime = host.runtime()
        driver, _ = await host.start(runtime)
        last = driver.append([b"kept"], 0)
        await until_committed(driver, last)
        driver.append([b"lost"], 0)
        host.world.loop.kill(runtime.process)
        host.volume.crash(host.world.rng_for("crash"), lose_all)
        _, values = await host.start()
        assert values == [b"kept"]

    host.run(main)


def test_a_failing_disk_ends_leadership_and_commits_nothing() -> None:
    host = Host()

    async def main() -> None:
        driver, _ = await host.start()
        await until_committed(driver, 2)
        failures: list[KafkaError] = []
        driver.on_failed = failures.append
        host.faults.rules.append(DiskFault(errno.EIO, ["fdatasync", "fsync"]))
        driver.append([b"x"], 0)
        while not failures:
            await asyncio.sleep(0.001)
        assert isinstance(failures[0], StorageError)
        assert driver.high_watermark == 3
        with pytest.raises(StorageError):
            driver.append([b"y"], 0)
        await driver.close()

    host.run(main)


@pytest.mark.parametrize(
    "lacking",
    [
        DiskFault(errno.EMFILE, ["open"], f"{PATH}/quorum-state*"),
        DiskFault(errno.EMFILE, ["fsync"], PATH),
        DiskFault(errno.EMFILE, ["open"], f"{PATH}/*checkpoint*"),
        DiskFault(errno.ENFILE, ["open"]),
    ],
    ids=["quorum state", "directory", "epochs", "everything"],
)
def test_a_replica_that_lacks_descriptors_commits_once_it_has_them(lacking: DiskFault) -> None:
    host = Host()

    async def main() -> None:
        driver, _ = await host.start()
        host.faults.rules.append(lacking)
        driver.append([b"x"], 0)
        await asyncio.sleep(3)
        assert driver.failure is None and driver.is_leader
        assert driver.high_watermark < driver.log_end_offset, "nothing is committed that is not durable"
        host.faults.rules.clear()
        await until_committed(driver, driver.log_end_offset - 1)
        await driver.close()
        again, values = await host.start()
        assert values == [b"x"]
        await again.close()

    host.run(main)


def test_a_replica_that_does_not_lead_appends_nothing() -> None:
    host = Host()

    async def main() -> None:
        driver, _ = await host.start()
        await driver.close()
        with pytest.raises(KafkaError) as refused:
            driver.append([b"x"], 0)
        assert refused.value.code == ErrorCode.NOT_CONTROLLER

    host.run(main)


def test_a_start_goes_on_from_the_newest_snapshot() -> None:
    host = Host()

    async def main() -> None:
        driver, _ = await host.start()
        last = driver.append([b"a", b"b"], 7)
        await until_committed(driver, last)
        snapshot_id = SnapshotId(last + 1, driver.epoch)
        builder = driver.new_snapshot(snapshot_id, 7)
        builder.add([b"both"])
        await driver.save_snapshot(snapshot_id, builder.finish())
        await until_committed(driver, driver.append([b"c"], 8))
        await driver.close()
        again, values = await host.start()
        assert values == [b"both", b"c"]
        assert again.facts == QuorumFacts(1, VOTERS)
        again.clean_up(retention_bytes=1, retention_ms=1 << 60)
        assert again.snapshots.ids == [snapshot_id]
        assert again.log.log_start_offset == snapshot_id.end_offset

    host.run(main)


def test_a_log_that_lost_its_tail_goes_on_from_the_snapshot() -> None:
    host = Host()

    async def main() -> None:
        driver, _ = await host.start()
        last = driver.append([b"a"], 7)
        await until_committed(driver, last)
        snapshot_id = SnapshotId(last + 1, driver.epoch)
        builder = driver.new_snapshot(snapshot_id, 7)
        builder.add([b"a"])
        await driver.save_snapshot(snapshot_id, builder.finish())
        await driver.close()
        runtime = host.runtime()
        for name in runtime.disk.listdir(PATH):
            if name.startswith("00000000000000000000."):
                runtime.disk.unlink(f"{PATH}/{name}")
        again, values = await host.start(runtime)
        assert values == [b"a"]
        assert again.log.log_start_offset == snapshot_id.end_offset
        assert again.epoch == driver.epoch + 1

    host.run(main)


def test_a_log_whose_first_snapshot_is_gone_begins_with_the_next_one() -> None:
    """A restart forgets how far the log start had moved. Nobody knows the epoch before its first segment:
    a follower that has more of that epoch than this log must get the snapshot, and not cut anything off."""
    host = Host()

    async def snapshot(driver: RaftDriver) -> SnapshotId:
        last = driver.append([b"a"], 7)
        await until_committed(driver, last)
        snapshot_id = SnapshotId(last + 1, driver.epoch)
        await driver.save_snapshot(snapshot_id, driver.new_snapshot(snapshot_id, 7).finish())
        return snapshot_id

    async def main() -> None:
        driver, _ = await host.start()
        first = await snapshot(driver)
        await driver.close()
        runtime = host.runtime()
        for name in runtime.disk.listdir(PATH):
            if name.startswith("00000000000000000000."):
                runtime.disk.unlink(f"{PATH}/{name}")
        driver, _ = await host.start(runtime)
        second = await snapshot(driver)
        driver.clean_up(retention_bytes=1, retention_ms=1 << 60)
        assert (driver.snapshots.ids, driver.epoch) == ([second], first.epoch + 1)
        await driver.close()
        opened = open_replica(host.runtime(), "/data", metadata_log_config(CONFIG))
        log = LogState(opened.view)
        assert log.start_offset == second.end_offset
        assert log.position_of(first.end_offset + 1, first.epoch) == second

    host.run(main)


def test_another_directory_than_the_voters_is_refused() -> None:
    host = Host()

    async def main() -> None:
        driver, _ = await host.start()
        await driver.close()
        other = open_driver(
            host.runtime(), "/data", metadata_log_config(CONFIG), node_id=1, directory_id=UUID(int=9999)
        )
        with pytest.raises(QuorumError, match="not among the voters"):
            other.start()

    host.run(main)


def test_a_voter_of_several_does_not_lead_alone() -> None:
    host = Host()

    async def main() -> None:
        driver = host.start_voter_of_three()
        await asyncio.sleep(10)
        assert (driver.is_leader, driver.leader_id, driver.epoch) == (False, -1, 0)
        with pytest.raises(KafkaError) as refused:
            driver.append([b"a"], 5)
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        await driver.close()

    host.run(main)


def test_a_quorum_without_any_voter_is_refused() -> None:
    host = Host()

    async def main() -> None:
        runtime = host.runtime()
        runtime.disk.makedirs("/data")
        driver = open_driver(runtime, "/data", metadata_log_config(CONFIG), node_id=1, directory_id=DIRECTORY)
        with pytest.raises(QuorumError, match="nobody"):
            driver.start()

    host.run(main)


def test_voters_of_the_configuration_count_where_the_log_records_none() -> None:
    host = Host()

    async def main() -> None:
        for epoch in (1, 2):
            runtime = host.runtime()
            runtime.disk.makedirs("/data")
            driver = open_driver(
                runtime,
                "/data",
                metadata_log_config(CONFIG),
                node_id=1,
                directory_id=DIRECTORY,
                static_voters=VoterSet([Voter(1, UUID(int=0), ())]),
            )
            driver.start()
            assert (driver.epoch, driver.facts.kraft_version) == (epoch, 0)
            assert driver.log_end_offset == epoch
            await until_committed(driver, epoch - 1)
            await driver.close()

    host.run(main)


def test_a_replica_that_is_closed_hears_nobody_and_writes_nothing() -> None:
    """The listeners of its node close after it: a candidate may still ask for its vote."""
    host = Host()

    async def main() -> None:
        driver = host.start_voter_of_three()
        await asyncio.sleep(1)
        await driver.close()
        calls = host.world.trace.count
        request = VoteRequest(9, ReplicaKey(2, UUID(int=0)), None, 8, 100, pre_vote=False)
        with pytest.raises(KafkaError) as refused:
            await driver.ask(request)
        assert refused.value.code is ErrorCode.BROKER_NOT_AVAILABLE
        await asyncio.sleep(30)
        assert (driver.epoch, host.world.trace.count) == (0, calls)

    host.run(main)
