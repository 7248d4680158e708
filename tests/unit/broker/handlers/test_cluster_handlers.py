"""What a node says of the cluster, its directories and its features, and the producer ids it gives."""

from types import SimpleNamespace
from typing import Any

import pytest

from odradek.core.errors import ErrorCode, KafkaError, StorageError
from odradek.core.types import TopicPartition
from odradek.log.manager import LogDirInfo
from odradek.runtime.slices import Paced
from odradek.wire.api_keys import ApiKey
from tests.unit.broker.handlers.admin_node import AdminNode, types_of
from tests.unit.controller.harness import CLUSTER_ID, log_dir


def cluster(node: AdminNode, version: int = 2, **fields: Any) -> Any:
    types = types_of(ApiKey.DESCRIBE_CLUSTER)
    return node.ask(ApiKey.DESCRIBE_CLUSTER, types.DescribeClusterRequest(**fields), version)


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_lists_its_brokers_on_the_listener_asked(version: int) -> None:
    answer = cluster(AdminNode(), version)
    assert (answer.error_code, answer.cluster_id, answer.controller_id) == (0, CLUSTER_ID, 1)
    assert [(b.broker_id, b.host, b.port) for b in answer.brokers] == [(1, "127.0.0.1", 9092)]
    assert answer.cluster_authorized_operations == -(1 << 31)


def test_fenced_brokers_and_operations_are_shown_when_asked_for() -> None:
    node = AdminNode()
    node.harness.register(2)
    assert [b.broker_id for b in cluster(node).brokers] == [1]
    answer = cluster(node, include_fenced_brokers=True, include_cluster_authorized_operations=True)
    assert [(b.broker_id, b.is_fenced) for b in answer.brokers] == [(1, False), (2, True)]
    assert answer.cluster_authorized_operations == 8096


@pytest.mark.parametrize(
    ("kind", "code"), [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)]
)
def test_controllers_are_not_asked_for_here(kind: int, code: ErrorCode) -> None:
    assert cluster(AdminNode(), endpoint_type=kind).error_code == code


def log_dirs(node: AdminNode, topics: Any, version: int = 5) -> Any:
    types = types_of(ApiKey.DESCRIBE_LOG_DIRS)
    if topics is not None:
        topics = [types.DescribableLogDirTopic(topic=name, partitions=p) for name, p in topics.items()]
    return node.ask(ApiKey.DESCRIBE_LOG_DIRS, types.DescribeLogDirsRequest(topics=topics), version).results


def with_logs() -> AdminNode:
    node = AdminNode()
    sizes = [(TopicPartition("a", 0), 10), (TopicPartition("a", 1), 20), (TopicPartition("b", 0), 30)]
    infos = [
        LogDirInfo("/one", log_dir(1), None, 1000, 400, sizes),
        LogDirInfo("/two", None, StorageError("broken"), -1, -1, []),
    ]

    def describe() -> Paced[list[LogDirInfo]]:
        yield 1
        return infos

    node.logs = SimpleNamespace(describe=describe)
    return node


@pytest.mark.parametrize("version", range(1, 6))
def test_directories_show_their_partitions_and_volumes(version: int) -> None:
    good, broken = log_dirs(with_logs(), None, version)
    assert (good.error_code, good.log_dir) == (0, "/one")
    shown = {(t.name, p.partition_index): p.partition_size for t in good.topics for p in t.partitions}
    assert shown == {("a", 0): 10, ("a", 1): 20, ("b", 0): 30}
    if version >= 4:
        assert (good.total_bytes, good.usable_bytes) == (1000, 400)
    assert (broken.error_code, broken.log_dir) == (ErrorCode.KAFKA_STORAGE_ERROR, "/two")


def test_only_the_partitions_asked_for_are_shown() -> None:
    good, _ = log_dirs(with_logs(), {"a": [1], "no": [0]})
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in good.topics] == [("a", [1])]
    assert list(log_dirs(with_logs(), {})[0].topics) == []


@pytest.mark.parametrize("version", range(3))
def test_features_are_updated_at_every_version(version: int) -> None:
    node = AdminNode()
    types = types_of(ApiKey.UPDATE_FEATURES)
    update = types.FeatureUpdateKey(feature="group.version", max_version_level=1)
    request = types.UpdateFeaturesRequest(feature_updates=[update])
    answer = node.ask(ApiKey.UPDATE_FEATURES, request, version)
    assert (answer.error_code, answer.error_message) == (0, None)
    if version < 2:
        assert [(r.feature, r.error_code) for r in answer.results] == [("group.version", 0)]
    assert node.image.features["group.version"] == 1
    update.max_version_level, update.upgrade_type = 0, 2
    assert node.ask(ApiKey.UPDATE_FEATURES, request, version).error_code == 0
    assert "group.version" not in node.image.features


def init(node: AdminNode, version: int = 5, **fields: Any) -> tuple[int, int, int]:
    types = types_of(ApiKey.INIT_PRODUCER_ID)
    fields = {"transactional_id": None, **fields}
    answer = node.ask(ApiKey.INIT_PRODUCER_ID, types.InitProducerIdRequest(**fields), version)
    return answer.error_code, answer.producer_id, answer.producer_epoch


@pytest.mark.parametrize("version", range(7))
def test_every_producer_gets_its_own_id_at_epoch_0(version: int) -> None:
    node = AdminNode()
    assert [init(node, version) for _ in range(3)] == [(0, 0, 0), (0, 1, 0), (0, 2, 0)]


def test_ids_go_on_over_blocks() -> None:
    node = AdminNode()
    ids = [init(node)[1] for _ in range(1002)]
    assert ids == list(range(1002))
    assert node.image.next_producer_id == 2000


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"producer_id": 5}, ErrorCode.INVALID_REQUEST),
        ({"producer_epoch": 5}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_has_no_answer_gets_an_error_and_no_id(fields: dict[str, Any], code: ErrorCode) -> None:
    assert init(AdminNode(), **fields) == (code, -1, -1)


def test_a_producer_asks_again_while_the_controller_cannot_answer() -> None:
    node = AdminNode()
    node.failure = KafkaError(ErrorCode.NOT_CONTROLLER)
    assert init(node) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1, -1)
