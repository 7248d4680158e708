"""Topics through their handlers, at old and new versions."""

from types import SimpleNamespace
from typing import Any

import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import TopicPartition
from odradek.replication.manager import Deleted
from odradek.wire.api_keys import ApiKey
from tests.unit.broker.handlers.admin_node import AdminNode, types_of


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


def test_thousands_of_null_configs_are_refused_in_words_that_fit_the_answer() -> None:
    types = types_of(ApiKey.CREATE_TOPICS)
    request = creation("t")
    request.topics[0].configs = [
        types.CreatableTopicConfig(name=f"a.name.that.is.rather.long.{i}", value=None) for i in range(3_000)
    ]
    (result,) = AdminNode().ask(ApiKey.CREATE_TOPICS, request, 2).topics
    assert result.error_code == ErrorCode.INVALID_CONFIG
    assert result.error_message.startswith("Null value not supported for topic configs: a.name.")


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
    nothing: Any = None

    def delete(tp: TopicPartition, offset: int) -> Deleted:
        if tp.partition == 1:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        return Deleted(nothing, offset, low_watermark=offset)

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


def describe_partition(node: AdminNode, name: str) -> Any:
    types = types_of(ApiKey.DESCRIBE_TOPIC_PARTITIONS)
    request = types.DescribeTopicPartitionsRequest(topics=[types.TopicRequest(name=name)])
    (partition,) = node.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, request, 0).topics[0].partitions
    return partition


def metadata_of(node: AdminNode, name: str, version: int) -> tuple[list[int], Any]:
    """The brokers named, and the topic's only partition."""
    types = types_of(ApiKey.METADATA)
    request = types.MetadataRequest(
        topics=[types.MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
    )
    answer = node.ask(ApiKey.METADATA, request, version)
    (partition,) = answer.topics[0].partitions
    return [broker.node_id for broker in answer.brokers], partition


# The answers of Apache Kafka 4.3.1 with one broker of two dead, partitions on [2] and on [2, 1].


def one_of_two_dead() -> AdminNode:
    node = AdminNode()
    node.harness.start_broker(2)
    node.harness.create("alone", -1, -1, assignments={0: [2]})
    node.harness.create("both", -1, -1, assignments={0: [2, 1]})
    node.harness.now_ms += 5000
    node.harness.heartbeat(1)
    node.harness.now_ms += 5000
    node.harness.expire()
    return node


def test_a_described_partition_without_a_leader_has_no_error_and_lists_its_eligible_leaders() -> None:
    node = one_of_two_dead()
    alone = describe_partition(node, "alone")
    assert (alone.error_code, alone.leader_id, list(alone.isr_nodes)) == (0, -1, [])
    assert (list(alone.eligible_leader_replicas), list(alone.last_known_elr)) == ([2], [2])
    assert list(alone.offline_replicas) == [2]
    both = describe_partition(node, "both")
    assert (both.error_code, both.leader_id, list(both.isr_nodes)) == (0, 1, [1])
    assert list(both.offline_replicas) == [2]


@pytest.mark.parametrize("version", range(14))
def test_metadata_tells_what_a_dead_broker_leaves(version: int) -> None:
    node = one_of_two_dead()
    brokers, alone = metadata_of(node, "alone", version)
    assert brokers == [1]
    assert (alone.error_code, alone.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert (list(alone.replica_nodes), list(alone.isr_nodes)) == ([] if version == 0 else [2], [])
    _, both = metadata_of(node, "both", version)
    error = ErrorCode.REPLICA_NOT_AVAILABLE if version == 0 else ErrorCode.NONE
    assert (both.error_code, both.leader_id) == (error, 1)
    assert (list(both.replica_nodes), list(both.isr_nodes)) == ([1] if version == 0 else [2, 1], [1])
    if version >= 5:
        assert (list(alone.offline_replicas), list(both.offline_replicas)) == ([2], [2])


@pytest.mark.parametrize("version", range(14))
def test_a_leader_without_the_clients_listener_is_told_from_one_that_is_gone(version: int) -> None:
    node = AdminNode()
    node.create("t")
    broker = node.image.brokers[1]
    node.image.brokers[1] = broker._replace(endpoints={"INTERNAL": broker.endpoints["PLAINTEXT"]})
    _, partition = metadata_of(node, "t", version)
    error = ErrorCode.LEADER_NOT_AVAILABLE if version < 6 else ErrorCode.LISTENER_NOT_FOUND
    assert (partition.error_code, partition.leader_id) == (error, -1)
    described = describe_partition(node, "t")
    assert (described.error_code, described.leader_id, list(described.offline_replicas)) == (0, -1, [1])


def test_a_fenced_leader_is_named_until_another_one_is_elected() -> None:
    node = AdminNode()
    node.create("t")
    node.image.brokers[1] = node.image.brokers[1]._replace(fenced=True)
    brokers, partition = metadata_of(node, "t", 13)
    described = describe_partition(node, "t")
    assert brokers == []
    for answer in (partition, described):
        assert (answer.error_code, answer.leader_id, list(answer.offline_replicas)) == (0, 1, [1])
