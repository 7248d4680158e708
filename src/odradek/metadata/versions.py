"""The supported features, and the record versions of each metadata.version. Pure.

Levels are those of Apache Kafka 4.3: 30 is 4.3-IV0, and 7 (3.3-IV3) is the oldest one of KRaft.
"""

from collections.abc import Mapping
from typing import NamedTuple

from odradek.metadata.image import VersionRange
from odradek.metadata.records import (
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"

SUPPORTED_FEATURES: Mapping[str, VersionRange] = {
    "group.version": VersionRange(0, 1),
    KRAFT_VERSION: VersionRange(0, 1),
    METADATA_VERSION: VersionRange(7, 30),
    "share.version": VersionRange(0, 1),
    "streams.version": VersionRange(0, 1),
    "transaction.version": VersionRange(0, 2),
    "eligible.leader.replicas.version": VersionRange(0, 1),
}

NEWEST_METADATA_VERSION = SUPPORTED_FEATURES[METADATA_VERSION].max
NEWEST_RELEASE = "4.3-IV0"
"""The name of that level."""

# Levels at which record formats changed: a downgrade below one would lose metadata.
_CHANGED_RECORDS = (7, 8, 11, 13, 14, 15, 17, 23, 30)

_LEVEL_3_5_IV0 = 9
_LEVEL_3_6_IV0 = 12
_LEVEL_3_6_IV1 = 13
_LEVEL_3_7_IV0 = 15
_LEVEL_3_7_IV2 = 17
_LEVEL_4_0_IV1 = 23
_LEVEL_4_3_IV0 = 30


class RecordVersions(NamedTuple):
    """The record versions of one metadata.version."""

    register_broker: int
    partition: int

    @classmethod
    def at(cls, level: int) -> "RecordVersions":
        if level >= _LEVEL_4_3_IV0:
            register_broker = 4
        elif level >= _LEVEL_3_7_IV2:
            register_broker = 3
        else:
            register_broker = 2 if level >= _LEVEL_3_5_IV0 else 1
        if level >= _LEVEL_4_0_IV1:
            partition = 2
        else:
            partition = 1 if level >= _LEVEL_3_7_IV2 else 0
        return cls(register_broker, partition)

    @property
    def can_cordon(self) -> bool:
        return self.register_broker >= 4

    @property
    def has_directories(self) -> bool:
        return self.partition >= 1

    def of(self, record: MetadataRecord) -> int:
        """The version of a record for writing."""
        if isinstance(record, PartitionRecord | PartitionChangeRecord):
            return self.partition
        if isinstance(record, RegisterBrokerRecord):
            return self.register_broker
        return record.write_version()


def needs_epoch_for_shrink(level: int) -> bool:
    """Whether an ISR that shrinks takes a new leader epoch at a metadata.version."""
    return level < _LEVEL_3_6_IV0


def has_transactions(level: int) -> bool:
    """Whether a metadata.version supports metadata transactions (KIP-868)."""
    return level >= _LEVEL_3_6_IV1


def knows_controllers(level: int) -> bool:
    """Whether controllers register at a metadata.version (KIP-919)."""
    return level >= _LEVEL_3_7_IV0


def loses_metadata(current: int, target: int) -> bool:
    """Whether a downgrade from one metadata.version to another would lose metadata."""
    return any(target < level <= current for level in _CHANGED_RECORDS)
