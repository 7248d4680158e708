"""Configs through their handlers: what the broker checks, what the controller decides, what is shown."""

import asyncio
from typing import Any

import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.wire.api_keys import ApiKey
from tests.unit.broker.handlers.admin_node import AdminNode, types_of

TOPIC, BROKER = 2, 4
SET = 0


def incremental(node: AdminNode, *resources: tuple[int, str, list[tuple[str, int, str | None]]]) -> list[Any]:
    types = types_of(ApiKey.INCREMENTAL_ALTER_CONFIGS)
    asked = [
        types.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[types.AlterableConfig(name=k, config_operation=o, value=v) for k, o, v in ops],
        )
        for kind, name, ops in resources
    ]
    request = types.IncrementalAlterConfigsRequest(resources=asked)
    answer = node.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, 1)
    return [(r.resource_name, r.error_code, r.error_message) for r in answer.responses]


def describe(node: AdminNode, kind: int, name: str, keys: list[str] | None = None, version: int = 4) -> Any:
    types = types_of(ApiKey.DESCRIBE_CONFIGS)
    resource = types.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    request = types.DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (result,) = node.ask(ApiKey.DESCRIBE_CONFIGS, request, version).results
    return result


@pytest.mark.parametrize("version", range(1, 5))
def test_a_topic_shows_all_its_configs_at_every_version(version: int) -> None:
    node = AdminNode()
    node.create("t")
    incremental(node, (TOPIC, "t", [("retention.ms", SET, "5")]))
    result = describe(node, TOPIC, "t", version=version)
    entries = {e.name: e for e in result.configs}
    assert (result.error_code, len(entries)) == (0, 33)
    assert (entries["retention.ms"].value, entries["retention.ms"].config_source) == ("5", 1)
    assert [s.name for s in entries["retention.ms"].synonyms] == ["retention.ms"]
    assert [s.name for s in entries["segment.bytes"].synonyms] == ["log.segment.bytes"]


def test_only_the_keys_asked_for_are_shown_and_none_means_all() -> None:
    node = AdminNode()
    node.create("t")
    keys = ["segment.bytes", "nope", "retention.ms"]
    assert {e.name for e in describe(node, TOPIC, "t", keys).configs} == {"segment.bytes", "retention.ms"}
    assert len(describe(node, TOPIC, "t", []).configs) == 33


def test_a_broker_shows_its_own_and_the_clusters_dynamic_configs() -> None:
    node = AdminNode()
    incremental(node, (BROKER, "", [("log.retention.ms", SET, "777777")]))
    incremental(node, (BROKER, "1", [("log.retention.ms", SET, "888888")]))
    (entry,) = describe(node, BROKER, "1", ["log.retention.ms"]).configs
    assert (entry.value, entry.config_source, entry.read_only) == ("888888", 2, False)
    assert [(s.value, s.source) for s in entry.synonyms] == [("888888", 2), ("777777", 3), ("168", 5)]
    default = {e.name: e.value for e in describe(node, BROKER, "").configs}
    assert default == {"log.retention.ms": "777777", "min.insync.replicas": "1"}
    assert len(describe(node, BROKER, "1").configs) > 300


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (TOPIC, "no", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""),
        (
            TOPIC,
            "",
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: the empty string is not allowed",
        ),
        (BROKER, "x", ErrorCode.INVALID_REQUEST, "Broker id must be an integer, but it is: x"),
        (
            BROKER,
            "2",
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 1 or empty string, but received 2",
        ),
        (8, "", ErrorCode.INVALID_REQUEST, "Broker id must not be empty"),
        (8, "2", ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 1 but received 2"),
        (16, "m", ErrorCode.INVALID_REQUEST, "Unsupported resource type: CLIENT_METRICS"),
    ],
)
def test_what_cannot_be_described_says_why(kind: int, name: str, code: ErrorCode, message: str) -> None:
    result = describe(AdminNode(), kind, name)
    assert (result.error_code, result.error_message, list(result.configs)) == (code, message, [])


@pytest.mark.parametrize(
    ("name", "config", "value", "message"),
    [
        ("1", "num.partitions", "2", "Cannot update these configs dynamically: [num.partitions]"),
        ("2", "log.cleaner.threads", "2", "Unexpected broker id, expected 1, but received 2"),
        ("x", "log.cleaner.threads", "2", "Node id must be an integer, but it is: x"),
        (
            "",
            "log.cleaner.threads",
            "x",
            "Invalid value x for configuration log.cleaner.threads: Not a number of type INT",
        ),
        (
            "",
            "listeners",
            "PLAINTEXT://:99",
            "Cannot update these configs at default cluster level, broker id must be specified: [listeners]",
        ),
    ],
)
def test_a_broker_refuses_changes_of_itself_that_cannot_be(
    name: str, config: str, value: str, message: str
) -> None:
    node = AdminNode()
    assert incremental(node, (BROKER, name, [(config, SET, value)])) == [
        (name, ErrorCode.INVALID_REQUEST, message)
    ]


def test_what_the_broker_refuses_does_not_keep_the_rest_from_the_controller() -> None:
    node = AdminNode()
    node.create("t")
    answers = incremental(
        node,
        (BROKER, "1", [("num.partitions", SET, "2")]),
        (TOPIC, "t", [("retention.ms", SET, "5")]),
        (TOPIC, "no", [("retention.ms", SET, "5")]),
    )
    assert [(name, code) for name, code, _ in answers] == [
        ("1", ErrorCode.INVALID_REQUEST),
        ("t", 0),
        ("no", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert node.image.topic_config("t") == {"retention.ms": "5"}


def test_without_a_controller_every_resource_is_told_why() -> None:
    node = AdminNode()
    node.failure = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "disk full")
    assert incremental(node, (TOPIC, "t", [("retention.ms", SET, "5")])) == [
        ("t", ErrorCode.KAFKA_STORAGE_ERROR, "disk full")
    ]


@pytest.mark.parametrize("version", range(3))
def test_alter_configs_replaces_at_every_version(version: int) -> None:
    node = AdminNode()
    node.create("t")
    incremental(node, (TOPIC, "t", [("segment.bytes", SET, "2000000")]))
    types = types_of(ApiKey.ALTER_CONFIGS)
    resource = types.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name="t",
        configs=[types.AlterableConfig(name="retention.ms", value="6")],
    )
    (answer,) = node.ask(
        ApiKey.ALTER_CONFIGS, types.AlterConfigsRequest(resources=[resource]), version
    ).responses
    assert answer.error_code == 0
    assert node.image.topic_config("t") == {"retention.ms": "6"}


def test_resources_with_configs_are_listed_by_type() -> None:
    node = AdminNode()
    node.create("t")
    types = types_of(ApiKey.LIST_CONFIG_RESOURCES)

    def listed(kinds: list[int], version: int = 1) -> Any:
        request = types.ListConfigResourcesRequest(resource_types=kinds)
        answer = node.ask(ApiKey.LIST_CONFIG_RESOURCES, request, version)
        return answer.error_code, [(r.resource_type, r.resource_name) for r in answer.config_resources]

    assert listed([]) == (0, [(8, "1"), (BROKER, "1"), (TOPIC, "t")])
    assert listed([8]) == (0, [(8, "1")])
    assert listed([BROKER]) == (0, [(BROKER, "1")])
    assert listed([99]) == (ErrorCode.UNSUPPORTED_VERSION, [])
    assert listed([], version=0) == (0, [])


def test_a_resource_that_is_named_again_with_the_same_keys_is_answered_once() -> None:
    node = AdminNode()
    node.create("t")
    types = types_of(ApiKey.DESCRIBE_CONFIGS)
    asked = [(BROKER, "1", None), (TOPIC, "t", ["retention.ms"]), (BROKER, "1", []), (BROKER, "1", None)]
    asked += [(TOPIC, "t", None), (TOPIC, "t", ["retention.ms"])]
    resources = [
        types.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        for kind, name, keys in asked * 50
    ]
    request = types.DescribeConfigsRequest(resources=resources)
    results = node.ask(ApiKey.DESCRIBE_CONFIGS, request, 4).results
    assert [(r.resource_type, len(r.configs) == 1) for r in results] == [
        (BROKER, False),
        (TOPIC, True),
        (TOPIC, False),
    ]


def test_many_resources_leave_the_loop_to_others_in_between() -> None:
    node = AdminNode()
    names = [f"t{i}" for i in range(40)]
    for name in names:
        node.create(name)
    types = types_of(ApiKey.DESCRIBE_CONFIGS)
    request = types.DescribeConfigsRequest(
        resources=[types.DescribeConfigsResource(resource_type=TOPIC, resource_name=name) for name in names]
    )

    async def turns() -> int:
        count = 0
        answer = asyncio.ensure_future(node.answer(ApiKey.DESCRIBE_CONFIGS, request, 4))
        while not answer.done():
            count += 1
            await asyncio.sleep(0)
        assert [r.resource_name for r in answer.result().results] == names
        return count

    assert asyncio.run(turns()) >= len(names) // 10


def test_more_records_than_one_batch_may_have_are_refused_altogether() -> None:
    """As Apache Kafka refuses more than 10,000 records for one request."""
    node = AdminNode()
    node.create("t")
    unknown: list[tuple[str, int, str | None]] = [(f"unknown.{i}", SET, "1") for i in range(5_100)]
    answers = incremental(
        node, (TOPIC, "t", [("retention.ms", SET, "1000")]), (BROKER, "1", unknown), (BROKER, "", unknown)
    )
    assert {code for _, code, _ in answers} == {ErrorCode.POLICY_VIOLATION}
    assert not node.image.topic_config("t") and not node.image.config(BROKER, "1")


def test_of_many_unknown_topic_settings_the_first_by_name_is_named() -> None:
    node = AdminNode()
    node.create("t")
    settings: list[tuple[str, int, str | None]] = [(f"unknown.{i}", SET, "1") for i in range(100)]
    ((_, code, message),) = incremental(node, (TOPIC, "t", [("retention.ms", SET, "1000"), *settings]))
    assert (code, message) == (ErrorCode.INVALID_CONFIG, "Unknown topic config name: unknown.0")
