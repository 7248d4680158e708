"""Configs are set, replaced and refused as Apache Kafka 4.3.1 does it."""

from typing import Any

import pytest

from odradek.controller.configs import APPEND, DELETE, SET, SUBTRACT
from odradek.core.errors import ErrorCode
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.unit.controller.harness import Harness, with_one_broker

TOPIC, BROKER = 2, 4
Answer = list[tuple[int, str, int, str | None]]


def incremental(h: Harness, *resources: tuple[int, str, list[Any]], validate_only: bool = False) -> Answer:
    types = request_types(ApiKey.INCREMENTAL_ALTER_CONFIGS)
    asked = [
        types.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[types.AlterableConfig(name=k, config_operation=o, value=v) for k, o, v in ops],
        )
        for kind, name, ops in resources
    ]
    request = types.IncrementalAlterConfigsRequest(resources=asked, validate_only=validate_only)
    return answers(h.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, request))


def alter(h: Harness, *resources: tuple[int, str, dict[str, str | None]]) -> Answer:
    types = request_types(ApiKey.ALTER_CONFIGS)
    asked = [
        types.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[types.AlterableConfig(name=k, value=v) for k, v in configs.items()],
        )
        for kind, name, configs in resources
    ]
    return answers(h.call(ApiKey.ALTER_CONFIGS, types.AlterConfigsRequest(resources=asked)))


def answers(response: Any) -> Answer:
    return [(r.resource_type, r.resource_name, r.error_code, r.error_message) for r in response.responses]


def with_topic() -> Harness:
    h = with_one_broker()
    h.create("t")
    return h


def test_set_and_delete_change_single_configs() -> None:
    h = with_topic()
    assert incremental(h, (TOPIC, "t", [("retention.ms", SET, "5"), ("segment.bytes", SET, "2000000")])) == [
        (TOPIC, "t", 0, None)
    ]
    assert h.image.topic_config("t") == {"retention.ms": "5", "segment.bytes": "2000000"}
    incremental(h, (TOPIC, "t", [("retention.ms", DELETE, None)]))
    assert h.kinds() == ["ConfigRecord"]
    assert h.image.topic_config("t") == {"segment.bytes": "2000000"}


def test_what_is_already_so_writes_nothing() -> None:
    h = with_topic()
    incremental(h, (TOPIC, "t", [("retention.ms", SET, "5")]))
    incremental(h, (TOPIC, "t", [("retention.ms", SET, "5"), ("flush.ms", DELETE, None)]))
    assert h.records == []


def test_append_and_subtract_start_from_the_default_of_a_list() -> None:
    h = with_topic()
    incremental(h, (TOPIC, "t", [("cleanup.policy", APPEND, "compact")]))
    assert h.image.topic_config("t") == {"cleanup.policy": "delete,compact"}
    incremental(h, (TOPIC, "t", [("cleanup.policy", SUBTRACT, "delete")]))
    assert h.image.topic_config("t") == {"cleanup.policy": "compact"}


REFUSED: list[tuple[int, str, list[Any], ErrorCode, str]] = [
    (
        TOPIC,
        "no",
        [("retention.ms", SET, "1")],
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "The topic 'no' does not exist.",
    ),
    (TOPIC, "", [], ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed."),
    (
        TOPIC,
        "t",
        [("retention.ms", APPEND, "1")],
        ErrorCode.INVALID_CONFIG,
        "Can't APPEND to key retention.ms because its type is not LIST.",
    ),
    (
        TOPIC,
        "t",
        [("retention.ms", SUBTRACT, "1")],
        ErrorCode.INVALID_CONFIG,
        "Can't SUBTRACT to key retention.ms because its type is not LIST.",
    ),
    (
        TOPIC,
        "t",
        [("retention.ms", SET, None)],
        ErrorCode.INVALID_REQUEST,
        "Null value not supported for : retention.ms",
    ),
    (
        TOPIC,
        "t",
        [("retention.ms", SET, "1"), ("retention.ms", SET, "2")],
        ErrorCode.INVALID_REQUEST,
        "Error due to duplicate config keys",
    ),
    (
        TOPIC,
        "t",
        [("retention.ms", SET, "x")],
        ErrorCode.INVALID_CONFIG,
        "Invalid value x for configuration retention.ms: Not a number of type LONG",
    ),
    (99, "t", [], ErrorCode.INVALID_REQUEST, "Unknown resource type 99"),
    (
        BROKER,
        "1",
        [("min.insync.replicas", SET, "2")],
        ErrorCode.INVALID_CONFIG,
        "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
    ),
    (
        BROKER,
        "",
        [("min.insync.replicas", DELETE, None)],
        ErrorCode.INVALID_CONFIG,
        "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
    ),
    (
        BROKER,
        "x",
        [("log.cleaner.threads", SET, "2")],
        ErrorCode.INVALID_REQUEST,
        "Unable to parse broker name as a base 10 number.",
    ),
    (
        BROKER,
        "-1",
        [("log.cleaner.threads", SET, "2")],
        ErrorCode.INVALID_REQUEST,
        "Invalid negative broker ID.",
    ),
]


@pytest.mark.parametrize(("kind", "name", "ops", "code", "message"), REFUSED)
def test_what_cannot_be_set_is_refused(
    kind: int, name: str, ops: list[Any], code: ErrorCode, message: str
) -> None:
    h = with_topic()
    assert incremental(h, (kind, name, ops)) == [(kind, name, code, message)]
    assert h.records == []


def test_a_resource_named_twice_is_refused_and_the_others_are_changed() -> None:
    h = with_topic()
    h.create("u")
    op = [("retention.ms", SET, "1")]
    refused = (TOPIC, "t", ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    assert incremental(h, (TOPIC, "t", op), (TOPIC, "t", op), (TOPIC, "u", op)) == [
        refused,
        refused,
        (TOPIC, "u", 0, None),
    ]
    assert not h.image.topic_config("t")
    assert h.image.topic_config("u")


def test_one_refused_config_leaves_the_whole_resource_as_it_was() -> None:
    h = with_topic()
    incremental(h, (TOPIC, "t", [("retention.ms", SET, "5"), ("segment.ms", SET, "x")]))
    assert not h.image.topic_config("t")


def test_validate_only_changes_nothing() -> None:
    h = with_topic()
    assert incremental(h, (TOPIC, "t", [("retention.ms", SET, "5")]), validate_only=True) == [
        (TOPIC, "t", 0, None)
    ]
    assert h.records == []


def test_alter_configs_replaces_everything_that_was_set() -> None:
    h = with_topic()
    alter(h, (TOPIC, "t", {"retention.ms": "5", "segment.bytes": "2000000"}))
    alter(h, (TOPIC, "t", {"retention.ms": "6"}))
    assert h.image.topic_config("t") == {"retention.ms": "6"}
    alter(h, (TOPIC, "t", {}))
    assert (TOPIC, "t") not in h.image.configs


def test_alter_configs_may_not_drop_the_clusters_min_isr() -> None:
    h = with_topic()
    assert alter(h, (BROKER, "", {"message.max.bytes": "2000000"})) == [
        (
            BROKER,
            "",
            ErrorCode.INVALID_CONFIG,
            "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
        )
    ]
    assert alter(h, (BROKER, "", {"message.max.bytes": "9", "min.insync.replicas": "1"}))[0][2] == 0
    assert h.image.config(BROKER, "") == {"message.max.bytes": "9", "min.insync.replicas": "1"}


def test_a_brokers_own_configs_stand_beside_the_cluster_default() -> None:
    h = with_topic()
    incremental(h, (BROKER, "", [("log.retention.ms", SET, "7")]))
    incremental(h, (BROKER, "1", [("log.retention.ms", SET, "8")]))
    assert h.image.config(BROKER, "1") == {"log.retention.ms": "8"}
    assert h.image.config(BROKER, "")["log.retention.ms"] == "7"
