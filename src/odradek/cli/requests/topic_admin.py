"""The requests behind `odradek topic` that change something. commands/topic.py shows tables and asks."""

from collections.abc import Mapping, Sequence
from typing import Any

from odradek.cli.errors import Failure, kafka_failure
from odradek.cli.requests.cluster_access import ClusterAccess, TopicInfo
from odradek.cli.requests.config_admin import did_you_mean
from odradek.core.configs import TOPIC_KEYS
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import ZERO_UUID, TopicPartition, uuid_to_text
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types


def create_topics(
    cluster: ClusterAccess,
    names: Sequence[str],
    partitions: int,
    replicas: int,
    configs: Mapping[str, str],
    *,
    dry_run: bool,
    if_not_exists: bool,
) -> tuple[list[list[Any]], list[Failure]]:
    """Rows (name, partitions, replicas, id) of what was created, and what failed."""
    types = request_types(ApiKey.CREATE_TOPICS)
    request = types.CreateTopicsRequest(
        topics=[
            types.CreatableTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=replicas,
                assignments=[],
                configs=[types.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
            )
            for name in names
        ],
        timeout=cluster.timeout_ms,
        validate_only=dry_run,
    )
    response = cluster.send(ApiKey.CREATE_TOPICS, request)
    created: list[list[Any]] = []
    failures = []
    for topic in sorted(response.topics, key=lambda topic: names.index(topic.name)):
        code = ErrorCode(topic.error_code)
        if code is ErrorCode.TOPIC_ALREADY_EXISTS and if_not_exists:
            continue
        if code is not ErrorCode.NONE:
            error = KafkaError(code, topic.error_message)
            failure = kafka_failure(f"topic {topic.name}", topic.name, error)
            if code is not ErrorCode.TOPIC_ALREADY_EXISTS and "topic describe" in (failure.hint or ""):
                failure.hint = None
            if code is ErrorCode.INVALID_CONFIG:
                failure.hint = did_you_mean(configs, TOPIC_KEYS)
            failures.append(failure)
            continue
        created.append(
            [
                topic.name,
                topic.num_partitions if topic.num_partitions >= 0 else None,
                topic.replication_factor if topic.replication_factor >= 0 else None,
                None if topic.topic_id == ZERO_UUID else uuid_to_text(topic.topic_id),
            ]
        )
    return created, failures


def delete_topics(cluster: ClusterAccess, names: Sequence[str]) -> dict[str, Failure]:
    """What could not be deleted, by name."""
    types = request_types(ApiKey.DELETE_TOPICS)
    request = types.DeleteTopicsRequest(
        topics=[types.DeleteTopicState(name=name) for name in names], timeout=cluster.timeout_ms
    )
    response = cluster.send(ApiKey.DELETE_TOPICS, request)
    return {
        result.name: kafka_failure(
            f"topic {result.name}",
            result.name,
            KafkaError(ErrorCode(result.error_code), result.error_message),
        )
        for result in response.responses
        if result.error_code
    }


def create_partitions(cluster: ClusterAccess, name: str, total: int, *, validate_only: bool) -> None:
    types = request_types(ApiKey.CREATE_PARTITIONS)
    request = types.CreatePartitionsRequest(
        topics=[types.CreatePartitionsTopic(name=name, count=total, assignments=None)],
        timeout=cluster.timeout_ms,
        validate_only=validate_only,
    )
    (result,) = cluster.send(ApiKey.CREATE_PARTITIONS, request).results
    if result.error_code:
        error = KafkaError(ErrorCode(result.error_code), result.error_message)
        raise kafka_failure(f"topic {name}", name, error)


def delete_records(
    cluster: ClusterAccess, topic: TopicInfo, offsets: Mapping[TopicPartition, int]
) -> dict[int, Failure]:
    """Move the log start of partitions; what could not be moved, by partition."""
    types = request_types(ApiKey.DELETE_RECORDS)

    def request(wanted: Mapping[str, list[int]]) -> Any:
        partitions = [
            types.DeleteRecordsPartition(partition_index=index, offset=offsets[TopicPartition(name, index)])
            for name, indexes in wanted.items()
            for index in indexes
        ]
        return types.DeleteRecordsRequest(
            topics=[types.DeleteRecordsTopic(name=topic.name, partitions=partitions)],
            timeout=cluster.timeout_ms,
        )

    failures = {}
    for response in cluster.send_to_leaders(ApiKey.DELETE_RECORDS, list(offsets), [topic], request):
        for answered in response.topics:
            for partition in answered.partitions:
                if partition.error_code:
                    thing = f"partition {topic.name}-{partition.partition_index}"
                    error = KafkaError(ErrorCode(partition.error_code))
                    failures[partition.partition_index] = kafka_failure(thing, topic.name, error)
    return failures
