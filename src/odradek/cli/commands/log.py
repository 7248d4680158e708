"""`odradek log`: files of a log directory, read without a broker. dump_rows.py decodes them."""

import os
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from odradek.cli.declaring import Argument, Noun, option
from odradek.cli.errors import Failure, FoundProblem, Usage, raise_all, usage
from odradek.cli.options import command
from odradek.cli.session import Session

app = Noun()


@command(app, "dump", connects=False)
def dump(
    session: Session,
    paths: Annotated[list[str], Argument(metavar="PATH", help="Files, or directories with all their files.")],
    records: Annotated[bool, option("--records", help="Show records instead of batches.")] = False,
    offsets: Annotated[
        str | None,
        option(
            "-o", "--offsets", metavar="OFFSETS", help="Only these offsets: N or A:B.", show_default=False
        ),
    ] = None,
) -> None:
    """Show the contents of the files of a log directory.

    Segments, indexes, snapshots and checkpoints. Exits with 3 if a file is damaged.
    """
    first, stop = _bounds(session, offsets)
    files = [file for path in paths for file in _files(path)]
    damaged: list[str] = []
    failures: list[Failure] = []
    for number, path in enumerate(files):
        if len(files) > 1 and session.format in ("text", "wide"):
            session.terminal.data(("\n" if number else "") + f"==> {path} <==\n")
        try:
            _Dump(session, path, records, first, stop, damaged).show()
        except OSError as e:
            failures.append(Failure(f"{path}: {e.strerror}"))
    if damaged:
        failures.append(FoundProblem(damaged))
    raise_all(failures)


@command(app, "verify", connects=False)
def verify(
    session: Session,
    paths: Annotated[
        list[str],
        Argument(metavar="PATH", help="Directories of partitions, or whole log directories."),
    ],
) -> None:
    """Check the files of a log directory.

    Checks CRCs, the order of offsets, indexes, producer snapshots, leader epochs and checkpoints. A finding
    names file and position, what is expected, what was found, and what a node does about it when it starts.
    Changes nothing. Exits with 3 if there is a finding. On a running node, a write in progress may show up as
    a finding.
    """
    from odradek.cli.files.verify import verify_paths

    verify_paths(session, paths)


@command(app, "diff", connects=False)
def diff(
    session: Session,
    a: Annotated[str, Argument(metavar="A", help="Directory of a partition, or a log directory.")],
    b: Annotated[str, Argument(metavar="B", help="The same directory of the other replica.")],
) -> None:
    """Compare two replicas of a partition, or of all partitions that two log directories share.

    Compares offset, leader epoch and CRC of each batch. Exits with 3 if the replicas differ, also if one
    begins later or ends earlier than the other.
    """
    from odradek.cli.files.verify import diff_paths

    diff_paths(session, a, b)


def _bounds(session: Session, offsets: str | None) -> tuple[int, int | None]:
    from odradek.cli.records.offsets import At

    if offsets is None:
        return 0, None
    wanted = session.offsets(offsets)
    if any(bound.at is not At.OFFSET for bound in wanted if bound is not None):
        raise Usage(f"-o {offsets}: files take only N or A:B")
    first = wanted.first.value
    return (
        first,
        first + 1 if wanted.stop is None and ":" not in offsets else wanted.stop and wanted.stop.value,
    )


def _files(path: str) -> Iterator[str]:
    """A file itself, or the files of a directory and of the directories in it that hold something to show."""
    from odradek.cli.files.dump_rows import is_segment, kind_of
    from odradek.runtime.real import RealDisk

    disk = RealDisk()
    try:
        if not disk.stat(path).is_dir:
            yield path
            return
        for name in disk.listdir(path):
            inner = os.path.join(path, name)
            if disk.stat(inner).is_dir:
                yield from _files(inner)
            elif is_segment(name) or kind_of(name) is not None:
                yield inner
    except OSError as e:
        raise Failure(f"{e.filename}: {e.strerror}", "next: ls the log directory (log.dirs)") from e


class _Dump:
    """The dump of one file; damage is noted, not raised, so that the other files are shown too."""

    def __init__(
        self, session: Session, path: str, records: bool, first: int, stop: int | None, damaged: list[str]
    ) -> None:
        self._session = session
        self._path = path
        self._records = records
        self._first = first
        self._stop = stop
        self._damaged = damaged

    def show(self) -> None:
        from odradek.cli.files.dump_rows import BATCH_COLUMNS, RECORD_COLUMNS, is_segment, kind_of
        from odradek.log.names import offset_of

        name = os.path.basename(self._path)
        if is_segment(name):
            self._print(RECORD_COLUMNS if self._records else BATCH_COLUMNS, self._segment_rows())
            return
        kind = kind_of(name)
        if kind is None:
            raise Failure(f"{self._path}: cannot show this kind of file")
        self._print(
            kind.columns, self._guarded(kind.rows(self._read(), offset_of(name) or 0, self._session.zone))
        )

    def _print(self, columns: Any, rows: Iterable[list[Any]]) -> None:
        from odradek.cli.terminal.output import Column, stream_table

        is_table = self._session.format in ("text", "wide")
        if not is_table:
            columns = (Column("FILE"), *columns)
            rows = ([self._path, *row] for row in rows)
        terminal = self._session.terminal
        with usage():
            for piece in stream_table(columns, rows, self._session.format, escaped=terminal.escapes_data):
                terminal.data(piece)

    def _read(self) -> bytes:
        from odradek.log.files import read_file
        from odradek.runtime.real import RealDisk

        return read_file(RealDisk(), self._path)

    def _guarded(self, rows: Iterable[list[Any]]) -> Iterator[list[Any]]:
        from odradek.log.producers.snapshot import CorruptSnapshotError

        try:
            yield from rows
        except (ValueError, CorruptSnapshotError) as e:
            self._damaged.append(f"{self._path}: {e}")

    def _segment_rows(self) -> Iterator[list[Any]]:
        from odradek.cli.files.dump_decode import decoder_for
        from odradek.cli.files.dump_rows import batch_row, record_rows
        from odradek.cli.files.segment_file import SegmentFile
        from odradek.core.errors import KafkaError

        zone = self._session.zone
        decode = decoder_for(os.path.basename(os.path.dirname(os.path.abspath(self._path))))
        segment = SegmentFile(self._path)
        for data, start, batch in segment:
            if batch.last_offset < self._first:
                continue
            if self._stop is not None and batch.base_offset >= self._stop and not batch.is_wrapper:
                return
            row = batch_row(data, batch, start, zone)
            if not row[-1]:
                self._damaged.append(f"{self._path}: position {row[3]}: the batch does not match its CRC")
            if not self._records:
                yield row
                continue
            try:
                for record in record_rows(data, batch, decode, zone):
                    if self._first <= record[0] and (self._stop is None or record[0] < self._stop):
                        yield record
            except KafkaError as e:
                self._damaged.append(f"{self._path}: position {row[3]}: {e}")
        if segment.damage is not None:
            self._damaged.append(f"{self._path}: {segment.damage}")
