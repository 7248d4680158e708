"""Formats and parses the small text files of a log directory. No I/O."""

import json
import re
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final, NamedTuple

from odradek.core.types import TopicPartition, uuid_from_text, uuid_to_text

_ID_LENGTH: Final = 22
_CLUSTER_ID = re.compile(rf"[a-zA-Z0-9_\-]{{1,{_ID_LENGTH}}}")


class CheckpointError(ValueError):
    """A checkpoint file that cannot be parsed, with the reason."""


class MetaProperties(NamedTuple):
    """The cluster, node and id of a log directory."""

    cluster_id: str
    node_id: int
    directory_id: uuid.UUID


def format_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """An offset checkpoint: version 0, the number of entries, then "topic partition offset" lines."""
    lines = [f"{topic} {partition} {offset}\n" for (topic, partition), offset in offsets.items()]
    return f"0\n{len(lines)}\n{''.join(lines)}".encode()


def parse_offsets(data: bytes) -> dict[TopicPartition, int]:
    offsets = {}
    for words in _entries(data, 3):
        offsets[TopicPartition(words[0], _int(words[1]))] = _int(words[2])
    return offsets


def format_epochs(epochs: Iterable[tuple[int, int]]) -> bytes:
    """A leader-epoch checkpoint: version 0, the number of entries, then "epoch start-offset" lines."""
    lines = [f"{epoch} {start}\n" for epoch, start in epochs]
    return f"0\n{len(lines)}\n{''.join(lines)}".encode()


def parse_epochs(data: bytes) -> list[tuple[int, int]]:
    epochs = [(_int(epoch), _int(start)) for epoch, start in _entries(data, 2)]
    for (epoch, start), (next_epoch, next_start) in pairwise(epochs):
        if next_epoch <= epoch or next_start < start:
            raise CheckpointError(f"epoch {next_epoch} at {next_start} follows epoch {epoch} at {start}")
    return epochs


def _entries(data: bytes, words: int) -> list[list[str]]:
    """The entries of a version 0 checkpoint. An empty file has none, as in Apache Kafka."""
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError as e:
        raise CheckpointError(f"not text: {e}") from e
    if not data:
        return []
    if lines.pop():
        raise CheckpointError("its last line is incomplete")
    if lines[0] != "0":
        raise CheckpointError(f"version {lines[0]!r}, not 0")
    if len(lines) < 2 or _int(lines[1]) != len(lines) - 2:
        raise CheckpointError(
            f"expected {lines[1] if len(lines) > 1 else '?'} entries, found {len(lines) - 2}"
        )
    entries = [line.split(" ") for line in lines[2:]]
    for line, entry in zip(lines[2:], entries, strict=True):
        if len(entry) != words:
            raise CheckpointError(f"malformed line {line!r}")
    return entries


def _int(text: str) -> int:
    """A number of a checkpoint: epochs, partitions and offsets are never negative."""
    if not (text.isascii() and text.isdecimal()):
        raise CheckpointError(f"{text!r} is not a number")
    return int(text)


def format_partition_metadata(topic_id: uuid.UUID) -> bytes:
    return f"version: 0\ntopic_id: {uuid_to_text(topic_id)}".encode()


def parse_partition_metadata(data: bytes) -> uuid.UUID:
    lines = data.decode("ascii", "replace").split("\n")
    if len(lines) < 2 or lines[0] != "version: 0" or not lines[1].startswith("topic_id: "):
        raise CheckpointError("not a version 0 partition.metadata")
    try:
        return uuid_from_text(lines[1].removeprefix("topic_id: "))
    except ValueError as e:
        raise CheckpointError(str(e)) from None


def is_damaged_topic_id(stored: uuid.UUID, expected: uuid.UUID) -> bool:
    """Whether a topic id is the expected one with a flipped bit. Ids are random: two different ids never
    differ in only one character of their text form."""
    pairs = zip(uuid_to_text(stored), uuid_to_text(expected), strict=True)
    return sum(a != b for a, b in pairs) == 1


def format_meta_properties(meta: MetaProperties, now_ms: int) -> bytes:
    """meta.properties of version 1, with the comment lines that Java writes above properties."""
    written = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")
    return (
        f"#\n#{written}\nnode.id={meta.node_id}\ndirectory.id={uuid_to_text(meta.directory_id)}\n"
        f"version=1\ncluster.id={meta.cluster_id}\n"
    ).encode()


def check_cluster_id(cluster_id: str) -> None:
    if not _CLUSTER_ID.fullmatch(cluster_id):
        raise CheckpointError(
            f"cluster.id {cluster_id!r} must be 1 to {_ID_LENGTH} of the characters a-z, A-Z, 0-9, _ and -"
        )


def parse_meta_properties(data: bytes) -> MetaProperties:
    values: dict[str, str] = {}
    line = value = ""
    for line in data.decode("latin-1").splitlines():
        if line and line[0] not in "#!":
            key, _, value = line.partition("=")
            value = values[key.strip()] = value.strip()
    # An id of full length is complete even without a newline.
    if not data.endswith((b"\n", b"\r")) and len(value) != _ID_LENGTH:
        raise CheckpointError(f"its last line is incomplete: {line!r}")
    if values.get("version") != "1":
        raise CheckpointError(f"meta.properties has version {values.get('version')}, not 1")
    for key in ("cluster.id", "node.id", "directory.id"):
        if key not in values:
            raise CheckpointError(f"meta.properties has no {key}")
    try:
        directory_id = uuid_from_text(values["directory.id"])
    except ValueError as e:
        raise CheckpointError(str(e)) from None
    check_cluster_id(values["cluster.id"])
    return MetaProperties(values["cluster.id"], _int(values["node.id"]), directory_id)


def format_clean_shutdown(broker_epoch: int) -> bytes:
    return b'{"version":0,"brokerEpoch":%d}' % broker_epoch


def parse_clean_shutdown(data: bytes) -> int:
    """The broker epoch that shut down cleanly; -1 if the file has none."""
    try:
        content = json.loads(data)
        return int(content["brokerEpoch"])
    except (ValueError, KeyError, TypeError):
        return -1
