"""What a replica finds on its disk at a start: log, snapshots, quorum state, and the voters they name."""

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.core.types import METADATA_TOPIC, METADATA_TOPIC_ID, TopicPartition
from odradek.log.files import read_file
from odradek.log.log import Isolation, Log
from odradek.raft.control import read_control_batch
from odradek.raft.log_state import LogView, begins_again
from odradek.raft.quorum_records import from_control
from odradek.raft.quorum_state import QuorumState, parse_quorum_state
from odradek.raft.snapshot_store import SnapshotStore
from odradek.raft.snapshots import read_snapshot
from odradek.raft.voter_history import VoterHistory
from odradek.raft.voters import VoterSet
from odradek.records.batch import iter_batches
from odradek.runtime.api import Runtime

if TYPE_CHECKING:
    from odradek.core.configs import TopicConfig

_log = logging.getLogger(__name__)

QUORUM_STATE_FILE: Final = "quorum-state"
PARTITION_DIR: Final = f"{METADATA_TOPIC}-0"
_READ_BYTES: Final = 1 << 20


class QuorumError(Exception):
    """A metadata log that this node cannot serve from; says why."""


class Opened(NamedTuple):
    """All that a driver begins with."""

    log: Log
    snapshots: SnapshotStore
    state: QuorumState
    view: LogView
    history: VoterHistory


def open_replica(
    runtime: Runtime, log_dir: str, config: "TopicConfig", static_voters: VoterSet | None = None
) -> Opened:
    """Open the metadata log in a log directory, or begin one.

    `static_voters` are those of the configuration; voters recorded in the log go before them. The log is
    always checked from the last snapshot on. Raises OSError, QuorumError, QuorumStateError.
    """
    path = f"{log_dir.rstrip('/')}/{PARTITION_DIR}"
    snapshots = SnapshotStore(runtime.disk, path)
    newest = snapshots.newest
    start_offset = 0 if newest is None else newest.end_offset
    log = Log.open(
        runtime,
        path,
        TopicPartition(METADATA_TOPIC, 0),
        METADATA_TOPIC_ID,
        config,
        recovery_point=start_offset,
        high_watermark=start_offset,
    )
    if log.log_start_offset > start_offset:
        raise QuorumError(f"{path} begins at {log.log_start_offset} and no snapshot holds what was before")
    if begins_again(_view(log, snapshots)):
        _log.warning("%s does not continue its newest snapshot: continuing from the snapshot", path)
        log.truncate_fully_and_start_at(start_offset)
    _begin_at_a_snapshot(log, snapshots)
    history = VoterHistory(static_voters)
    if newest is not None:
        snapshot = read_snapshot(snapshots.read(newest), lambda data, batch: None)
        history.reset(newest.end_offset, snapshot.facts)
    _read_control_records(log, start_offset, history)
    return Opened(log, snapshots, _read_quorum_state(runtime, path), _view(log, snapshots), history)


def _begin_at_a_snapshot(log: Log, snapshots: SnapshotStore) -> None:
    """Where it does not begin with its first record: a snapshot knows the epoch before it, and nobody else.

    How far the start had moved is not written down, so it may be back at that of the first segment.
    """
    if log.log_start_offset:
        following = [found.end_offset for found in snapshots.ids if found.end_offset >= log.log_start_offset]
        log.increment_log_start_offset(following[0])


def _view(log: Log, snapshots: SnapshotStore) -> LogView:
    start_offset = log.log_start_offset
    return LogView(
        start_offset,
        log.log_end_offset,
        max(log.recovery_point, start_offset),
        tuple(log.epochs.entries),
        next((found.epoch for found in snapshots.ids if found.end_offset == start_offset), 0),
        snapshots.newest,
    )


def _read_control_records(log: Log, offset: int, history: VoterHistory) -> None:
    while offset < log.log_end_offset:
        found = log.read(offset, _READ_BYTES, Isolation.LOG_END).slice
        assert found is not None, f"the metadata log has no batch at {offset}"
        data = found.read()
        for batch in iter_batches(data):
            if batch.is_control and batch.base_offset >= offset:
                history.add(batch.base_offset, from_control(read_control_batch(data, batch)))
            offset = batch.last_offset + 1


def _read_quorum_state(runtime: Runtime, path: str) -> QuorumState:
    try:
        return parse_quorum_state(read_file(runtime.disk, f"{path}/{QUORUM_STATE_FILE}"))
    except FileNotFoundError:
        return QuorumState()
