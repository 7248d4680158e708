"""Consumer groups over the wire: describing, offsets, seeking, deleting. commands/group.py shows them."""

from collections.abc import Mapping, Sequence
from struct import Struct
from typing import Any, NamedTuple

from odradek.cli.errors import Failure, kafka_failure
from odradek.cli.requests.cluster_access import ClusterAccess
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import TopicPartition
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

# From version 10 on topics go by id, which a deleted topic has lost.
_LAST_VERSION_BY_NAME = 9
_DEAD = "Dead"

# A classic member's assignment: version int16, then an array of (topic string, array of int32).
_INT16 = Struct(">h")
_INT32 = Struct(">i")


class MemberDescription(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: list[TopicPartition]


class GroupInfo(NamedTuple):
    group: str
    type: str
    state: str
    protocol_type: str | None
    assignor: str | None
    coordinator: int
    members: list[MemberDescription]


class GroupOffset(NamedTuple):
    """A committed offset with the log's end beside it; None where there is none."""

    tp: TopicPartition
    committed: int | None
    end: int | None

    @property
    def lag(self) -> int | None:
        if self.committed is None or self.end is None:
            return None
        return max(0, self.end - self.committed)


def describe_group(cluster: ClusterAccess, group: str) -> GroupInfo:
    """Type, state and members; a failure for a group that does not exist."""
    coordinator = cluster.coordinator(group)
    listed = {
        found.group_id: found.group_type.lower()
        for node, found in cluster.listed_groups()
        if node == coordinator
    }
    if group not in listed:
        raise kafka_failure(f"group {group}", group, KafkaError(ErrorCode.GROUP_ID_NOT_FOUND))
    if listed[group] == "consumer":
        return _describe_consumer(cluster, group, coordinator)
    types = request_types(ApiKey.DESCRIBE_GROUPS)
    response = cluster.send(
        ApiKey.DESCRIBE_GROUPS, types.DescribeGroupsRequest(groups=[group]), node_id=coordinator
    )
    (found,) = response.groups
    _check(group, found)
    members = [
        MemberDescription(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host.lstrip("/"),
            parse_assignment(member.member_assignment) if found.protocol_type == "consumer" else [],
        )
        for member in found.members
    ]
    return GroupInfo(
        group,
        listed[group] or "classic",
        found.group_state,
        found.protocol_type or None,
        found.protocol_data or None,
        coordinator,
        members,
    )


def _describe_consumer(cluster: ClusterAccess, group: str, coordinator: int) -> GroupInfo:
    types = request_types(ApiKey.CONSUMER_GROUP_DESCRIBE)
    request = types.ConsumerGroupDescribeRequest(group_ids=[group])
    (found,) = cluster.send(ApiKey.CONSUMER_GROUP_DESCRIBE, request, node_id=coordinator).groups
    _check(group, found)
    members = [
        MemberDescription(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host.lstrip("/"),
            [
                TopicPartition(topic.topic_name, partition)
                for topic in member.assignment.topic_partitions
                for partition in topic.partitions
            ],
        )
        for member in found.members
    ]
    return GroupInfo(
        group, "consumer", found.group_state, "consumer", found.assignor_name or None, coordinator, members
    )


def _check(group: str, found: Any) -> None:
    if found.error_code:
        error = KafkaError(ErrorCode(found.error_code), found.error_message)
        raise kafka_failure(f"group {group}", group, error)
    if found.group_state == _DEAD:
        raise kafka_failure(f"group {group}", group, KafkaError(ErrorCode.GROUP_ID_NOT_FOUND))


def parse_assignment(data: bytes) -> list[TopicPartition]:
    """The partitions in a classic member's assignment; none where it is empty or cannot be read."""
    try:
        return _parse_assignment(bytes(data))
    except (IndexError, UnicodeDecodeError, ValueError):
        return []


def _parse_assignment(data: bytes) -> list[TopicPartition]:
    if not data:
        return []
    position = _INT16.size
    partitions = []

    def number(layout: Struct) -> int:
        nonlocal position
        if position + layout.size > len(data):
            raise ValueError("the assignment ends early")
        (value,) = layout.unpack_from(data, position)
        position += layout.size
        return int(value)

    for _ in range(number(_INT32)):
        length = number(_INT16)
        topic = data[position : position + length].decode()
        position += length
        partitions += [TopicPartition(topic, number(_INT32)) for _ in range(number(_INT32))]
    return partitions


def committed_offsets(cluster: ClusterAccess, group: str) -> dict[TopicPartition, int]:
    """Every offset the group has committed."""
    types = request_types(ApiKey.OFFSET_FETCH)
    request = types.OffsetFetchRequest(groups=[types.OffsetFetchRequestGroup(group_id=group, topics=None)])
    response = cluster.send(
        ApiKey.OFFSET_FETCH, request, node_id=cluster.coordinator(group), max_version=_LAST_VERSION_BY_NAME
    )
    (found,) = response.groups
    if found.error_code:
        raise kafka_failure(f"group {group}", group, KafkaError(ErrorCode(found.error_code)))
    return {
        TopicPartition(topic.name, partition.partition_index): partition.committed_offset
        for topic in sorted(found.topics, key=lambda topic: str(topic.name))
        for partition in sorted(topic.partitions, key=lambda partition: int(partition.partition_index))
        if partition.committed_offset >= 0
    }


def group_offsets(
    cluster: ClusterAccess, group: str, members: Sequence[MemberDescription], isolation_level: int = 0
) -> list[GroupOffset]:
    """Committed offsets, and partitions that members read without a commit, with the logs' ends."""
    committed: dict[TopicPartition, int | None] = dict(committed_offsets(cluster, group))
    for member in members:
        for tp in member.assignment:
            committed.setdefault(tp, None)
    partitions = sorted(committed)
    topics, _ = cluster.find_topics(list(dict.fromkeys(tp.topic for tp in partitions)))
    there = {tp for topic in topics for tp in topic.topic_partitions}
    known = [tp for tp in partitions if tp in there]
    ends = cluster.list_offsets(topics, known, -1, isolation_level) if known else {}
    return [GroupOffset(tp, committed[tp], ends.get(tp)) for tp in partitions]


def commit_offsets(
    cluster: ClusterAccess, group: str, offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Failure]:
    """Commit for a group without members; what was refused, by partition."""
    types = request_types(ApiKey.OFFSET_COMMIT)
    topics: dict[str, list[Any]] = {}
    for tp, offset in offsets.items():
        topics.setdefault(tp.topic, []).append(
            types.OffsetCommitRequestPartition(
                partition_index=tp.partition, committed_offset=offset, committed_metadata=""
            )
        )
    request = types.OffsetCommitRequest(
        group_id=group,
        topics=[
            types.OffsetCommitRequestTopic(name=name, partitions=found) for name, found in topics.items()
        ],
    )
    response = cluster.send(
        ApiKey.OFFSET_COMMIT, request, node_id=cluster.coordinator(group), max_version=_LAST_VERSION_BY_NAME
    )
    failures = {}
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code:
                tp = TopicPartition(topic.name, partition.partition_index)
                error = KafkaError(ErrorCode(partition.error_code))
                failures[tp] = kafka_failure(f"group {group}, partition {tp}", group, error)
    return failures


def delete_groups(cluster: ClusterAccess, groups: Sequence[str]) -> dict[str, Failure]:
    """What could not be deleted, by group."""
    types = request_types(ApiKey.DELETE_GROUPS)
    failures = {}
    for group in groups:
        request = types.DeleteGroupsRequest(groups_names=[group])
        (result,) = cluster.send(ApiKey.DELETE_GROUPS, request, node_id=cluster.coordinator(group)).results
        if result.error_code:
            failures[group] = kafka_failure(f"group {group}", group, KafkaError(ErrorCode(result.error_code)))
    return failures
