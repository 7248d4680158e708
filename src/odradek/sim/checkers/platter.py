"""Reads the durable part of a node's logs from a disk image, without the node: what a power loss cannot
remove."""

import re
from collections.abc import Mapping

from odradek.coordinators.records import OffsetCommitKey, OffsetCommitValue, decode_group_record
from odradek.core.errors import KafkaError
from odradek.core.types import GROUP_METADATA_TOPIC, INTERNAL_TOPICS, TopicPartition
from odradek.records.batch import Record, iter_batches, iter_records
from odradek.records.header import crc_matches
from odradek.sim.world.volume import Volume

_SEGMENT = re.compile(r"^(?P<topic>.+)-(?P<partition>\d+)/(?P<base>\d{20})\.log(\.swap)?$")


def flushed_records(volume: Volume, data_dir: str) -> dict[TopicPartition, list[Record]]:
    """The records of every partition that a power loss at this moment cannot remove.

    They are the valid batches without a gap from the start of the first durable segment. No recovery keeps
    records after a gap. Internal topics are compacted, so they have gaps, and a segment may exist twice,
    before and after a cleaning.
    """
    segments: dict[TopicPartition, list[bytes]] = {}
    for path, file in volume.durable_files().items():
        match = _SEGMENT.match(path.removeprefix(data_dir).lstrip("/"))
        if match is not None:
            tp = TopicPartition(match["topic"], int(match["partition"]))
            segments.setdefault(tp, []).append(file.durable.to_bytes())
    return {tp: _chain(parts, gaps=tp.topic in INTERNAL_TOPICS) for tp, parts in segments.items()}


def flushed_commits(
    flushed: Mapping[TopicPartition, list[Record]],
) -> dict[tuple[str, TopicPartition], int]:
    """The committed offset of every group and partition, from the flushed part of the offsets topic."""
    commits: dict[tuple[str, TopicPartition], int] = {}
    for tp, records in flushed.items():
        if tp.topic != GROUP_METADATA_TOPIC:
            continue
        for record in records:
            if record.key is None:
                continue
            key, value = decode_group_record(record.key, record.value) or (None, None)
            if not isinstance(key, OffsetCommitKey):
                continue
            name = (key.group, TopicPartition(key.topic, key.partition))
            if isinstance(value, OffsetCommitValue):
                commits[name] = value.offset
            else:
                commits.pop(name, None)
    return commits


def _chain(segments: list[bytes], *, gaps: bool) -> list[Record]:
    records: dict[int, Record] = {}
    next_offset: int | None = None
    for data in segments:
        end = 0
        try:
            for batch in iter_batches(data):
                if not gaps and next_offset is not None and batch.base_offset != next_offset:
                    break
                if not crc_matches(data, batch):
                    break
                if not batch.is_control:
                    records.update((record.offset, record) for record in iter_records(data, batch))
                next_offset = batch.last_offset + 1
                end = batch.position + batch.size
        except KafkaError:
            break
        if end != len(data):
            break
    return [record for _, record in sorted(records.items())]
