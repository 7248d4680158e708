"""Ids and cleanup policies of topics, out of the metadata log beside their partitions, without a broker."""

from collections.abc import Iterator
from uuid import UUID

from odradek.core.errors import KafkaError, ProtocolError
from odradek.core.types import METADATA_TOPIC
from odradek.log.names import LOG_SUFFIX
from odradek.log.segments.batch_pieces import pieces
from odradek.metadata.records import (
    ConfigRecord,
    MetadataRecord,
    RemoveTopicRecord,
    TopicRecord,
    decode_record,
    record_frame,
)
from odradek.records.batch import iter_records
from odradek.runtime.api import Disk

_TOPIC = 2
_CHECKPOINT_SUFFIX = ".checkpoint"
_KEY = "cleanup.policy"
_WANTED = frozenset(record.api_key for record in (TopicRecord, ConfigRecord, RemoveTopicRecord))


class StoredTopics:
    """Their ids, and the policies that were given to them: the defaults of brokers may stand elsewhere."""

    def __init__(self) -> None:
        self._topics: dict[UUID, str] = {}
        self._ids: dict[str, UUID] = {}
        self._policies: dict[str, str] = {}

    def replay(self, record: MetadataRecord) -> None:
        if isinstance(record, TopicRecord):
            self._topics[record.topic_id] = record.name
            self._ids[record.name] = record.topic_id
        elif isinstance(record, RemoveTopicRecord):
            name = self._topics.pop(record.topic_id, "")
            self._ids.pop(name, None)
            self._policies.pop(name, None)
        elif isinstance(record, ConfigRecord) and (record.resource_type, record.name) == (_TOPIC, _KEY):
            if record.value is None:
                self._policies.pop(record.resource_name, None)
            else:
                self._policies[record.resource_name] = record.value

    def is_compacted(self, topic: str) -> bool | None:
        """None where nobody knows."""
        policy = self._policies.get(topic)
        return None if policy is None else "compact" in policy

    def topic_id(self, topic: str) -> UUID | None:
        """None where nobody knows."""
        return self._ids.get(topic)


def stored_topics(disk: Disk, log_dir: str) -> StoredTopics:
    """From the newest snapshot of the metadata log and the records behind it, as far as they can be read."""
    topics = StoredTopics()
    for record in _records(disk, f"{log_dir}/{METADATA_TOPIC}-0"):
        topics.replay(record)
    return topics


def _records(disk: Disk, path: str) -> Iterator[MetadataRecord]:
    if not disk.exists(path):
        return
    names = disk.listdir(path)
    snapshots = [name for name in names if name.endswith(_CHECKPOINT_SUFFIX)]
    start = 0
    if snapshots:
        yield from _file_records(disk, f"{path}/{snapshots[-1]}", 0)
        start = int(snapshots[-1].partition("-")[0])
    for name in names:
        if name.endswith(LOG_SUFFIX):
            yield from _file_records(disk, f"{path}/{name}", start)


def _file_records(disk: Disk, path: str, start: int) -> Iterator[MetadataRecord]:
    for piece in pieces(disk, path):
        for batch in piece.batches:
            if batch.is_control or batch.last_offset < start:
                continue
            try:
                for record in iter_records(piece.data, batch):
                    value = record.value or b""
                    if record_frame(value)[0] in _WANTED:
                        yield decode_record(value)
            except (KafkaError, ProtocolError):
                continue  # `verify` tells what is wrong with the file
