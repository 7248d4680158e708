"""Conversations about topics, configs, log dirs and the quorum: one per API, see world.py."""

import uuid
from collections.abc import Iterator
from typing import Any

from tests.compat.world import STRANGER, World, scenario
from tests.support.consumer import set_group_config
from tests.support.topics import create_topic


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


@scenario(32)
def describe_configs(world: World, version: int) -> Iterator[dict[str, Any]]:
    def values(
        kind: int, name: str, keys: list[str] | None, synonyms: bool = True, *, documented: bool = False
    ) -> dict[str, Any]:
        resource = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
        return {"resources": [resource], "include_synonyms": synonyms, "include_documentation": documented}

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
    set_group_config(world.bootstrap, world.group, consumer_session_timeout_ms="50000")
    yield values(32, world.group, None)
    yield values(32, world.unique("group"), ["consumer.heartbeat.interval.ms", "no.such"], synonyms=False)
    yield values(32, "", None)
    yield values(2, world.topic, None, documented=True)
    yield values(32, world.unique("group"), None, documented=True)
    yield values(4, str(world.node_id), ["node.id", "num.io.threads", "log.retention.ms"], documented=True)
    for documented in (False, True):
        yield values(8, str(world.node_id), ["root", "no.such"], documented=documented)
    yield values(8, str(world.node_id), ["no.such"])
    yield values(8, "99", None)
    yield values(8, "x", None)
    yield values(8, "", None)


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
    yield values(str(world.node_id), "root", "INFO", kind=8)


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
    group = {"name": world.group, "kind": 32}
    yield values("consumer.session.timeout.ms", 0, "50000", **group)
    yield values("consumer.session.timeout.ms", 0, "1", **group)
    yield values("consumer.session.timeout.ms", 0, "500000", **group)
    yield values("consumer.heartbeat.interval.ms", 0, "x", **group)
    yield values("consumer.heartbeat.interval.ms", 0, "0", **group)
    yield values("consumer.assignment.interval.ms", 2, "1", **group)
    yield values("share.isolation.level", 0, "read_committed", **group)
    yield values("share.isolation.level", 0, "dirty", **group)
    yield values("no.such", 0, "1", **group)
    yield values("consumer.session.timeout.ms", 1, None, **group)
    yield values("consumer.session.timeout.ms", 0, "50000", name="", kind=32)
    loggers = {"name": str(world.node_id), "kind": 8}
    yield values("root", 0, "INFO", **loggers)
    yield values("root", 0, "info", **loggers)
    yield values("root", 0, "OFF", **loggers)
    yield values("root", 0, None, **loggers)
    yield values("root", 1, None, **loggers)
    yield values("root", 2, "INFO", **loggers)
    yield values("root", 3, "INFO", **loggers)
    yield values("root", 9, "INFO", **loggers)
    yield values("no.such", 0, "INFO", **loggers)
    yield values("no.such", 1, None, **loggers)
    for name in ("99", "x", ""):
        yield values("root", 0, "INFO", name=name, kind=8)
    twice = values("root", 0, "INFO", **loggers)
    twice["resources"] *= 2
    yield twice
    again = values("root", 0, "INFO", **loggers)
    again["resources"][0]["configs"] *= 2
    yield again
    mixed = values("root", 0, "INFO", **loggers)
    mixed["resources"] += values("retention.ms", 0, "5000")["resources"]
    yield mixed


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


@scenario(74)
def list_config_resources(world: World, version: int) -> Iterator[dict[str, Any]]:
    yield {"resource_types": []}
    if version >= 1:
        yield {"resource_types": [2]}
        yield {"resource_types": [4]}
        yield {"resource_types": [8]}
        yield {"resource_types": [99]}


@scenario(75)
def describe_topic_partitions(world: World, version: int) -> Iterator[dict[str, Any]]:
    base = {"topics": [{"name": world.topic}], "response_partition_limit": 2000, "cursor": None}
    yield base
    yield {**base, "response_partition_limit": 1}
    yield {**base, "cursor": {"topic_name": world.topic, "partition_index": 1}}
    yield {**base, "topics": [{"name": world.other}]}
