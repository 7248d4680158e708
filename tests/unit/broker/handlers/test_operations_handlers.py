"""Log dirs, reassignments on their way and ACLs that cannot be: what a real node alone does not show."""

from types import SimpleNamespace

import pytest

from odradek.core.errors import ErrorCode, ProtocolError, StorageError
from odradek.core.types import TopicPartition
from odradek.metadata.records import PartitionChangeRecord
from odradek.wire.api_keys import ApiKey
from tests.unit.broker.handlers.admin_node import AdminNode, types_of
from tests.unit.controller.harness import log_dir


def test_a_replica_is_where_it_is_and_does_not_move() -> None:
    node = AdminNode()
    log = SimpleNamespace(directory="/one")
    directories = [
        SimpleNamespace(path="/one", failure=None),
        SimpleNamespace(path="/two", failure=None),
        SimpleNamespace(path="/broken", failure=StorageError("broken")),
    ]
    node.logs = SimpleNamespace(directories=directories, get={TopicPartition("t", 0): log}.get)
    types = types_of(ApiKey.ALTER_REPLICA_LOG_DIRS)

    def move(path: str) -> list[tuple[int, int]]:
        topic = types.AlterReplicaLogDirTopic(name="t", partitions=[0, 1])
        request = types.AlterReplicaLogDirsRequest(dirs=[types.AlterReplicaLogDir(path=path, topics=[topic])])
        (answer,) = node.ask(ApiKey.ALTER_REPLICA_LOG_DIRS, request, 2).results
        return [(p.partition_index, p.error_code) for p in answer.partitions]

    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert move("/one") == [(0, 0), (1, missing)]
    assert move("/two") == [(0, ErrorCode.INVALID_REQUEST), (1, missing)]
    assert move("/broken") == [(0, ErrorCode.KAFKA_STORAGE_ERROR), (1, ErrorCode.KAFKA_STORAGE_ERROR)]


def test_a_reassignment_that_the_metadata_holds_is_listed() -> None:
    node = AdminNode()
    node.harness.create("t", 2)
    node.harness.create("u", 1)
    topic = node.image.topics_by_name["t"]
    node.harness.apply(
        [
            PartitionChangeRecord(
                partition_id=1,
                topic_id=topic.id,
                replicas=[1, 2],
                adding_replicas=[2],
                directories=[log_dir(1), log_dir(2)],
            )
        ]
    )
    types = types_of(ApiKey.LIST_PARTITION_REASSIGNMENTS)

    def listed(asked: dict[str, list[int]] | None) -> list[tuple[str, int, list[int], list[int], list[int]]]:
        topics = None
        if asked is not None:
            topics = [
                types.ListPartitionReassignmentsTopics(name=n, partition_indexes=p) for n, p in asked.items()
            ]
        request = types.ListPartitionReassignmentsRequest(topics=topics)
        answer = node.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, request, 0)
        return [
            (t.name, p.partition_index, [*p.replicas], [*p.adding_replicas], [*p.removing_replicas])
            for t in answer.topics
            for p in t.partitions
        ]

    under_way = [("t", 1, [1, 2], [2], [])]
    assert listed(None) == under_way
    assert listed({"none": [0], "u": [0], "t": [0, 1, 2]}) == under_way
    assert listed({"t": [0]}) == []
    assert listed({}) == []


@pytest.mark.parametrize("field", ["resource_type", "resource_pattern_type", "operation", "permission_type"])
def test_an_acl_with_an_unknown_element_closes_the_connection(field: str) -> None:
    types = types_of(ApiKey.CREATE_ACLS)
    fields = {"resource_type": 2, "resource_pattern_type": 3, "operation": 3, "permission_type": 3, field: 0}
    acl = types.AclCreation(resource_name="x", principal="User:a", host="*", **fields)
    with pytest.raises(ProtocolError, match="unknown element"):
        AdminNode().ask(ApiKey.CREATE_ACLS, types.CreateAclsRequest(creations=[acl]), 3)


@pytest.mark.parametrize("api_key", [ApiKey.DESCRIBE_ACLS, ApiKey.DELETE_ACLS])
def test_a_filter_of_acls_with_an_unknown_element_closes_the_connection(api_key: ApiKey) -> None:
    types = types_of(api_key)
    fields = {"resource_type_filter": 0, "operation": 1, "permission_type": 1}
    if api_key is ApiKey.DESCRIBE_ACLS:
        request = types.DescribeAclsRequest(**fields)
    else:
        request = types.DeleteAclsRequest(filters=[types.DeleteAclsFilter(**fields)])
    with pytest.raises(ProtocolError, match="unknown element"):
        AdminNode().ask(api_key, request, 3)
