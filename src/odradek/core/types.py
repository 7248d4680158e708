"""Small value types and constants that every layer shares. No behaviour beyond text forms."""

import base64
import uuid
from typing import NamedTuple, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
NO_LEADER = -1
NO_LEADER_EPOCH = -1
NO_OFFSET = -1
NO_TIMEOUT_MS = 0x7FFFFFFF
"""The timeout of a two-phase transaction (KIP-939): only its producer ends it, never its coordinator."""

ZERO_UUID = uuid.UUID(int=0)
METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = uuid.UUID(int=1)
GROUP_METADATA_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, "__share_group_state"})


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class ProducerIdAndEpoch(NamedTuple):
    """As whom a producer writes: sequences count from 0 in each. Where every end of a transaction bumps the
    epoch (KIP-890), it names a transaction, too."""

    producer_id: int
    producer_epoch: int


def uuid_to_text(value: uuid.UUID) -> str:
    """Kafka's text form of a Uuid: 22 characters of URL-safe base64, no padding."""
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def uuid_from_text(text: str) -> uuid.UUID:
    if len(text) > 24:
        raise ValueError(f"not a Kafka uuid: {text!r}")
    try:
        return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except ValueError as e:
        raise ValueError(f"not a Kafka uuid: {text!r}") from e


def java_hash(text: str) -> int:
    """String.hashCode of the JVM, which places groups and transactional ids on partitions."""
    h = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for i in range(0, len(encoded), 2):
        h = (31 * h + (encoded[i] << 8 | encoded[i + 1])) & 0xFFFFFFFF
    return h - (1 << 32) if h >= 1 << 31 else h


def coordinator_partition(key: str, partitions: int) -> int:
    """The partition of an internal topic that owns a group or a transactional id (Kafka's Utils.abs)."""
    h = java_hash(key)
    return (0 if h == -(1 << 31) else abs(h)) % partitions
