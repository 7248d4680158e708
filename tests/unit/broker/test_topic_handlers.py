"""Topics through their handlers, at old and new versions."""

from types import SimpleNamespace
from typing import Any

import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import TopicPartition
from odradek.wire.api_keys import ApiKey
from tests.unit.broker.admin_node import AdminNode, types_of


def creation(name: str, partitions: int = 2) -> Any:
    types = types_of(ApiKey.CREATE_TOPICS)
    topic = types.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return types.CreateTopicsRequest(topics=[topic], timeout=5000)


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_is_created_at_every_version(version: int) -> None:
    node = AdminNode()
    (result,) = node.ask(ApiKey.CREATE_TOPICS, creation("t"), version).topics
    assert (result.name, result.error_code, result.error_message) == ("t", 0, None)
    if version >= 5:
        assert (result.num_partitions, result.replication_factor, len(result.configs)) == (2, 1, 33)
    if version >= 7:
        assert result.topic_id == node.image.topics_by_name["t"].id


def test_without_a_controller_every_topic_is_told_why() -> None:
    node = AdminNode()
    node.failure = KafkaError(ErrorCode.NOT_CONTROLLER, "no controller")
    (result,) = node.ask(ApiKey.CREATE_TOPICS, creation("t"), 7).topics
    assert (result.error_code, result.error_message) == (ErrorCode.NOT_CONTROLLER, "no controller")
    types = types_of(ApiKey.DELETE_TOPICS)
    deletion = types.DeleteTopicsRequest(topics=[types.DeleteTopicState(name="t")])
    assert node.ask(ApiKey.DELETE_TOPICS, deletion, 6).responses[0].error_code == ErrorCode.NOT_CONTROLLER
    types = types_of(ApiKey.CREATE_PARTITIONS)
    growth = types.CreatePartitionsRequest(topics=[types.CreatePartitionsTopic(name="t", count=3)])
    assert node.ask(ApiKey.CREATE_PARTITIONS, growth, 3).results[0].error_code == ErrorCode.NOT_CONTROLLER


@pytest.mark.parametrize("version", range(1, 7))
def test_a_topic_is_deleted_by_name_at_every_version(version: int) -> None:
    node = AdminNode()
    node.create("t")
    types = types_of(ApiKey.DELETE_TOPICS)
    request = types.DeleteTopicsRequest(topics=[types.DeleteTopicState(name="t")])
    (result,) = node.ask(ApiKey.DELETE_TOPICS, request, version).responses
    assert (result.name, result.error_code) == ("t", 0)
    assert not node.image.topics_by_name


def test_a_topic_is_deleted_by_id() -> None:
    node = AdminNode()
    topic_id = node.create("t")
    types = types_of(ApiKey.DELETE_TOPICS)
    request = types.DeleteTopicsRequest(topics=[types.DeleteTopicState(topic_id=topic_id)])
    (result,) = node.ask(ApiKey.DELETE_TOPICS, request, 6).responses
    assert (result.name, result.topic_id, result.error_code) == ("t", topic_id, 0)


@pytest.mark.parametrize(
    ("version", "code"), [(1, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)]
)
def test_old_clients_are_told_of_disabled_deletion_in_words_they_know(version: int, code: ErrorCode) -> None:
    node = AdminNode({"delete.topic.enable": "false"})
    node.create("t")
    types = types_of(ApiKey.DELETE_TOPICS)
    request = types.DeleteTopicsRequest(topics=[types.DeleteTopicState(name="t")])
    assert node.ask(ApiKey.DELETE_TOPICS, request, version).responses[0].error_code == code


@pytest.mark.parametrize("version", range(4))
def test_partitions_are_added_at_every_version(version: int) -> None:
    node = AdminNode()
    node.create("t")
    types = types_of(ApiKey.CREATE_PARTITIONS)
    topic = types.CreatePartitionsTopic(name="t", count=3, assignments=None)
    (result,) = node.ask(
        ApiKey.CREATE_PARTITIONS, types.CreatePartitionsRequest(topics=[topic]), version
    ).results
    assert result.error_code == 0
    assert len(node.image.topics_by_name["t"].partitions) == 3


def test_records_are_deleted_partition_by_partition() -> None:
    def delete(tp: TopicPartition, offset: int) -> int:
        if tp.partition == 1:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        return offset

    node = AdminNode()
    node.replicas = SimpleNamespace(delete_records=delete)
    types = types_of(ApiKey.DELETE_RECORDS)
    partitions = [types.DeleteRecordsPartition(partition_index=i, offset=20) for i in (0, 1)]
    topic = types.DeleteRecordsTopic(name="t", partitions=partitions)
    (answer,) = node.ask(ApiKey.DELETE_RECORDS, types.DeleteRecordsRequest(topics=[topic]), 2).topics
    assert [(p.partition_index, p.low_watermark, p.error_code) for p in answer.partitions] == [
        (0, 20, 0),
        (1, -1, ErrorCode.OFFSET_OUT_OF_RANGE),
    ]


def describe(
    node: AdminNode, names: list[str], limit: int = 2000, cursor: tuple[str, int] | None = None
) -> tuple[list[tuple[str, int, list[int]]], tuple[str, int] | None]:
    types = types_of(ApiKey.DESCRIBE_TOPIC_PARTITIONS)
    request = types.DescribeTopicPartitionsRequest(
        topics=[types.TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else types.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    answer = node.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, request, 0)
    following = answer.next_cursor
    return (
        [(t.name, t.error_code, [p.partition_index for p in t.partitions]) for t in answer.topics],
        None if following is None else (following.topic_name, following.partition_index),
    )


def three_topics() -> AdminNode:
    node = AdminNode()
    for name in ("b", "a", "c"):
        node.create(name, 2)
    return node


def test_topics_are_described_in_the_order_of_their_names() -> None:
    node = three_topics()
    everything = [("a", 0, [0, 1]), ("b", 0, [0, 1]), ("c", 0, [0, 1])]
    assert describe(node, []) == (everything, None)
    assert describe(node, ["c", "a", "b"]) == (everything, None)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert describe(node, ["a", "no"]) == ([("a", 0, [0, 1]), ("no", unknown, [])], None)


def test_a_limit_cuts_within_or_between_topics_and_the_cursor_goes_on_there() -> None:
    node = three_topics()
    assert describe(node, [], limit=3) == ([("a", 0, [0, 1]), ("b", 0, [0])], ("b", 1))
    assert describe(node, [], cursor=("b", 1)) == ([("b", 0, [1]), ("c", 0, [0, 1])], None)
    assert describe(node, [], limit=2) == ([("a", 0, [0, 1])], ("b", 0))
    assert describe(node, ["a"], limit=0) == ([("a", 0, [0])], ("a", 1))
    assert describe(node, [], limit=6) == (
        [("a", 0, [0, 1]), ("b", 0, [0, 1]), ("c", 0, [0, 1])],
        None,
    )


def test_the_node_bounds_the_limit() -> None:
    node = AdminNode({"max.request.partition.size.limit": "1"})
    node.create("a", 2)
    assert describe(node, ["a"]) == ([("a", 0, [0])], ("a", 1))


@pytest.mark.parametrize("cursor", [("b", 0), ("a", -1)])
def test_a_cursor_that_points_nowhere_is_refused(cursor: tuple[str, int]) -> None:
    node = three_topics()
    assert describe(node, ["a", "c"], cursor=cursor) == (
        [("a", ErrorCode.INVALID_REQUEST, []), ("c", ErrorCode.INVALID_REQUEST, [])],
        None,
    )


def test_a_partition_without_a_leader_says_so_and_lists_its_eligible_leaders() -> None:
    node = AdminNode()
    node.create("t")
    node.harness.now_ms += 9000
    node.harness.expire()
    types = types_of(ApiKey.DESCRIBE_TOPIC_PARTITIONS)
    request = types.DescribeTopicPartitionsRequest(topics=[types.TopicRequest(name="t")])
    (partition,) = node.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, request, 0).topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert (list(partition.eligible_leader_replicas), list(partition.last_known_elr)) == ([1], [1])
    assert list(partition.offline_replicas) == [1]


def test_a_partition_whose_producers_are_asked_for_again_is_answered_once() -> None:
    node = AdminNode()
    entry = SimpleNamespace(
        producer_id=7,
        producer_epoch=0,
        last_sequence=3,
        last_timestamp=5,
        coordinator_epoch=-1,
        current_txn_first_offset=-1,
    )
    log = SimpleNamespace(producers=SimpleNamespace(entries={7: entry}))
    partition = SimpleNamespace(require_leader=lambda: None, log=log)
    node.replicas = SimpleNamespace(partition=lambda tp: partition)
    types = types_of(ApiKey.DESCRIBE_PRODUCERS)
    topics = [types.TopicRequest(name="t", partition_indexes=[1, 0, 1])] * 50
    answer = node.ask(ApiKey.DESCRIBE_PRODUCERS, types.DescribeProducersRequest(topics=topics), 0)
    (topic,) = answer.topics
    assert [(p.partition_index, len(p.active_producers)) for p in topic.partitions] == [(1, 1), (0, 1)]
