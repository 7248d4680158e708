"""What a client remembers of the cluster."""

from typing import Any
from uuid import UUID

import pytest

from odradek.client.client import parse_servers
from odradek.client.metadata import ClusterMetadata
from odradek.core.errors import ErrorCode
from odradek.core.types import NO_LEADER, TopicPartition
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types

TYPES = response_types(ApiKey.METADATA)


def response(*topics: Any) -> Any:
    brokers = [TYPES.MetadataResponseBroker(node_id=i, host="h", port=9000 + i) for i in (1, 2)]
    return TYPES.MetadataResponse(brokers=brokers, topics=list(topics), cluster_id="c", controller_id=1)


def topic(name: str, leader: int, epoch: int, id_: int = 7, error_code: int = 0) -> Any:
    partition = TYPES.MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=epoch)
    return TYPES.MetadataResponseTopic(
        name=name, topic_id=UUID(int=id_), partitions=[partition], error_code=error_code
    )


def test_an_older_leader_epoch_does_not_replace_a_newer_one() -> None:
    cluster = ClusterMetadata()
    cluster.update(response(topic("t", leader=2, epoch=5)), all_topics=False)
    cluster.update(response(topic("t", leader=1, epoch=4)), all_topics=False)
    assert cluster.leader(TopicPartition("t", 0)) == 2
    cluster.update(response(topic("t", leader=1, epoch=0, id_=8)), all_topics=False)
    assert cluster.leader(TopicPartition("t", 0)) == 1
    assert cluster.names == {UUID(int=8): "t"}


def test_a_topic_with_an_error_is_forgotten() -> None:
    cluster = ClusterMetadata()
    cluster.update(response(topic("t", 1, 0), topic("u", 2, 0, id_=9)), all_topics=False)
    cluster.update(response(topic("t", 1, 0, error_code=3)), all_topics=False)
    assert cluster.errors == {"t": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert list(cluster.topics) == ["u"]
    assert cluster.names == {UUID(int=9): "u"}
    cluster.update(response(), all_topics=True)
    assert not cluster.topics
    assert not cluster.errors


def test_partitions_are_grouped_by_leader() -> None:
    cluster = ClusterMetadata()
    cluster.update(
        response(topic("t", 1, 0), topic("u", 2, 0, id_=9), topic("v", 5, 0, id_=10)), all_topics=False
    )
    t, u, v, w = (TopicPartition(name, 0) for name in "tuvw")
    assert cluster.by_leader([t, u, v, w]) == {1: [t], 2: [u], NO_LEADER: [v, w]}
    assert cluster.leader_epoch(t) == 0
    assert cluster.leader_epoch(w) == -1


def test_servers_are_read_with_and_without_ports() -> None:
    assert parse_servers("a:1, b ,[::1]:3,::1") == [("a", 1), ("b", 9092), ("::1", 3), ("::1", 9092)]
    assert parse_servers(["a:1"]) == [("a", 1)]
    for wrong in ("", "a:b", ","):
        with pytest.raises(ValueError, match=r"bootstrap|address"):
            parse_servers(wrong)


def test_an_address_may_name_its_security_protocol_which_must_be_supported() -> None:
    assert parse_servers("PLAINTEXT://a:1,plaintext://[::1]:2") == [("a", 1), ("::1", 2)]
    with pytest.raises(ValueError, match=r"^SSL://a:1: SSL is not supported yet; use PLAINTEXT$"):
        parse_servers("SSL://a:1")
