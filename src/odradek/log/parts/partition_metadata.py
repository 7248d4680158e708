"""partition.metadata: the topic id of a partition's directory, and whether it is durable."""

import logging
import uuid

from odradek.log.checkpoints import format_partition_metadata
from odradek.log.files import sync_file, write_file
from odradek.log.names import PARTITION_METADATA
from odradek.log.parts.partition_dir import PartitionDir
from odradek.log.segments.segments import Segments
from odradek.runtime.api import Disk

_log = logging.getLogger(__name__)


def sync_topic_id(disk: Disk, path: str) -> None:
    """Sync partition.metadata and its directory entry."""
    sync_file(disk, f"{path}/{PARTITION_METADATA}")
    disk.fsync_dir(path)


class PartitionMetadataFile:
    """The topic id is durable before the first record is written. Records may reach the disk at any time
    without a sync. If a power loss left records in a directory without a topic id, they would count as
    records of the next topic with that name."""

    __slots__ = ("_dir", "_segments", "is_durable", "topic_id")

    def __init__(self, directory: PartitionDir, segments: Segments, topic_id: uuid.UUID | None) -> None:
        self._dir = directory
        self._segments = segments
        self.topic_id = topic_id
        # A log that has records made its topic id durable before them.
        self.is_durable = topic_id is None or segments.size_bytes > 0

    def write(self, topic_id: uuid.UUID) -> None:
        """Write the topic id. Without records it need not be durable yet."""
        directory = self._dir
        assert self.topic_id is None, f"{directory.path} belongs to topic {self.topic_id}"
        directory.check_online()
        path, content = f"{directory.path}/{PARTITION_METADATA}", format_partition_metadata(topic_id)
        try:
            write_file(directory.disk, path, content, sync=False)
        except OSError as e:
            raise directory.fail(e, "writing the topic id of") from e
        self.topic_id = topic_id
        self.is_durable = False
        if self._segments.size_bytes:
            self.persist()

    def mend(self, topic_id: uuid.UUID) -> None:
        """Replace a damaged topic id."""
        _log.warning(
            "%s/%s is damaged: replacing its topic id %s with %s",
            self._dir.path,
            PARTITION_METADATA,
            self.topic_id,
            topic_id,
        )
        self.topic_id = None
        self.write(topic_id)

    def persist(self) -> None:
        """Raises StorageError, ExhaustedError."""
        try:
            sync_topic_id(self._dir.disk, self._dir.path)
        except OSError as e:
            raise self._dir.fail(e, "writing the topic id of") from e
        self.is_durable = True

    def persisted(self) -> None:
        """`sync_topic_id` has ended in another thread."""
        self.is_durable = True
