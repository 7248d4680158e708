"""What a replica finds on its disk at a start: log, snapshots, quorum state, and the voters they name."""

import enum
import logging
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from odradek.core.types import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_UUID, TopicPartition, uuid_to_text
from odradek.log.files import read_file, unlink_if_exists
from odradek.log.log import Isolation, Log
from odradek.raft.control import read_control_batch
from odradek.raft.incoming import checked_snapshot
from odradek.raft.log_state import LogView, begins_again
from odradek.raft.quorum_records import from_control
from odradek.raft.quorum_state import QuorumState, parse_quorum_state, parse_recorded_voters
from odradek.raft.snapshot_store import SnapshotStore
from odradek.raft.snapshots import SnapshotError
from odradek.raft.voter_history import VoterHistory
from odradek.raft.voters import VoterSet
from odradek.records.batch import iter_batches
from odradek.runtime.api import Disk, Runtime

if TYPE_CHECKING:
    from odradek.core.configs import TopicConfig

_log = logging.getLogger(__name__)

QUORUM_STATE_FILE: Final = "quorum-state"
FIRST_START_FILE: Final = "first-start"
PARTITION_DIR: Final = f"{METADATA_TOPIC}-0"
_READ_BYTES: Final = 1 << 20


class QuorumError(Exception):
    """A metadata log that this node cannot serve from; says why."""


class FirstStartMark(enum.StrEnum):
    """What a static voter that formatted itself must not forget (first_start.py).

    NEW       it may vote when every voter of the new quorum has formatted
    WIPED     it may vote when it has caught up
    """

    NEW = "new"
    WIPED = "wiped"


class Opened(NamedTuple):
    """All that a driver begins with. `may_vote` is false for a wiped voter that has not caught up."""

    log: Log
    snapshots: SnapshotStore
    state: QuorumState
    view: LogView
    history: VoterHistory
    may_vote: bool = True


def open_replica(
    runtime: Runtime, log_dir: str, config: "TopicConfig", static_voters: VoterSet | None = None
) -> Opened:
    """Open the metadata log in a log directory, or begin one.

    `static_voters` are those of the configuration; voters recorded in the log go before them. The log is
    always checked from the last snapshot on. Raises OSError, QuorumError, QuorumStateError.
    """
    path = partition_path(log_dir)
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
        try:
            snapshot = checked_snapshot(snapshots.read(newest))
        except SnapshotError as e:
            raise QuorumError(f"{path}/{newest.file_name} is damaged: {e}") from e
        history.reset(newest.end_offset, snapshot.facts)
    _read_control_records(log, start_offset, history)
    may_vote = read_mark(runtime.disk, log_dir) is not FirstStartMark.WIPED
    state = read_quorum_state(runtime.disk, log_dir)
    return Opened(log, snapshots, state, _view(log, snapshots), history, may_vote)


def partition_path(log_dir: str) -> str:
    return f"{log_dir.rstrip('/')}/{PARTITION_DIR}"


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


def read_quorum_state(disk: Disk, log_dir: str) -> QuorumState:
    try:
        return parse_quorum_state(read_file(disk, f"{partition_path(log_dir)}/{QUORUM_STATE_FILE}"))
    except FileNotFoundError:
        return QuorumState()


def check_quorum_state(disk: Disk, log_dir: str, opened: Opened, node_id: int, directory_id: UUID) -> None:
    """Refuse the quorum-state of another voter or of other voters: what it says was not promised by this one.

    Raises QuorumError.
    """
    path = f"{partition_path(log_dir)}/{QUORUM_STATE_FILE}"
    state, facts = opened.state, opened.history.last
    if state.voted_id == node_id and state.voted_directory_id not in (ZERO_UUID, directory_id):
        raise QuorumError(
            f"{path} is of another voter: it holds a vote for node {node_id} with directory "
            f"{uuid_to_text(state.voted_directory_id)}, and this one has {uuid_to_text(directory_id)}"
        )
    if facts.kraft_version or facts.voters is None:
        return
    try:
        recorded = parse_recorded_voters(read_file(disk, path))
    except FileNotFoundError:
        return
    if recorded and set(recorded) != set(facts.voters.ids):
        raise QuorumError(
            f"Configured voter set: {sorted(facts.voters.ids)} is different from the voter set read from the "
            f"state file {path}: {sorted(recorded)}. Check if the quorum configuration is up to date"
        )


def read_mark(disk: Disk, log_dir: str) -> FirstStartMark | None:
    """QuorumError for a mark that nobody wrote: guessing would risk a vote."""
    path = f"{partition_path(log_dir)}/{FIRST_START_FILE}"
    try:
        return FirstStartMark(read_file(disk, path).decode("ascii", "replace").strip())
    except FileNotFoundError:
        return None
    except ValueError as e:
        raise QuorumError(f"{path} cannot be read: {e}") from e


def remove_mark(disk: Disk, log_dir: str) -> None:
    path = partition_path(log_dir)
    if unlink_if_exists(disk, f"{path}/{FIRST_START_FILE}"):
        disk.fsync_dir(path)
