"""partition.metadata: durable before the first record, and no later."""

import errno
import uuid

import pytest

from odradek.core.errors import StorageError
from odradek.log.parts.partition_metadata import PartitionMetadataFile
from tests.unit.log.parts.support import Parts

ID = uuid.UUID(int=7)


def test_the_id_of_an_empty_log_need_not_be_durable_yet(parts: Parts) -> None:
    metadata = PartitionMetadataFile(parts.dir, parts.segments, None)
    assert metadata.is_durable, "there is nothing to lose"
    metadata.write(ID)
    assert metadata.topic_id == ID
    assert not metadata.is_durable
    assert parts.take_synced() == []
    metadata.persist()
    assert metadata.is_durable
    assert parts.take_synced() == ["partition.metadata", "orders-0/"]


def test_the_id_of_a_log_with_records_is_durable_at_once(parts: Parts) -> None:
    parts.write()
    assert PartitionMetadataFile(parts.dir, parts.segments, ID).is_durable
    metadata = PartitionMetadataFile(parts.dir, parts.segments, None)
    metadata.write(ID)
    assert metadata.is_durable
    assert "partition.metadata" in parts.take_synced()


def test_a_log_that_failed_is_bound_to_no_topic(parts: Parts) -> None:
    parts.dir.fail(OSError(errno.EIO, "broken"), "reading")
    metadata = PartitionMetadataFile(parts.dir, parts.segments, None)
    with pytest.raises(StorageError):
        metadata.write(ID)
    assert "partition.metadata" not in parts.files()


def test_an_id_that_cannot_be_synced_takes_the_log_offline(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = PartitionMetadataFile(parts.dir, parts.segments, None)
    metadata.write(ID)

    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(type(parts.disk), "fsync_dir", refuse)
    with pytest.raises(StorageError, match="writing the topic id"):
        metadata.persist()
    assert not metadata.is_durable
    assert parts.dir.failure is not None


def test_a_damaged_id_is_replaced(parts: Parts) -> None:
    metadata = PartitionMetadataFile(parts.dir, parts.segments, uuid.UUID(int=1))
    metadata.mend(ID)
    assert metadata.topic_id == ID
    assert "AAAAAAAAAAAAAAAAAAAABw" in (parts.path / "partition.metadata").read_text()
