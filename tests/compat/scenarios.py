"""One conversation per served API, held at each of its versions: what to ask, in fields of every version.

A scenario is a generator of requests; names that differ from run to run come from its World. What the
broker answers is compared elsewhere (test_versions.py).
"""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

from tests.support.batches import batch
from tests.support.group import ASSIGNMENT, Member
from tests.support.produce import produce
from tests.support.raw import Connection
from tests.support.stored import topic_id
from tests.support.topics import create_topic

BASE_MS = 1_700_000_000_000
STRANGER = uuid.UUID(int=0x5EED)


class World:
    """What a scenario may lean on: a topic of two partitions with three records in the first, and a group."""

    def __init__(self, bootstrap: str, unique: Callable[[str], str]) -> None:
        self.bootstrap = bootstrap
        self.topic, self.other, self.group = unique("topic"), unique("other"), unique("group")
        create_topic(bootstrap, self.topic, 2)
        with Connection(bootstrap) as connection:
            self.topic_id = topic_id(connection, self.topic)
            for i in range(3):
                produce(connection, self.topic, batch([b"value"], key=b"key", timestamp=BASE_MS + i))
            self.node_id = connection.call(3, 1, {"topics": []}).brokers[0].node_id
        self.unique = unique

    def member(self, **options: Any) -> Member:
        return Member(self.bootstrap, self.group, **options)


Scenario = Callable[[World, int], Iterator[dict[str, Any]]]
SCENARIOS: dict[int, Scenario] = {}


def scenario(api_key: int) -> Callable[[Scenario], Scenario]:
    def register(function: Scenario) -> Scenario:
        SCENARIOS[api_key] = function
        return function

    return register


@scenario(0)
def produce_(world: World, version: int) -> Iterator[dict[str, Any]]:
    def values(name: str, identifier: uuid.UUID, index: int, records: bytes | None) -> dict[str, Any]:
        data = [{"index": index, "records": records}]
        return {
            "transactional_id": None,
            "acks": -1,
            "timeout": 10_000,
            "topic_data": [{"name": name, "topic_id": identifier, "partition_data": data}],
        }

    good = batch([b"a", b"b"], timestamp=BASE_MS)
    yield values(world.topic, world.topic_id, 0, good)
    yield values(world.topic, world.topic_id, 9, good)
    yield values(world.other, STRANGER, 0, good)
    yield values(world.topic, world.topic_id, 1, batch(crc_xor=1))
    yield {**values(world.topic, world.topic_id, 1, good), "acks": 5}


@scenario(1)
def fetch(world: World, version: int) -> Iterator[dict[str, Any]]:
    def values(name: str, identifier: uuid.UUID, index: int, offset: int, **over: Any) -> dict[str, Any]:
        row = {
            "partition": index,
            "current_leader_epoch": -1,
            "fetch_offset": offset,
            "last_fetched_epoch": -1,
            "log_start_offset": -1,
            "partition_max_bytes": 1 << 20,
            **over,
        }
        return {
            "replica_id": -1,
            "replica_state": {"replica_id": -1, "replica_epoch": -1},
            "max_wait": 0,
            "min_bytes": 0,
            "max_bytes": 1 << 20,
            "isolation_level": 0,
            "session_id": 0,
            "session_epoch": -1,
            "topics": [{"topic": name, "topic_id": identifier, "partitions": [row]}],
            "forgotten_topics_data": [],
            "rack_id": "",
        }

    yield values(world.topic, world.topic_id, 0, 1)
    yield values(world.topic, world.topic_id, 0, 3)
    yield values(world.topic, world.topic_id, 0, 99)
    yield values(world.topic, world.topic_id, 9, 0)
    yield values(world.other, STRANGER, 0, 0)
    yield values(world.topic, world.topic_id, 0, 0, current_leader_epoch=0)
    yield values(world.topic, world.topic_id, 0, 0, current_leader_epoch=4)
    yield {**values(world.topic, world.topic_id, 0, 2), "isolation_level": 1}


@scenario(2)
def list_offsets(world: World, version: int) -> Iterator[dict[str, Any]]:
    for timestamp in (-1, -2, -3, -4, -5, -6, BASE_MS + 1, BASE_MS + 9):
        for partition in (0, 1):
            row = {"partition_index": partition, "current_leader_epoch": -1, "timestamp": timestamp}
            yield {
                "replica_id": -1,
                "isolation_level": 0,
                "timeout": 1000,
                "topics": [{"name": world.topic, "partitions": [row]}],
            }
    row = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
    yield {"replica_id": -1, "isolation_level": 1, "topics": [{"name": world.other, "partitions": [row]}]}
    stale = {**row, "current_leader_epoch": 7}
    yield {"replica_id": -1, "isolation_level": 0, "topics": [{"name": world.topic, "partitions": [stale]}]}


@scenario(3)
def metadata(world: World, version: int) -> Iterator[dict[str, Any]]:
    base = {
        "allow_auto_topic_creation": False,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
    }
    yield {**base, "topics": [{"name": world.topic, "topic_id": None}]}
    if version >= 4:
        yield {**base, "topics": [{"name": world.other, "topic_id": None}]}
        yield {**base, "topics": [{"name": "no/such", "topic_id": None}]}
    if version >= 1:
        yield {**base, "topics": []}
    if version >= 10:
        yield {**base, "topics": [{"name": None, "topic_id": world.topic_id}]}
        yield {**base, "topics": [{"name": None, "topic_id": STRANGER}]}
        yield {**base, "topics": [{"name": world.other, "topic_id": world.topic_id}]}
    yield {
        **base,
        "topics": [{"name": world.topic, "topic_id": None}],
        "include_cluster_authorized_operations": True,
        "include_topic_authorized_operations": True,
    }


@scenario(8)
def offset_commit(world: World, version: int) -> Iterator[dict[str, Any]]:
    def values(topic: str, identifier: uuid.UUID, member: Member | None, **over: Any) -> dict[str, Any]:
        row = {
            "partition_index": 0,
            "committed_offset": 2,
            "committed_leader_epoch": 0,
            "committed_metadata": "note",
        }
        return {
            "group_id": world.group,
            "generation_id_or_member_epoch": member.generation if member else -1,
            "member_id": member.member_id if member else "",
            "group_instance_id": None,
            "retention_time": -1,
            "topics": [{"name": topic, "topic_id": identifier, "partitions": [row]}],
            **over,
        }

    with world.member() as member:
        member.stabilise()
        yield values(world.topic, world.topic_id, member)
        yield values(world.other, STRANGER, member)
        yield values(world.topic, world.topic_id, member, generation_id_or_member_epoch=77)
        yield values(world.topic, world.topic_id, member, member_id="nobody")
        yield values(world.topic, world.topic_id, None)
        member.leave()
        yield values(world.topic, world.topic_id, None)
        yield values(world.topic, world.topic_id, None, group_id="")


@scenario(9)
def offset_fetch(world: World, version: int) -> Iterator[dict[str, Any]]:
    def values(group: str, topics: list[tuple[str, uuid.UUID]] | None) -> dict[str, Any]:
        rows = None
        if topics is not None:
            rows = [{"name": n, "topic_id": i, "partition_indexes": [0, 1]} for n, i in topics]
        wanted = {"group_id": group, "member_id": None, "member_epoch": -1, "topics": rows}
        return {"group_id": group, "topics": rows, "groups": [wanted], "require_stable": False}

    with world.member() as member:
        member.stabilise()
        member.commit(world.topic, 2, metadata="note")
        yield values(world.group, [(world.topic, world.topic_id)])
        yield values(world.group, [(world.other, STRANGER)])
        yield values(world.unique("group"), [(world.topic, world.topic_id)])
        yield values("", [(world.topic, world.topic_id)])
        if version >= 2:
            yield values(world.group, None)
            yield values(world.unique("group"), None)


@scenario(10)
def find_coordinator(world: World, version: int) -> Iterator[dict[str, Any]]:
    with world.member():
        pass
    yield {"key": world.group, "key_type": 0, "coordinator_keys": [world.group]}
    yield {"key": "", "key_type": 0, "coordinator_keys": ["", world.group]}


@scenario(11)
def join_group(world: World, version: int) -> Iterator[dict[str, Any]]:
    with world.member() as member:
        values = member.join_values(reason=None)
    first = yield values
    if version >= 4:
        yield {**values, "member_id": first.member_id}
    yield {**values, "group_id": world.unique("group"), "session_timeout": 1}
    yield {**values, "group_id": world.unique("group"), "member_id": "nobody"}
    yield {**values, "group_id": world.unique("group"), "protocols": []}
    yield {**values, "group_id": ""}
    if version >= 5:
        yield {**values, "group_id": world.unique("group"), "group_instance_id": "static"}


@scenario(12)
def heartbeat(world: World, version: int) -> Iterator[dict[str, Any]]:
    with world.member() as member:
        member.stabilise()
        values = {
            "group_id": world.group,
            "generation_id": member.generation,
            "member_id": member.member_id,
            "group_instance_id": None,
        }
        yield values
        yield {**values, "generation_id": 77}
        yield {**values, "member_id": "nobody"}
        yield {**values, "group_id": world.unique("group")}
        yield {**values, "group_id": ""}


@scenario(13)
def leave_group(world: World, version: int) -> Iterator[dict[str, Any]]:
    def values(member_id: str, instance: str | None = None) -> dict[str, Any]:
        gone = {"member_id": member_id, "group_instance_id": instance, "reason": None}
        return {"group_id": world.group, "member_id": member_id, "members": [gone]}

    with world.member() as member:
        member.stabilise()
        yield values("nobody")
        if version >= 3:
            yield values("", "static")
        yield values(member.member_id)
        yield values(member.member_id)


@scenario(14)
def sync_group(world: World, version: int) -> Iterator[dict[str, Any]]:
    with world.member() as member:
        member.join()
        values = {
            "group_id": world.group,
            "generation_id": member.generation,
            "member_id": member.member_id,
            "group_instance_id": None,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [{"member_id": member.member_id, "assignment": ASSIGNMENT}],
        }
        yield {**values, "generation_id": 77}
        yield {**values, "member_id": "nobody"}
        if version >= 5:
            yield {**values, "protocol_name": "sticky"}
        yield values
        yield {**values, "assignments": []}
        yield {**values, "group_id": ""}


@scenario(15)
def describe_groups(world: World, version: int) -> Iterator[dict[str, Any]]:
    with world.member() as member:
        member.stabilise()
        yield {"groups": [world.group], "include_authorized_operations": False}
        yield {"groups": [world.unique("group")], "include_authorized_operations": True}
        member.leave()
        yield {"groups": [world.group], "include_authorized_operations": False}


@scenario(16)
def list_groups(world: World, version: int) -> Iterator[dict[str, Any]]:
    with world.member() as member:
        member.stabilise()
        yield {}
        if version >= 4:
            yield {"states_filter": ["Stable"]}
            yield {"states_filter": ["Empty", "Dead"]}
        if version >= 5:
            yield {"types_filter": ["classic"]}
            yield {"types_filter": ["consumer"]}


@scenario(18)
def api_versions(world: World, version: int) -> Iterator[dict[str, Any]]:
    yield {"client_software_name": "tests", "client_software_version": "1.0"}
    if version >= 3:
        yield {"client_software_name": "", "client_software_version": "!"}


@scenario(19)
def create_topics(world: World, version: int) -> Iterator[dict[str, Any]]:
    def values(name: str, *, validate_only: bool = False, **over: Any) -> dict[str, Any]:
        topic = {
            "name": name,
            "num_partitions": 2,
            "replication_factor": 1,
            "assignments": [],
            "configs": [],
            **over,
        }
        return {"topics": [topic], "timeout": 10_000, "validate_only": validate_only}

    retention = [{"name": "retention.ms", "value": "1234"}, {"name": "cleanup.policy", "value": "compact"}]
    yield values(world.other, configs=retention)
    yield values(world.other)
    yield values(world.unique("topic"), validate_only=True)
    yield values("no/such")
    yield values(world.unique("topic"), num_partitions=0)
    yield values(world.unique("topic"), replication_factor=3)
    yield values(world.unique("topic"), configs=[{"name": "no.such", "value": "1"}])
    yield values(world.unique("topic"), configs=[{"name": "retention.ms", "value": "x"}])
    assigned = [{"partition_index": i, "broker_ids": [world.node_id]} for i in range(3)]
    yield values(world.unique("topic"), num_partitions=-1, replication_factor=-1, assignments=assigned)
    if version >= 4:
        yield values(world.unique("topic"), num_partitions=-1, replication_factor=-1)
    twice = values(world.unique("topic"))
    twice["topics"] *= 2
    yield twice


@scenario(20)
def delete_topics(world: World, version: int) -> Iterator[dict[str, Any]]:
    def values(name: str | None, identifier: uuid.UUID | None = None) -> dict[str, Any]:
        return {"topic_names": [name], "topics": [{"name": name, "topic_id": identifier}], "timeout": 10_000}

    yield values(world.other)
    if version >= 6:
        yield values(None, STRANGER)
        yield values(None, world.topic_id)
        yield values(None, world.topic_id)
    else:
        yield values(world.topic)
        yield values(world.topic)


@scenario(21)
def delete_records(world: World, version: int) -> Iterator[dict[str, Any]]:
    for name, partition, offset in (
        (world.topic, 0, 2),
        (world.topic, 0, 1),
        (world.topic, 0, 99),
        (world.topic, 0, -1),
        (world.topic, 0, -7),
        (world.topic, 9, 0),
        (world.other, 0, 0),
    ):
        row = {"partition_index": partition, "offset": offset}
        yield {"timeout": 10_000, "topics": [{"name": name, "partitions": [row]}]}


@scenario(22)
def init_producer_id(world: World, version: int) -> Iterator[dict[str, Any]]:
    yield {
        "transactional_id": None,
        "transaction_timeout": 60_000,
        "producer_id": -1,
        "producer_epoch": -1,
        "enable_2pc": False,
    }
    yield {"transactional_id": "", "transaction_timeout": 60_000, "producer_id": -1, "producer_epoch": -1}


@scenario(23)
def offset_for_leader_epoch(world: World, version: int) -> Iterator[dict[str, Any]]:
    for name, partition, current, epoch in (
        (world.topic, 0, -1, 0),
        (world.topic, 0, 0, 0),
        (world.topic, 0, -1, 5),
        (world.topic, 0, 9, 0),
        (world.topic, 1, -1, 0),
        (world.topic, 9, -1, 0),
        (world.other, 0, -1, 0),
    ):
        row = {"partition": partition, "current_leader_epoch": current, "leader_epoch": epoch}
        yield {"replica_id": -1, "topics": [{"topic": name, "partitions": [row]}]}


@scenario(32)
def describe_configs(world: World, version: int) -> Iterator[dict[str, Any]]:
    def values(kind: int, name: str, keys: list[str] | None, synonyms: bool = True) -> dict[str, Any]:
        resource = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
        return {"resources": [resource], "include_synonyms": synonyms, "include_documentation": False}

    create_topic(world.bootstrap, world.other, 1, {"retention.ms": "777", "cleanup.policy": "compact,delete"})
    yield values(2, world.other, None)
    yield values(2, world.other, ["retention.ms", "no.such"], synonyms=False)
    yield values(2, world.unique("none"), None)
    yield values(2, "no/such", None)
    yield values(
        4, str(world.node_id), ["node.id", "num.io.threads", "log.retention.ms", "log.retention.hours"]
    )
    yield values(4, "99", None)
    yield values(4, "x", None)
    yield values(99, "x", None)


@scenario(33)
def alter_configs(world: World, version: int) -> Iterator[dict[str, Any]]:
    def values(
        name: str, key: str, value: str | None, *, kind: int = 2, validate: bool = False
    ) -> dict[str, Any]:
        resource = {"resource_type": kind, "resource_name": name, "configs": [{"name": key, "value": value}]}
        return {"resources": [resource], "validate_only": validate}

    yield values(world.topic, "retention.ms", "888", validate=True)
    yield values(world.topic, "retention.ms", "888")
    yield values(world.topic, "retention.ms", "never")
    yield values(world.topic, "no.such", "1")
    yield values(world.topic, "retention.ms", None)
    yield values(world.other, "retention.ms", "888")
    yield values("x", "a", "b", kind=99)


@scenario(35)
def describe_log_dirs(world: World, version: int) -> Iterator[dict[str, Any]]:
    yield {"topics": [{"topic": world.topic, "partitions": [0, 1, 9]}]}
    yield {"topics": [{"topic": world.other, "partitions": [0]}]}


@scenario(37)
def create_partitions(world: World, version: int) -> Iterator[dict[str, Any]]:
    def values(name: str, count: int, assignments: Any = None, *, validate: bool = False) -> dict[str, Any]:
        topic = {"name": name, "count": count, "assignments": assignments}
        return {"topics": [topic], "timeout": 10_000, "validate_only": validate}

    yield values(world.topic, 3, validate=True)
    yield values(world.topic, 2)
    yield values(world.topic, 1)
    yield values(world.topic, 4)
    yield values(world.topic, 6, [{"broker_ids": [world.node_id]}, {"broker_ids": [world.node_id]}])
    yield values(world.topic, 8, [{"broker_ids": [world.node_id]}])
    yield values(world.topic, 7, [{"broker_ids": [99]}])
    yield values(world.other, 4)


@scenario(42)
def delete_groups(world: World, version: int) -> Iterator[dict[str, Any]]:
    yield {"groups_names": [world.unique("group")]}
    with world.member() as member:
        member.stabilise()
        yield {"groups_names": [world.group]}
        member.leave()
        yield {"groups_names": [world.group]}
        yield {"groups_names": [world.group]}


@scenario(44)
def incremental_alter_configs(world: World, version: int) -> Iterator[dict[str, Any]]:
    def values(
        key: str, operation: int, value: str | None, *, name: str = world.topic, kind: int = 2
    ) -> dict[str, Any]:
        entry = {"name": key, "config_operation": operation, "value": value}
        resource = {"resource_type": kind, "resource_name": name, "configs": [entry]}
        return {"resources": [resource], "validate_only": False}

    yield values("retention.ms", 0, "999")
    yield values("retention.ms", 1, None)
    yield values("cleanup.policy", 2, "compact")
    yield values("cleanup.policy", 3, "delete")
    yield values("retention.ms", 2, "5")
    yield values("retention.ms", 0, "x")
    yield values("no.such", 0, "x")
    yield values("retention.ms", 9, "5")
    yield values("retention.ms", 0, None)
    yield values("retention.ms", 0, "5", name=world.other)


@scenario(47)
def offset_delete(world: World, version: int) -> Iterator[dict[str, Any]]:
    def values(group: str, topic: str) -> dict[str, Any]:
        return {"group_id": group, "topics": [{"name": topic, "partitions": [{"partition_index": 0}]}]}

    yield values(world.unique("group"), world.topic)
    with world.member() as member:
        member.stabilise()
        member.commit(world.topic, 2)
        member.leave()
    yield values(world.group, world.other)
    yield values(world.group, world.topic)
    yield values(world.group, world.topic)


@scenario(55)
def describe_quorum(world: World, version: int) -> Iterator[dict[str, Any]]:
    yield {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]}
    yield {"topics": [{"topic_name": world.topic, "partitions": [{"partition_index": 0}]}]}


@scenario(57)
def update_features(world: World, version: int) -> Iterator[dict[str, Any]]:
    def values(feature: str, level: int) -> dict[str, Any]:
        row = {"feature": feature, "max_version_level": level, "allow_downgrade": False, "upgrade_type": 1}
        return {"timeout": 10_000, "feature_updates": [row], "validate_only": True}

    yield values("no.such.feature", 1)
    yield values("metadata.version", 99)


@scenario(60)
def describe_cluster(world: World, version: int) -> Iterator[dict[str, Any]]:
    yield {
        "include_cluster_authorized_operations": False,
        "endpoint_type": 1,
        "include_fenced_brokers": False,
    }
    yield {"include_cluster_authorized_operations": True, "endpoint_type": 1, "include_fenced_brokers": False}
    if version >= 1:
        yield {"include_cluster_authorized_operations": False, "endpoint_type": 2}
        yield {"include_cluster_authorized_operations": False, "endpoint_type": 9}


@scenario(61)
def describe_producers(world: World, version: int) -> Iterator[dict[str, Any]]:
    yield {"topics": [{"name": world.topic, "partition_indexes": [0, 9]}]}
    yield {"topics": [{"name": world.other, "partition_indexes": [0]}]}


@scenario(74)
def list_config_resources(world: World, version: int) -> Iterator[dict[str, Any]]:
    yield {"resource_types": []}
    if version >= 1:
        yield {"resource_types": [2]}
        yield {"resource_types": [4]}
        yield {"resource_types": [99]}


@scenario(75)
def describe_topic_partitions(world: World, version: int) -> Iterator[dict[str, Any]]:
    base = {"topics": [{"name": world.topic}], "response_partition_limit": 2000, "cursor": None}
    yield base
    yield {**base, "response_partition_limit": 1}
    yield {**base, "cursor": {"topic_name": world.topic, "partition_index": 1}}
    yield {**base, "topics": [{"name": world.other}]}
