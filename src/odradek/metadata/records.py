"""The record types of the metadata log, as Apache Kafka 4.3 writes them, with their encoding.

The controller writes them, draft.py applies them. Directory ids 0, 1 and 2 mean migrating, unassigned and
lost, as in Kafka.
"""

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from odradek.core.errors import ProtocolError
from odradek.core.types import Buffer
from odradek.wire.layout import Layout, of
from odradek.wire.varint import decode_uvarint

FRAME_VERSION = 1
NO_LEADER_CHANGE = -2
"""PartitionChangeRecord.leader if the leader and its epoch do not change."""

FENCE, UNFENCE = 1, -1
"""Values of BrokerRegistrationChangeRecord.fenced; 0 means no change."""


class MetadataRecord(Layout):
    """Base class of all metadata records."""

    api_key: ClassVar[int]

    def write_version(self) -> int:
        """The default version for writing: the newest."""
        return self.codec.schema.versions[1]


class BrokerEndpoint(Layout):
    name: str = of("string")
    host: str = of("string")
    port: int = of("uint16")
    security_protocol: int = of("int16")


class BrokerFeature(Layout):
    name: str = of("string")
    min_supported_version: int = of("int16")
    max_supported_version: int = of("int16")


class RegisterBrokerRecord(MetadataRecord, versions=(0, 4), flexible_from=0):
    api_key = 0
    broker_id: int = of("int32")
    is_migrating_zk_broker: bool = of("bool", since=2, default=False)
    incarnation_id: UUID = of("uuid")
    broker_epoch: int = of("int64")
    end_points: Sequence[BrokerEndpoint] = of(BrokerEndpoint, array=True)
    features: Sequence[BrokerFeature] = of(BrokerFeature, array=True)
    rack: str | None = of("string", null_from=0, default=None)
    fenced: bool = of("bool", default=True)
    in_controlled_shutdown: bool = of("bool", since=1, default=False)
    log_dirs: Sequence[UUID] = of("uuid", array=True, since=3, tag=0, default=())
    cordoned_log_dirs: Sequence[UUID] | None = of(
        "uuid", array=True, since=4, tag=1, null_from=4, default=None
    )


class UnregisterBrokerRecord(MetadataRecord, versions=(0, 0), flexible_from=0):
    api_key = 1
    broker_id: int = of("int32")
    broker_epoch: int = of("int64")


class TopicRecord(MetadataRecord, versions=(0, 0), flexible_from=0):
    api_key = 2
    name: str = of("string")
    topic_id: UUID = of("uuid")


class PartitionRecord(MetadataRecord, versions=(0, 2), flexible_from=0):
    api_key = 3
    partition_id: int = of("int32")
    topic_id: UUID = of("uuid")
    replicas: Sequence[int] = of("int32", array=True)
    isr: Sequence[int] = of("int32", array=True)
    removing_replicas: Sequence[int] = of("int32", array=True, default=())
    adding_replicas: Sequence[int] = of("int32", array=True, default=())
    leader: int = of("int32")
    leader_recovery_state: int = of("int8", tag=0, default=0)
    leader_epoch: int = of("int32")
    partition_epoch: int = of("int32")
    directories: Sequence[UUID] = of("uuid", array=True, since=1, default=())
    eligible_leader_replicas: Sequence[int] | None = of(
        "int32", array=True, since=2, tag=1, null_from=2, default=None
    )
    last_known_elr: Sequence[int] | None = of("int32", array=True, since=2, tag=2, null_from=2, default=None)


class ConfigRecord(MetadataRecord, versions=(0, 0), flexible_from=0):
    """resource_type: 2 for a topic, 4 for a broker. A null value removes the key."""

    api_key = 4
    resource_type: int = of("int8")
    resource_name: str = of("string")
    name: str = of("string")
    value: str | None = of("string", null_from=0)


class PartitionChangeRecord(MetadataRecord, versions=(0, 2), flexible_from=0):
    """Null or absent fields mean no change."""

    api_key = 5
    partition_id: int = of("int32")
    topic_id: UUID = of("uuid")
    isr: Sequence[int] | None = of("int32", array=True, tag=0, null_from=0, default=None)
    leader: int = of("int32", tag=1, default=NO_LEADER_CHANGE)
    replicas: Sequence[int] | None = of("int32", array=True, tag=2, null_from=0, default=None)
    removing_replicas: Sequence[int] | None = of("int32", array=True, tag=3, null_from=0, default=None)
    adding_replicas: Sequence[int] | None = of("int32", array=True, tag=4, null_from=0, default=None)
    leader_recovery_state: int = of("int8", tag=5, default=-1)
    eligible_leader_replicas: Sequence[int] | None = of(
        "int32", array=True, since=2, tag=6, null_from=2, default=None
    )
    last_known_elr: Sequence[int] | None = of("int32", array=True, since=2, tag=7, null_from=2, default=None)
    directories: Sequence[UUID] | None = of("uuid", array=True, since=1, tag=8, null_from=1, default=None)


class FenceBrokerRecord(MetadataRecord, versions=(0, 0), flexible_from=0):
    """Written by old controllers; now a BrokerRegistrationChangeRecord."""

    api_key = 7
    id: int = of("int32")
    epoch: int = of("int64")


class UnfenceBrokerRecord(MetadataRecord, versions=(0, 0), flexible_from=0):
    """Written by old controllers; now a BrokerRegistrationChangeRecord."""

    api_key = 8
    id: int = of("int32")
    epoch: int = of("int64")


class RemoveTopicRecord(MetadataRecord, versions=(0, 0), flexible_from=0):
    api_key = 9
    topic_id: UUID = of("uuid")


class DelegationTokenRecord(MetadataRecord, versions=(0, 0), flexible_from=0):
    api_key = 10
    owner: str = of("string")
    requester: str = of("string")
    renewers: Sequence[str] = of("string", array=True)
    issue_timestamp: int = of("int64")
    max_timestamp: int = of("int64")
    expiration_timestamp: int = of("int64")
    token_id: str = of("string")


class UserScramCredentialRecord(MetadataRecord, versions=(0, 0), flexible_from=0):
    api_key = 11
    name: str = of("string")
    mechanism: int = of("int8")
    salt: bytes = of("bytes")
    stored_key: bytes = of("bytes")
    server_key: bytes = of("bytes")
    iterations: int = of("int32")


class FeatureLevelRecord(MetadataRecord, versions=(0, 0), flexible_from=0):
    api_key = 12
    name: str = of("string")
    feature_level: int = of("int16")


class EntityData(Layout):
    entity_type: str = of("string")
    entity_name: str | None = of("string", null_from=0)


class ClientQuotaRecord(MetadataRecord, versions=(0, 0), flexible_from=0):
    api_key = 14
    entity: Sequence[EntityData] = of(EntityData, array=True)
    key: str = of("string")
    value: float = of("float64")
    remove: bool = of("bool", default=False)


class ProducerIdsRecord(MetadataRecord, versions=(0, 0), flexible_from=0):
    api_key = 15
    broker_id: int = of("int32")
    broker_epoch: int = of("int64")
    next_producer_id: int = of("int64")


class BrokerRegistrationChangeRecord(MetadataRecord, versions=(0, 3), flexible_from=0):
    api_key = 17
    broker_id: int = of("int32")
    broker_epoch: int = of("int64")
    fenced: int = of("int8", tag=0, default=0)
    in_controlled_shutdown: int = of("int8", since=1, tag=1, default=0)
    log_dirs: Sequence[UUID] = of("uuid", array=True, since=2, tag=2, default=())
    cordoned_log_dirs: Sequence[UUID] | None = of(
        "uuid", array=True, since=3, tag=3, null_from=3, default=None
    )

    def write_version(self) -> int:
        """The lowest version that can hold the content, as in Apache Kafka."""
        if self.cordoned_log_dirs is not None:
            return 3
        if self.log_dirs:
            return 2
        return 1 if self.in_controlled_shutdown else 0


class AccessControlEntryRecord(MetadataRecord, versions=(0, 0), flexible_from=0):
    api_key = 18
    id: UUID = of("uuid")
    resource_type: int = of("int8")
    resource_name: str = of("string")
    pattern_type: int = of("int8")
    principal: str = of("string")
    host: str = of("string")
    operation: int = of("int8")
    permission_type: int = of("int8")


class RemoveAccessControlEntryRecord(MetadataRecord, versions=(0, 0), flexible_from=0):
    api_key = 19
    id: UUID = of("uuid")


class NoOpRecord(MetadataRecord, versions=(0, 0), flexible_from=0):
    api_key = 20


class ZkMigrationStateRecord(MetadataRecord, versions=(0, 0), flexible_from=0):
    api_key = 21
    zk_migration_state: int = of("int8", default=0)


class RemoveUserScramCredentialRecord(MetadataRecord, versions=(0, 0), flexible_from=0):
    api_key = 22
    name: str = of("string")
    mechanism: int = of("int8")


class BeginTransactionRecord(MetadataRecord, versions=(0, 0), flexible_from=0):
    api_key = 23
    name: str | None = of("string", tag=0, null_from=0, default=None)


class EndTransactionRecord(MetadataRecord, versions=(0, 0), flexible_from=0):
    api_key = 24


class AbortTransactionRecord(MetadataRecord, versions=(0, 0), flexible_from=0):
    api_key = 25
    reason: str | None = of("string", tag=0, null_from=0, default=None)


class RemoveDelegationTokenRecord(MetadataRecord, versions=(0, 0), flexible_from=0):
    api_key = 26
    token_id: str = of("string")


class RegisterControllerRecord(MetadataRecord, versions=(0, 0), flexible_from=0):
    api_key = 27
    controller_id: int = of("int32")
    incarnation_id: UUID = of("uuid")
    zk_migration_ready: bool = of("bool", default=False)
    end_points: Sequence[BrokerEndpoint] = of(BrokerEndpoint, array=True)
    features: Sequence[BrokerFeature] = of(BrokerFeature, array=True)


class ClearElrRecord(MetadataRecord, versions=(0, 0), flexible_from=0):
    api_key = 28
    topic_name: str = of("string")


RECORD_TYPES: dict[int, type[MetadataRecord]] = {
    cls.api_key: cls
    for cls in (
        RegisterBrokerRecord,
        UnregisterBrokerRecord,
        TopicRecord,
        PartitionRecord,
        ConfigRecord,
        PartitionChangeRecord,
        FenceBrokerRecord,
        UnfenceBrokerRecord,
        RemoveTopicRecord,
        DelegationTokenRecord,
        UserScramCredentialRecord,
        FeatureLevelRecord,
        ClientQuotaRecord,
        ProducerIdsRecord,
        BrokerRegistrationChangeRecord,
        AccessControlEntryRecord,
        RemoveAccessControlEntryRecord,
        NoOpRecord,
        ZkMigrationStateRecord,
        RemoveUserScramCredentialRecord,
        BeginTransactionRecord,
        EndTransactionRecord,
        AbortTransactionRecord,
        RemoveDelegationTokenRecord,
        RegisterControllerRecord,
        ClearElrRecord,
    )
}


class OpaqueRecord(MetadataRecord, versions=(0, 0), flexible_from=0):
    """A record of a type unknown here, or of a newer version of one that is only kept: its bytes."""

    api_key = -1
    value: bytes = of("bytes")


KEPT_TYPES: frozenset[type[MetadataRecord]] = frozenset(
    (
        DelegationTokenRecord,
        UserScramCredentialRecord,
        ClientQuotaRecord,
        AccessControlEntryRecord,
        RemoveAccessControlEntryRecord,
        RemoveUserScramCredentialRecord,
        RemoveDelegationTokenRecord,
    )
)
"""Types that no code here acts on: their records stay in image and snapshots until they are removed."""


def encode_record(record: MetadataRecord, version: int | None = None) -> bytes:
    """The value of a record in the log: frame version, type and version as varints, then the body."""
    if isinstance(record, OpaqueRecord):
        return record.value
    if version is None:
        version = record.write_version()
    frame = bytes((FRAME_VERSION, record.api_key, version))
    return frame + record.codec.encoder(version)(record)


def decode_record(value: Buffer) -> MetadataRecord:
    """Raises ProtocolError for bytes that are not a metadata record, or for a newer record that needs an
    action.

    Records without effect here are kept unchanged, so that other nodes find them in our snapshots.
    """
    api_key, version, position = record_frame(value)
    cls = RECORD_TYPES.get(api_key)
    if cls is None or (cls in KEPT_TYPES and version > cls.codec.schema.versions[1]):
        return OpaqueRecord(value=bytes(value))
    record: MetadataRecord
    record, position = cls.codec.decoder(version)(value, position)
    return record


def record_frame(value: Buffer) -> tuple[int, int, int]:
    """(record type, version, position of the body)."""
    try:
        frame_version, position = decode_uvarint(value, 0)
        api_key, position = decode_uvarint(value, position)
        version, position = decode_uvarint(value, position)
    except IndexError as e:
        raise ProtocolError("a metadata record is truncated") from e
    if frame_version != FRAME_VERSION:
        raise ProtocolError(f"unknown frame version {frame_version} of a metadata record")
    return api_key, version, position
