"""Which values the fields of a hostile request get, by the names of the fields."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from odradek.wire.schema import Field, Struct
from tests.support.batches import batch

if TYPE_CHECKING:
    from tests.hostile.world import World

CONFIGS = ("retention.ms", "segment.bytes", "max.message.bytes", "flush.ms", "retention.bytes", "segment.ms")
RECORDS = batch([b"value"], timestamp=1_750_000_000_000)

# By the names of fields, in all APIs: what a request has to say to be taken.
USUAL: Mapping[str, Any] = {
    "acks": -1,
    "allow_auto_topic_creation": False,
    "committed_metadata": "",
    "committed_offset": 1,
    "count": 2,
    "entity_type": "user",
    "generation_id": -1,
    "match_type": 2,
    "max_bytes": 1 << 30,
    "max_wait": 0,
    "num_partitions": 1,
    "operation": 3,
    "partition_max_bytes": 1 << 20,
    "permission_type": 3,
    "protocol_type": "consumer",
    "rebalance_timeout": 30_000,
    "records": RECORDS,
    "replica_id": -1,
    "replication_factor": 1,
    "resource_type": 2,
    "resource_type_filter": 2,
    "resource_types": 2,
    "response_partition_limit": 2_000,
    "session_epoch": -1,
    "session_timeout": 30_000,
    "timeout": 30_000,
    "timestamp": -1,
    "transaction_result": True,
    "transaction_timeout": 60_000,
    "value": "1048576",
}
TOPIC_FIELDS = ("topic", "topic_name", "topic_names", "subscribed_topic_names", "resource_name", "name")
GROUP_FIELDS = ("group_id", "group_ids", "groups", "groups_names", "coordinator_keys", "key")
TRANSACTION_FIELDS = ("transactional_id", "transactional_ids", "v3_and_below_transactional_id")
PARTITION_FIELDS = ("partition", "partition_index", "index", "partitions", "partition_indexes")
CONFIG_STRUCTS = ("CreatableTopicConfig", "AlterableConfig")


class Names:
    """The values of one request. `given` goes before what is usual: by a field's name outside of the entries,
    with `each` before it in all of them, with `repeated` where they are all the same.
    """

    def __init__(self, world: "World", given: Mapping[str, Any]) -> None:
        self._world = world
        self._given = given
        self._topics: Sequence[str] = given.get("topics of the case", world.topics)
        self._groups: Sequence[str] = given.get("groups of the case", world.groups)
        self._salt = world.next_salt()

    def value(self, owner: Struct, field: Field) -> Any:
        if field.name in self._given:
            return self._given[field.name]
        if field.name in USUAL and not field.is_array:
            return USUAL[field.name]
        if field.type == "uuid":
            return self._world.wide_id
        kind = _kind(owner, field)
        if kind is not None and field.type == "string":
            return {"topic": "wide", "group": self._groups[0], "config": CONFIGS[0]}.get(
                kind, self._world.transactional_ids[0]
            )
        return None if field.default is ... else field.default

    def column(self, owner: Struct, field: Field, naming: str, count: int) -> Sequence[Any]:
        given = self._given.get(f"each {field.name}", ...)
        if given is ... and naming == "repeated":
            given = self._given.get(f"repeated {field.name}", ...)
        if given is not ...:
            return [given]
        if field.type == "uuid":
            return self._ids(naming, count)
        kind = _kind(owner, field)
        if kind == "partition":
            if naming == "repeated":
                return [0]
            return range(count) if naming == "many" else [i % self._world.size.wide for i in range(count)]
        if field.name in ("broker_ids", "replicas"):
            return list(range(count)) if naming == "many" else [1]
        if field.type == "string" and not (field.name in USUAL and kind is None):
            return self._texts(kind, naming, count)
        if field.name in USUAL and not (naming == "many" and field.is_array):
            return [USUAL[field.name]]
        if naming == "many" and field.is_array:  # of numbers that mean nothing here
            return [i % 100 for i in range(count)]
        return [b"" if field.type == "bytes" else field.default if field.default != () else 0]

    def _texts(self, kind: str | None, naming: str, count: int) -> Sequence[str]:
        if naming == "many" and self._given.get("unknown names") == "":
            return [f"{i:x}" for i in range(count)]
        if naming == "many" or kind is None:
            prefix = f"{self._given.get('unknown names', 'none')}-{self._salt:04x}-"
            return [prefix + "0"] if naming == "repeated" else [f"{prefix}{i:06x}" for i in range(count)]
        pool = {
            "topic": self._topics,
            "group": self._groups,
            "transaction": self._world.transactional_ids,
            "config": CONFIGS,
        }[kind]
        if naming == "repeated":
            return [pool[0]]
        return [pool[i % len(pool)] for i in range(count)]

    def _ids(self, naming: str, count: int) -> Sequence[UUID]:
        if naming == "many":
            return [UUID(int=(self._salt << 64) + i + 1) for i in range(count)]
        ids = [self._world.topic_ids[name] for name in self._topics]
        return ids[:1] if naming == "repeated" else [ids[i % len(ids)] for i in range(count)]


def _kind(owner: Struct, field: Field) -> str | None:
    """What a field names, if it names something that a node can hold."""
    if field.name in PARTITION_FIELDS and field.type == "int32":
        return "partition"
    if field.name == "configuration_keys" or (owner.name in CONFIG_STRUCTS and field.name == "name"):
        return "config"
    if field.name in TOPIC_FIELDS and owner.name != "JoinGroupRequestProtocol":
        return "topic"
    if field.name in GROUP_FIELDS:
        return "group"
    return "transaction" if field.name in TRANSACTION_FIELDS else None
