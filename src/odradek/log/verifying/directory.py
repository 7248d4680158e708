"""Checks a log directory: its checkpoints, its meta.properties, and every partition in it."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from odradek.core.types import METADATA_TOPIC, TopicPartition
from odradek.log import names
from odradek.log.checkpoints import CheckpointError, parse_meta_properties, parse_offsets
from odradek.log.files import read_file
from odradek.log.verifying.findings import Findings
from odradek.log.verifying.partition import Circumstances, Extent, PartitionCheck
from odradek.runtime.api import Disk

Compacted = Callable[[str], bool | None]
"""Whether a topic is compacted; None if unknown."""

_FATES = {
    names.RECOVERY_POINT_CHECKPOINT: "after an unclean stop every log is recovered from its beginning",
    names.LOG_START_CHECKPOINT: "every log starts at its first segment: deleted records come back",
    names.HIGH_WATERMARK_CHECKPOINT: "no record counts as replicated until the replicas fetch again",
    names.CLEANER_CHECKPOINT: "every compacted log is cleaned from its beginning",
}


class LogDirectory(NamedTuple):
    """The content of the files of a log directory itself."""

    path: str
    clean: bool
    recovery_points: Mapping[TopicPartition, int]
    log_starts: Mapping[TopicPartition, int]
    high_watermarks: Mapping[TopicPartition, int]
    cleaned: Mapping[TopicPartition, int]


def read_log_directory(disk: Disk, path: str, into: Findings | None = None) -> LogDirectory:
    """Read the checkpoints of a log directory. An unreadable one is a finding and counts as empty."""
    into = into or Findings()
    clean = disk.exists(f"{path}/{names.CLEAN_SHUTDOWN}")
    found = [
        # The first cleaning creates the cleaner's checkpoint.
        _offsets(disk, f"{path}/{name}", _FATES[name], into, clean and name != names.CLEANER_CHECKPOINT)
        for name in names.OFFSET_CHECKPOINTS
    ]
    return LogDirectory(path, clean, *found)


def _offsets(
    disk: Disk, path: str, fate: str, into: Findings, is_expected: bool
) -> dict[TopicPartition, int]:
    try:
        return parse_offsets(read_file(disk, path))
    except FileNotFoundError:
        if is_expected:
            into.add(path, None, "missing", "what a clean stop writes", "no file", fate)
        return {}
    except CheckpointError as e:
        into.add(path, 0, "unreadable", "topics, partitions and offsets", e, fate)
        return {}


def partition_directories(disk: Disk, path: str) -> list[tuple[str, TopicPartition]]:
    """(directory name, partition) of a log directory, without -delete, -stray and -future."""
    found = []
    for name in disk.listdir(path):
        parsed = names.parse_partition_dir(name)
        if parsed is not None and not parsed[1] and disk.stat(f"{path}/{name}").is_dir:
            found.append((name, parsed[0]))
    return found


def check_identity(disk: Disk, directory: LogDirectory, into: Findings, *, in_use: bool = False) -> None:
    """Check meta.properties and the mark of a clean stop. A directory `in_use` has no mark."""
    path = f"{directory.path}/{names.META_PROPERTIES}"
    try:
        parse_meta_properties(read_file(disk, path))
    except FileNotFoundError:
        into.add(
            path,
            None,
            "missing",
            "the ids of cluster, node and directory",
            "no file",
            "the node refuses to start",
        )
    except CheckpointError as e:
        into.add(path, 0, "unreadable", "cluster, node and directory", e, "the node refuses to start")
    if not directory.clean and not in_use:
        into.add(
            f"{directory.path}/{names.CLEAN_SHUTDOWN}",
            None,
            "not closed cleanly",
            "a mark of a clean stop",
            "no file",
            "every log is recovered from its recovery point",
        )


def check_partition(
    disk: Disk,
    directory: LogDirectory,
    name: str,
    tp: TopicPartition,
    compacted: Compacted,
    into: Findings,
    on_bytes: Callable[[int], None],
    *,
    topic_id: UUID | None = None,
) -> Extent:
    """Check one partition, and its offsets in the checkpoints. `topic_id` comes from the metadata; None if
    unknown."""
    circumstances = Circumstances(
        directory.clean,
        directory.recovery_points.get(tp, 0),
        directory.log_starts.get(tp, 0),
        # A topic may have been compacted before.
        True if tp.topic == METADATA_TOPIC or tp in directory.cleaned else compacted(tp.topic),
        topic_id,
        has_snapshots=tp.topic != METADATA_TOPIC,
    )
    extent = PartitionCheck(disk, f"{directory.path}/{name}", circumstances, into, on_bytes).run()
    for checkpoint, offsets, fate in _bounds(directory):
        offset = offsets.get(tp)
        if offset is not None and offset > extent.end_offset:
            into.add(
                f"{directory.path}/{checkpoint}",
                None,
                "beyond the end",
                f"for {tp} at most {extent.end_offset}, where the log ends",
                offset,
                fate,
            )
    return extent


def _bounds(directory: LogDirectory) -> Iterable[tuple[str, Mapping[TopicPartition, int], str]]:
    lost = "the log continues at its end: records that were durable are lost"
    return (
        (names.RECOVERY_POINT_CHECKPOINT, directory.recovery_points, lost),
        (names.LOG_START_CHECKPOINT, directory.log_starts, "the log starts empty at this offset"),
        (names.HIGH_WATERMARK_CHECKPOINT, directory.high_watermarks, lost.replace("durable", "replicated")),
        (names.CLEANER_CHECKPOINT, directory.cleaned, "the log is cleaned from its start"),
    )
