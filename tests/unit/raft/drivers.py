"""Drivers on a disk, as a node opens them, for tests of one replica that has nobody to talk to."""

from typing import TYPE_CHECKING
from uuid import UUID

from odradek.client.connection import BrokerConnection
from odradek.log.log import Isolation
from odradek.raft.driver import Membership, RaftDriver
from odradek.raft.log_state import LogView
from odradek.raft.messages import AnswerBody, Request
from odradek.raft.opening import Opened, open_replica
from odradek.raft.quorum_state import QuorumState
from odradek.raft.snapshots import read_snapshot
from odradek.raft.times import RaftTimes
from odradek.raft.voter_history import VoterHistory
from odradek.raft.voters import VoterSet
from odradek.records.batch import BatchMeta, iter_batches, iter_records
from odradek.runtime.api import Runtime

if TYPE_CHECKING:
    from odradek.core.configs import TopicConfig
    from odradek.core.types import Buffer


class Nobody:
    """The other replicas of a quorum of one."""

    async def ask(self, connection: BrokerConnection, request: Request, timeout_ms: int) -> AnswerBody:
        raise AssertionError(f"nobody to ask: {request}")


def open_driver(
    runtime: Runtime,
    log_dir: str,
    config: "TopicConfig",
    *,
    node_id: int,
    directory_id: UUID,
    static_voters: VoterSet | None = None,
    times: RaftTimes | None = None,
) -> RaftDriver:
    opened = open_replica(runtime, log_dir, config, static_voters)
    return RaftDriver(runtime, opened, times or RaftTimes(), Membership(node_id, directory_id, Nobody()))


def values_of(driver: RaftDriver) -> list[bytes]:
    """All that its newest snapshot and its log hold."""
    values: list[bytes] = []

    def add(data: "Buffer", batch: BatchMeta) -> None:
        if not batch.is_control:
            values.extend(record.value or b"" for record in iter_records(data, batch))

    newest, offset = driver.snapshots.newest, 0
    if newest is not None:
        read_snapshot(driver.snapshots.read(newest), add)
        offset = newest.end_offset
    while offset < driver.log_end_offset:
        found = driver.log.read(offset, 1 << 20, Isolation.LOG_END).slice
        assert found is not None
        data = found.read()
        for batch in iter_batches(data):
            add(data, batch)
            offset = batch.last_offset + 1
    return values


def reader_of(runtime: Runtime, driver: RaftDriver) -> RaftDriver:
    """Another driver over the same open log; it is never started."""
    opened = Opened(driver.log, driver.snapshots, QuorumState(), LogView(), VoterHistory())
    return RaftDriver(runtime, opened, RaftTimes(), Membership(driver.node_id, driver.directory_id, Nobody()))
