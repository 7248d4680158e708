"""Topics are created and deleted, or refused, as Apache Kafka 4.3.1 does it, in its words."""

from typing import Any

import pytest

from odradek.core.errors import ErrorCode
from odradek.core.types import ZERO_UUID
from odradek.metadata.records import PartitionRecord
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.unit.controller.harness import Harness, log_dir, with_one_broker


def test_a_topic_is_a_topic_record_its_configs_and_its_partitions() -> None:
    h = with_one_broker()
    result = h.create("orders", 2, configs={"retention.ms": "1000", "segment.bytes": "1048576"})
    assert h.kinds() == ["TopicRecord", "ConfigRecord", "ConfigRecord", "PartitionRecord", "PartitionRecord"]
    assert (result.error_code, result.error_message) == (0, None)
    assert result.topic_id == h.image.topics_by_name["orders"].id != ZERO_UUID
    assert (result.num_partitions, result.replication_factor) == (2, 1)
    partition = h.image.topics_by_name["orders"].partitions[1]
    assert (partition.replicas, partition.isr, partition.leader) == ((1,), (1,), 1)
    assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)
    assert partition.directories == (log_dir(1),)
    assert h.image.topic_config("orders") == {"retention.ms": "1000", "segment.bytes": "1048576"}


def test_the_answer_lists_every_effective_config_sorted_with_its_source() -> None:
    h = with_one_broker()
    entries = {e.name: e for e in h.create("t", configs={"retention.ms": "77"}).configs}
    assert len(entries) == 33
    assert list(entries) == sorted(entries)
    assert (entries["retention.ms"].value, entries["retention.ms"].config_source) == ("77", 1)
    assert (entries["segment.bytes"].value, entries["segment.bytes"].config_source) == ("1073741824", 5)


def test_defaults_come_from_the_configuration() -> None:
    h = with_one_broker({"num.partitions": "4"})
    result = h.create("t", -1, -1)
    assert (result.num_partitions, result.replication_factor) == (4, 1)


def test_validate_only_answers_and_writes_nothing() -> None:
    h = with_one_broker()
    assert h.create("t", 3, validate_only=True).num_partitions == 3
    assert h.records == []
    assert "t" not in h.image.topics_by_name


def test_a_min_isr_of_its_own_clears_the_eligible_leaders_of_the_topic() -> None:
    h = with_one_broker()
    h.create("t", configs={"min.insync.replicas": "2"})
    assert h.kinds() == ["TopicRecord", "ConfigRecord", "ClearElrRecord", "PartitionRecord"]


REFUSED: list[tuple[dict[str, Any], ErrorCode, str]] = [
    (
        {"name": ""},
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        "Topic name is invalid: the empty string is not allowed",
    ),
    ({"name": "."}, ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: '.' is not allowed"),
    (
        {"name": "sp ace"},
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        "Topic name is invalid: 'sp ace' contains one or more characters other than ASCII alphanumerics, "
        "'.', '_' and '-'",
    ),
    (
        {"name": "x" * 250},
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        f"Topic name is invalid: the length of '{'x' * 250}' is longer than the max allowed length 249",
    ),
    ({"name": "old.one"}, ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'old.one' already exists."),
    (
        {"name": "old_one"},
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        "Topic 'old_one' collides with existing topic: old.one",
    ),
    (
        {"name": "__cluster_metadata"},
        ErrorCode.INVALID_REQUEST,
        "Creation of internal topic __cluster_metadata is prohibited.",
    ),
    (
        {"partitions": 0},
        ErrorCode.INVALID_PARTITIONS,
        "Number of partitions was set to an invalid non-positive value.",
    ),
    (
        {"replication_factor": 0},
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "Replication factor must be larger than 0, or -1 to use the default value.",
    ),
    (
        {"replication_factor": 3},
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached "
        "because only 1 broker(s) are registered or some brokers have all their log directories cordoned.",
    ),
    (
        {"assignments": {0: [1]}},
        ErrorCode.INVALID_REQUEST,
        "A manual partition assignment was specified, but replication factor was not set to -1.",
    ),
    (
        {"replication_factor": -1, "assignments": {0: [1]}},
        ErrorCode.INVALID_REQUEST,
        "A manual partition assignment was specified, but numPartitions was not set to -1.",
    ),
    (
        {"partitions": -1, "replication_factor": -1, "assignments": {0: [9]}},
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes broker 9, but no such broker is registered.",
    ),
    (
        {"partitions": -1, "replication_factor": -1, "assignments": {0: []}},
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes an empty replica list.",
    ),
    (
        {"partitions": -1, "replication_factor": -1, "assignments": {0: [1, 1]}},
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes the broker 1 more than once.",
    ),
    (
        {"partitions": -1, "replication_factor": -1, "assignments": {1: [1]}},
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "partitions should be a consecutive 0-based integer sequence",
    ),
    (
        {"configs": {"retention.ms": "abc"}},
        ErrorCode.INVALID_CONFIG,
        "Invalid value abc for configuration retention.ms: Not a number of type LONG",
    ),
    (
        {"configs": {"retention.ms": None}},
        ErrorCode.INVALID_CONFIG,
        "Null value not supported for topic configs: retention.ms",
    ),
    (
        {"partitions": 10_001},
        ErrorCode.POLICY_VIOLATION,
        "Excessively large number of partitions per request.",
    ),
]


@pytest.mark.parametrize(("fields", "code", "message"), REFUSED)
def test_a_topic_that_cannot_be_is_refused(fields: dict[str, Any], code: ErrorCode, message: str) -> None:
    h = with_one_broker()
    h.create("old.one")
    result = h.create(**{"name": "t", **fields})
    assert (ErrorCode(result.error_code), result.error_message) == (code, message)
    assert (result.topic_id, result.num_partitions, result.replication_factor) == (ZERO_UUID, -1, -1)
    assert result.configs == ()
    assert h.records == []


def test_an_unknown_config_is_refused_by_name() -> None:
    h = with_one_broker()
    result = h.create("t", configs={"no.such.config": "1"})
    assert result.error_code == ErrorCode.INVALID_CONFIG
    assert result.error_message.startswith("Unknown topic config name: no.such.config")


def test_a_name_is_free_again_after_its_colliding_topic_was_deleted() -> None:
    h = with_one_broker()
    h.create("a.b")
    delete(h, ("a.b", ZERO_UUID))
    assert h.create("a_b").error_code == 0


def test_names_that_collide_within_one_request_are_not_both_created() -> None:
    h = with_one_broker()
    types = request_types(ApiKey.CREATE_TOPICS)
    topics = [
        types.CreatableTopic(name=n, num_partitions=1, replication_factor=1) for n in ("a.b", "a_b", "c")
    ]
    answers = h.call(ApiKey.CREATE_TOPICS, types.CreateTopicsRequest(topics=topics)).topics
    assert [a.error_code for a in answers] == [0, ErrorCode.INVALID_TOPIC_EXCEPTION, 0]
    assert sorted(h.image.topics_by_name) == ["a.b", "c"]


def test_a_name_given_twice_is_answered_once_and_not_created() -> None:
    h = with_one_broker()
    types = request_types(ApiKey.CREATE_TOPICS)
    topics = [
        types.CreatableTopic(name=n, num_partitions=1, replication_factor=1) for n in ("dup", "dup", "one")
    ]
    answers = h.call(ApiKey.CREATE_TOPICS, types.CreateTopicsRequest(topics=topics)).topics
    assert [(a.name, a.error_code, a.error_message) for a in answers] == [
        ("one", 0, None),
        ("dup", ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
    ]


def test_leaders_and_followers_are_spread_over_the_brokers() -> None:
    h = Harness()
    for broker_id in (1, 2, 3):
        h.start_broker(broker_id)
    h.create("t", 60, 3)
    rows = [r.replicas for r in h.records if isinstance(r, PartitionRecord)]
    assert all(sorted(row) == [1, 2, 3] for row in rows)
    assert {n: sum(row[0] == n for row in rows) for n in (1, 2, 3)} == {1: 20, 2: 20, 3: 20}
    assert {n: sum(row[1] == n for row in rows) for n in (1, 2, 3)} == {1: 20, 2: 20, 3: 20}


def test_a_fenced_broker_takes_replicas_only_when_needed_and_is_not_in_sync() -> None:
    h = Harness()
    h.start_broker(1)
    h.start_broker(2)
    h.register(3)
    h.create("two", 6, 2)
    assert all(3 not in r.replicas for r in h.records if isinstance(r, PartitionRecord))
    h.create("three", 6, 3)
    for record in h.records:
        if isinstance(record, PartitionRecord):
            assert sorted(record.replicas) == [1, 2, 3]
            assert record.replicas[-1] == 3
            assert sorted(record.isr) == [1, 2]


def test_a_manual_assignment_is_taken_as_it_is() -> None:
    h = Harness()
    for broker_id in (1, 2):
        h.start_broker(broker_id)
    h.create("t", -1, -1, assignments={0: [2, 1], 1: [1, 2]})
    topic = h.image.topics_by_name["t"]
    assert [topic.partitions[i].replicas for i in (0, 1)] == [(2, 1), (1, 2)]
    assert [topic.partitions[i].leader for i in (0, 1)] == [2, 1]


def delete(h: Harness, *targets: tuple[str | None, Any]) -> list[tuple[str | None, int, str | None]]:
    types = request_types(ApiKey.DELETE_TOPICS)
    topics = [types.DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in targets]
    answer = h.call(ApiKey.DELETE_TOPICS, types.DeleteTopicsRequest(topics=topics))
    return [(r.name, r.error_code, r.error_message) for r in answer.responses]


def test_a_topic_is_deleted_by_name_or_by_id_with_its_configs() -> None:
    h = with_one_broker()
    by_name = h.create("a", configs={"retention.ms": "1"})
    by_id = h.create("b")
    assert delete(h, ("a", ZERO_UUID), (None, by_id.topic_id)) == [("a", 0, None), ("b", 0, None)]
    assert h.kinds() == ["RemoveTopicRecord", "RemoveTopicRecord"]
    assert not h.image.topics_by_id
    assert h.image.topic_config("a") == {}
    assert h.delta is not None
    assert [t.id for t in h.delta.deleted_topics] == [by_name.topic_id, by_id.topic_id]
    assert h.delta.changed_configs == [(2, "a")]


def test_what_cannot_be_deleted_is_refused() -> None:
    h = with_one_broker()
    topic_id = h.create("a").topic_id
    invalid = ErrorCode.INVALID_REQUEST
    unknown = uuid_of(99)
    assert delete(h, ("no", ZERO_UUID)) == [
        ("no", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    ]
    assert delete(h, (None, unknown)) == [
        (None, ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    ]
    assert delete(h, (None, ZERO_UUID)) == [(None, invalid, "Neither topic name nor id were specified.")]
    assert delete(h, ("a", topic_id)) == [("a", invalid, "You may not specify both topic name and topic id.")]
    assert delete(h, ("a", ZERO_UUID), ("a", ZERO_UUID)) == [("a", invalid, "Duplicate topic name.")]
    assert delete(h, (None, topic_id), (None, topic_id)) == [(None, invalid, "Duplicate topic id.")]
    assert delete(h, ("a", ZERO_UUID), (None, topic_id)) == [
        ("a", invalid, "The provided topic name maps to an ID that was already supplied.")
    ]
    assert "a" in h.image.topics_by_name


def test_deletion_can_be_switched_off() -> None:
    h = with_one_broker({"delete.topic.enable": "false"})
    h.create("a")
    assert delete(h, ("a", ZERO_UUID)) == [
        ("a", ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
    ]


def uuid_of(n: int) -> Any:
    from uuid import UUID

    return UUID(int=n << 64)
