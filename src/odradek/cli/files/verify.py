"""What `odradek log verify` and `odradek log diff` show. log/verifying does the checks."""

import os
from collections.abc import Sequence
from typing import NamedTuple

from odradek.cli.errors import Failure, FoundProblem, Usage
from odradek.cli.files.stored_configs import stored_topics
from odradek.cli.session import Session
from odradek.cli.terminal.output import Table, columns
from odradek.cli.terminal.progress import Progress
from odradek.core.types import TopicPartition
from odradek.log.names import LOCK, LOG_SUFFIX, META_PROPERTIES, parse_partition_dir
from odradek.log.verifying.comparing import Located, Replica, Unreadable, compare
from odradek.log.verifying.directory import (
    check_identity,
    check_partition,
    partition_directories,
    read_log_directory,
)
from odradek.log.verifying.findings import Findings
from odradek.runtime.real import RealDisk

_FINDINGS = columns("FILE POSITION# PROBLEM EXPECTED FOUND NEXT-START")
_DIFFERENCES = columns(
    "PARTITION FIRST-OFFSET# LAST-OFFSET# DIFFERENCE A-FILE+ A-POSITION#+ A-EPOCH# A-CRC# "
    "B-FILE+ B-POSITION#+ B-EPOCH# B-CRC#"
)


class _Place(NamedTuple):
    """Partitions of a log directory to look at; `whole`: it was named itself, not a partition in it."""

    log_dir: str
    whole: bool
    partitions: list[tuple[str, TopicPartition]]


def verify_paths(session: Session, paths: Sequence[str]) -> None:
    disk = RealDisk()
    places = [_place(disk, path) for path in paths]
    into = Findings()
    partitions = segments = checked = 0
    with _progress(session, disk, places, "verifying") as progress:
        for place in places:
            directory = read_log_directory(disk, place.log_dir, into if place.whole else None)
            in_use = disk.is_locked(f"{place.log_dir}/{LOCK}")
            if in_use:
                session.terminal.note(
                    f"a node runs on {place.log_dir}: a write in progress may show up as a finding"
                )
            if place.whole:
                check_identity(disk, directory, into, in_use=in_use)
            topics = stored_topics(disk, place.log_dir)
            for name, tp in place.partitions:
                extent = check_partition(
                    disk,
                    directory,
                    name,
                    tp,
                    topics.is_compacted,
                    into,
                    progress.advance,
                    topic_id=topics.topic_id(tp.topic),
                )
                partitions, segments = partitions + 1, segments + extent.segments
                checked += extent.bytes
    findings = into.all()
    session.table(Table(_FINDINGS, findings))
    counts = (partitions, "partition"), (segments, "segment"), (checked, "byte")
    summary = ", ".join(_count(number, noun) for number, noun in counts)
    if findings:
        raise FoundProblem(f"{_count(len(findings), 'finding')} in {summary}")
    session.terminal.note(f"no findings in {summary}")


def diff_paths(session: Session, a: str, b: str) -> None:
    disk = RealDisk()
    places = _place(disk, a), _place(disk, b)
    pairs = _pairs(*places)
    rows = []
    with _progress(session, disk, places, "comparing") as progress:
        for tp, path_a, path_b in pairs:
            for difference in compare(
                Replica(disk, path_a, progress.advance), Replica(disk, path_b, progress.advance)
            ):
                rows.append([str(tp), *difference[:3], *_told(difference.a), *_told(difference.b)])
    missing = [f"{tp} is only in {path}" for tp, path in _alone(*places)]
    session.table(Table(_DIFFERENCES, rows))
    if rows or missing:
        raise FoundProblem([*missing, *([_count(len(rows), "difference")] if rows else [])])
    session.terminal.note(f"no difference in {_count(len(pairs), 'partition')}")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _told(located: Located | Unreadable | None) -> tuple[str | int | None, ...]:
    if located is None:
        return (None,) * 4
    if isinstance(located, Unreadable):
        return located.file, located.position, None, None
    epoch = located.batch.partition_leader_epoch
    return located.file, located.position, None if epoch < 0 else epoch, located.batch.crc


def _place(disk: RealDisk, path: str) -> _Place:
    """Whether a path is a partition's directory or a log directory, by its content."""
    path = os.path.normpath(path)
    try:
        names = disk.listdir(path)
    except OSError as e:
        raise Failure(f"{path}: {e.strerror}", "next: ls the log directory (log.dirs)") from e
    parsed = parse_partition_dir(os.path.basename(os.path.abspath(path)))
    if parsed is not None and any(name.endswith(LOG_SUFFIX) for name in names):
        log_dir, name = os.path.split(os.path.abspath(path) if path == "." else path)
        return _Place(log_dir or ".", False, [(name, parsed[0])])
    partitions = partition_directories(disk, path)
    if not partitions and META_PROPERTIES not in names:
        raise Failure(f"{path}: neither the directory of a partition nor a log directory")
    return _Place(path, True, partitions)


def _progress(session: Session, disk: RealDisk, places: Sequence[_Place], label: str) -> Progress:
    total = 0
    for place in places:
        for name, _ in place.partitions:
            path = f"{place.log_dir}/{name}"
            total += sum(
                disk.stat(f"{path}/{file}").size for file in disk.listdir(path) if file.endswith(LOG_SUFFIX)
            )
    return session.progress(label, "bytes", total)


def _pairs(a: _Place, b: _Place) -> list[tuple[TopicPartition, str, str]]:
    if a.whole != b.whole:
        raise Usage("give two directories of partitions or two log directories, not one of each")
    if not a.whole:
        (name_a, tp), (name_b, _) = a.partitions[0], b.partitions[0]
        return [(tp, f"{a.log_dir}/{name_a}", f"{b.log_dir}/{name_b}")]
    others = {tp: name for name, tp in b.partitions}
    return [
        (tp, f"{a.log_dir}/{name}", f"{b.log_dir}/{others[tp]}") for name, tp in a.partitions if tp in others
    ]


def _alone(a: _Place, b: _Place) -> list[tuple[TopicPartition, str]]:
    """The partitions that only one of two log directories has."""
    if not a.whole:
        return []
    in_a, in_b = ({tp for _, tp in place.partitions} for place in (a, b))
    return [(tp, a.log_dir) for tp in sorted(in_a - in_b)] + [(tp, b.log_dir) for tp in sorted(in_b - in_a)]
