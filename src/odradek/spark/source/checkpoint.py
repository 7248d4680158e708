"""What Spark's checkpoint tells of a batch: the offsets of its sources. Read, never written."""

import json
import logging
from pathlib import Path
from urllib.parse import urlparse

from odradek.core.types import TopicPartition
from odradek.spark.ledger.ledger import LedgerError, Range
from odradek.spark.source.planning import from_json

_log = logging.getLogger(__name__)

_warned: set[str] = set()


def read_range(checkpoint: str | None, batch: int) -> Range:
    """From where to where the sources were read. Unknown where the checkpoint is out of reach."""
    if checkpoint is None:
        _warn("", "the sink does not know its checkpointLocation: the query's lag is not published")
        return Range()
    try:
        end = _lines(checkpoint, batch)
        start = _lines(checkpoint, batch - 1) if batch > 0 else ()
    except (OSError, ValueError) as e:
        _warn(
            checkpoint, f"the offsets in {checkpoint} cannot be read: {e}. The query's lag is not published"
        )
        return Range()
    return Range(start, end)


def read_range_of(checkpoint: str, batch: int, query: str | None) -> Range:
    """`read_range` for a path that a program passes for a query. Raises LedgerError for a wrong
    path. `query` is the query's id, if known."""
    found = query_id(checkpoint)
    if None not in (found, query) and found != query:
        raise LedgerError(
            f"checkpointLocation={checkpoint} belongs to the query {found}, but this write is in a batch of "
            f"{query}: give the path of its writeStream. Nothing was written"
        )
    range_ = read_range(checkpoint, batch)
    if not range_.is_known and _is_local(checkpoint):
        raise LedgerError(
            f"checkpointLocation={checkpoint} has no batch {batch}: give the path of the query's "
            "writeStream. Nothing was written"
        )
    return range_


def query_id(checkpoint: str) -> str | None:
    """None where there has been no query yet, or the checkpoint is out of reach."""
    try:
        return str(json.loads(read_file(checkpoint, "metadata"))["id"])
    except (OSError, ValueError, KeyError):
        return None


def source_offsets(range_: Range, cluster_id: str | None) -> dict[TopicPartition, int]:
    """Where the sources on this cluster will go on, as a consumer group commits it."""
    found: dict[TopicPartition, int] = {}
    for line in range_.end:
        try:
            offsets, cluster = from_json(json.loads(line))
        except (ValueError, TypeError, AttributeError):
            continue  # another kind of source
        if cluster == cluster_id:
            found.update(offsets)
    return found


def _lines(checkpoint: str, batch: int) -> tuple[str, ...]:
    """The lines of the sources, after the version and the settings."""
    lines = read_file(checkpoint, f"offsets/{batch}").splitlines()
    if not lines or not lines[0].startswith("v"):
        raise ValueError(f"offsets/{batch} is not in Spark's format")
    return tuple(lines[2:])


def read_file(checkpoint: str, name: str) -> str:
    if _is_local(checkpoint):
        return (Path(urlparse(checkpoint).path) / name).read_text()
    from pyarrow import fs

    files, path = fs.FileSystem.from_uri(checkpoint)
    with files.open_input_stream(f"{path}/{name}") as stream:
        return bytes(stream.read()).decode()


def _is_local(checkpoint: str) -> bool:
    return urlparse(checkpoint).scheme in ("", "file")


def _warn(about: str, message: str) -> None:
    if about not in _warned:
        _warned.add(about)
        _log.warning("%s", message)
