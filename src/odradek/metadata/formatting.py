"""Checks the data directories of a node, and formats new ones as Apache's storage tool does.

A directory counts as formatted when it has meta.properties, so this file is written last. After a crash
before that, the directory is formatted again.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Final, NamedTuple
from uuid import UUID

from odradek.core.errors import StorageError, is_exhausted
from odradek.core.types import METADATA_TOPIC, Buffer, uuid_to_text
from odradek.log.checkpoints import MetaProperties, check_cluster_id, format_meta_properties
from odradek.log.files import read_file, write_file
from odradek.log.managing.log_dir import LogDir
from odradek.log.names import META_PROPERTIES
from odradek.metadata.bootstrap import bootstrap_features
from odradek.metadata.image import RESERVED_DIRS
from odradek.metadata.records import MetadataRecord, decode_record, encode_record
from odradek.raft.control import QuorumFacts
from odradek.raft.opening import FIRST_START_FILE, PARTITION_DIR, QUORUM_STATE_FILE, FirstStartMark
from odradek.raft.quorum_state import QuorumState, format_quorum_state
from odradek.raft.snapshots import BOOTSTRAP_FILE, SnapshotBuilder, SnapshotId, read_snapshot
from odradek.raft.voters import Voter, VoterEndpoint, VoterSet
from odradek.records.batch import BatchMeta, iter_records
from odradek.runtime.api import Disk, Runtime


class FormatError(Exception):
    """Directories that belong to another node or cluster, or that must not be formatted, with the reason."""


class FirstVoters(NamedTuple):
    """How the metadata log of a new directory begins.

    kraft.version 1 records its voters in the log. The first snapshot names them: this node alone, those of
    `voters`, or nobody (`is_observer`: the node asks others who votes, and may join them). With kraft.version
    0 the voters are those of the configuration; one that formats itself leaves a `mark`, and counts as having
    voted in `epoch` (raft/first_start.py).
    """

    kraft_version: int = 1
    voters: VoterSet | None = None
    is_observer: bool = False
    mark: FirstStartMark | None = None
    epoch: int = 0


STANDALONE: Final = FirstVoters()
STATIC: Final = FirstVoters(kraft_version=0)
OBSERVER: Final = FirstVoters(is_observer=True)


class NodeIdentity(NamedTuple):
    """The ids of this node, from its directories."""

    cluster_id: str
    node_id: int
    directory_ids: Mapping[str, UUID]
    metadata_directory_id: UUID
    is_new: bool


def prepare_directories(
    runtime: Runtime,
    directories: Sequence[LogDir],
    *,
    node_id: int,
    metadata_log_dir: str,
    controller_endpoints: Sequence[VoterEndpoint],
    cluster_id: str | None = None,
    first_voters: FirstVoters = STANDALONE,
) -> NodeIdentity:
    """Check the opened and locked directories of a node, and format the new ones.

    Among them is that of the metadata log, which may hold nothing else.

    An unformatted metadata directory makes a new cluster, with the given id or a random one. Other new
    directories join the cluster of the formatted ones. A directory that cannot be formatted goes offline.
    Raises FormatError, CheckpointError for an invalid cluster id, OSError.
    """
    if cluster_id is not None:
        check_cluster_id(cluster_id)
    usable = [directory for directory in directories if directory.failure is None]
    formatted = [directory for directory in usable if directory.meta is not None]
    known = _check(formatted, node_id, cluster_id)
    metadata_dir = next((d for d in directories if d.path == metadata_log_dir.rstrip("/")), None)
    if metadata_dir is None:
        raise FormatError(f"The metadata log directory {metadata_log_dir} is not one of the log directories.")
    if metadata_dir.failure is not None:
        raise FormatError(
            f"Encountered I/O error in metadata log directory {metadata_log_dir}. Cannot continue."
        )
    is_new = metadata_dir.meta is None
    if is_new and formatted:
        raise FormatError(
            f"No `{META_PROPERTIES}` found in {metadata_dir.path}, the metadata log directory, while "
            f"{formatted[0].path} belongs to cluster {known}: the cluster's metadata is missing."
        )
    cluster_id = known or cluster_id or uuid_to_text(new_id(runtime.rng))
    for directory in usable:
        if directory.meta is not None:
            continue
        meta = MetaProperties(cluster_id, node_id, new_id(runtime.rng))
        try:
            _check_empty(runtime.disk, directory)
            if directory is metadata_dir:
                meta = _as_planned(meta, first_voters)
                _format_metadata_log(runtime, directory, meta, controller_endpoints, first_voters)
            _write_meta_properties(runtime, directory.path, meta)
        except OSError as e:
            if directory is metadata_dir or is_exhausted(e):
                raise
            directory.take_offline(StorageError(f"Cannot format {directory.path}: {e}"))
        else:
            directory.meta = meta
    ids = {d.path: d.meta.directory_id for d in usable if d.meta is not None}
    return NodeIdentity(cluster_id, node_id, ids, ids[metadata_dir.path], is_new)


def _check(formatted: Sequence[LogDir], node_id: int, cluster_id: str | None) -> str | None:
    """The cluster id of all directories."""
    seen: dict[UUID, str] = {}
    for directory in formatted:
        meta, path = directory.meta, f"{directory.path}/{META_PROPERTIES}"
        assert meta is not None
        cluster_id = cluster_id or meta.cluster_id
        if meta.cluster_id != cluster_id:
            raise FormatError(
                f"Invalid cluster.id in: {path}. Expected {cluster_id}, but read {meta.cluster_id}"
            )
        if meta.node_id != node_id:
            raise FormatError(
                f"Stored node id {meta.node_id} doesn't match previous node id {node_id} in {path}. If you "
                "moved your data, make sure your configured node id matches. If you intend to create a new "
                "node, you should remove all data in your data directories."
            )
        other = seen.setdefault(meta.directory_id, path)
        if other != path:
            raise FormatError(
                f"Duplicate directory ID {uuid_to_text(meta.directory_id)} found. It was the ID of {other}, "
                f"but also of {path}"
            )
    return cluster_id if formatted else None


def _check_empty(disk: Disk, directory: LogDir) -> None:
    """Refuse to format a directory with partitions or metadata but without meta.properties."""
    held = [
        name
        for name, tp, _ in directory.partition_dirs()
        if tp.topic != METADATA_TOPIC or _has_records(disk, f"{directory.path}/{name}")
    ]
    if held:
        raise FormatError(
            f"No `{META_PROPERTIES}` found in {directory.path}, but it contains {held[0]}: refusing to "
            "format a directory with data."
        )


def _has_records(disk: Disk, path: str) -> bool:
    """Whether a quorum has used a metadata log. Formatting writes only these files."""
    written = (SnapshotId(0, 0).file_name, QUORUM_STATE_FILE, FIRST_START_FILE)
    return any(not name.startswith(written) for name in disk.listdir(path))


def new_id(rng: Random) -> UUID:
    """A random id that is not reserved and whose text does not look like an option."""
    while True:
        value = UUID(bytes=rng.randbytes(16), version=4)
        if value not in RESERVED_DIRS and not uuid_to_text(value).startswith("-"):
            return value


def _as_planned(meta: MetaProperties, first_voters: FirstVoters) -> MetaProperties:
    """A first voter has the directory id under which the others know it."""
    voter = None if first_voters.voters is None else first_voters.voters.get(meta.node_id)
    return meta if voter is None else meta._replace(directory_id=voter.directory_id)


def _format_metadata_log(
    runtime: Runtime,
    directory: LogDir,
    meta: MetaProperties,
    endpoints: Sequence[VoterEndpoint],
    first_voters: FirstVoters,
) -> None:
    """bootstrap.checkpoint with the first records, and the snapshot at offset 0 with the first voters."""
    disk, now_ms = runtime.disk, runtime.clock.now_ms()
    bootstrap = SnapshotBuilder(0, 0, QuorumFacts(), now_ms)
    bootstrap.add([encode_record(record) for record in bootstrap_features()])
    write_file(disk, f"{directory.path}/{BOOTSTRAP_FILE}", bootstrap.finish())
    path = f"{directory.path}/{PARTITION_DIR}"
    disk.makedirs(path)
    if first_voters.mark is not None:
        state = format_quorum_state(QuorumState(leader_epoch=first_voters.epoch), 0)
        write_file(disk, f"{path}/{QUORUM_STATE_FILE}", state)
        write_file(disk, f"{path}/{FIRST_START_FILE}", f"{first_voters.mark}\n".encode())
    if first_voters.kraft_version == 0 or first_voters.is_observer:
        return
    own = Voter(meta.node_id, meta.directory_id, tuple(endpoints))
    facts = QuorumFacts(first_voters.kraft_version, first_voters.voters or VoterSet([own]))
    first = SnapshotBuilder(0, now_ms, facts, now_ms)
    write_file(disk, f"{path}/{SnapshotId(0, 0).file_name}", first.finish())


def _write_meta_properties(runtime: Runtime, path: str, meta: MetaProperties) -> None:
    disk = runtime.disk
    write_file(disk, f"{path}/{META_PROPERTIES}", format_meta_properties(meta, runtime.clock.now_ms()))
    disk.fsync_dir(path.rpartition("/")[0] or "/")


def read_bootstrap(disk: Disk, metadata_log_dir: str) -> list[MetadataRecord] | None:
    """The records of bootstrap.checkpoint, or None."""
    try:
        data = read_file(disk, f"{metadata_log_dir.rstrip('/')}/{BOOTSTRAP_FILE}")
    except FileNotFoundError:
        return None
    records: list[MetadataRecord] = []

    def take(data: Buffer, batch: BatchMeta) -> None:
        records.extend(decode_record(record.value or b"") for record in iter_records(data, batch))

    read_snapshot(data, take)
    return records
