"""CreateTopics. Pure: a request in, records and an answer out.

Errors and their texts are Kafka's. partitions.py adds partitions to existing topics.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from odradek.controller.configs import topic_config_records
from odradek.controller.partitions import check_assignment, check_partition_total, partition_record
from odradek.controller.placement import place_replicas
from odradek.controller.result import ControllerResult, check_count
from odradek.core.configs import describe_topic
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import METADATA_TOPIC
from odradek.metadata.records import MetadataRecord, TopicRecord
from odradek.metadata.topic_names import check_topic_name, collision_key
from odradek.runtime.slices import FEW, STEP, Paced
from odradek.wire import responses

if TYPE_CHECKING:
    from odradek.controller.controller import Controller
    from odradek.wire.requests.create_topics import CreateTopicsRequest

DESCRIBED = 500
"""The cost of describing the whole configuration of a topic."""


def create_topics(
    c: "Controller", request: "CreateTopicsRequest", now_ms: int, next_offset: int
) -> Paced[ControllerResult]:
    types = responses.create_topics
    times: Counter[str] = Counter()
    for topic in request.topics:
        times[topic.name] += 1
        yield FEW
    once = []
    total = 0
    for topic in request.topics:
        if times[topic.name] == 1:
            once.append(topic)
            total += _asked_partitions(c, topic)
        yield FEW
    results: list[Any] = []
    records: list[MetadataRecord] = []
    created: dict[str, str] = {}
    described: dict[tuple[tuple[str, str], ...], list[Any]] = {}
    for topic in once:
        yield STEP
        try:
            check_partition_total(total)
            new, result = yield from _create_topic(c, topic, created, described, types)
        except KafkaError as e:
            results.append(_failed(types, topic.name, e.code, e.message))
            continue
        records += new
        results.append(result)
        key = collision_key(topic.name)
        if key is not None:
            created[key] = topic.name
    for name, count in times.items():
        yield STEP
        if count > 1:
            results.append(_failed(types, name, ErrorCode.INVALID_REQUEST, "Duplicate topic name."))
    try:
        check_count(len(records))
    except KafkaError as e:
        refused = yield from _all_refused(types, times, e)
        return ControllerResult([], types.CreateTopicsResponse(topics=refused))
    response = types.CreateTopicsResponse(topics=results)
    return ControllerResult([] if request.validate_only else records, response, is_atomic=True)


def _all_refused(types: Any, names: Iterable[str], error: KafkaError) -> Paced[list[Any]]:
    """All topics of a request are created in one batch, or none."""
    results = []
    for name in names:
        results.append(_failed(types, name, error.code, error.message))
        yield STEP
    return results


def _failed(types: Any, name: str, code: ErrorCode, message: str | None) -> Any:
    return types.CreatableTopicResult(name=name, error_code=code, error_message=message, configs=())


def _asked_partitions(c: "Controller", topic: Any) -> int:
    if topic.num_partitions != -1:
        return int(topic.num_partitions)
    return len(topic.assignments) or c.config.num_partitions


def _create_topic(
    c: "Controller",
    topic: Any,
    created: dict[str, str],
    described: dict[tuple[tuple[str, str], ...], list[Any]],
    types: Any,
) -> Paced[tuple[list[MetadataRecord], Any]]:
    """`created` and `described` have the names and configurations of the previous topics of the request."""
    name = topic.name
    if name == METADATA_TOPIC:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Creation of internal topic {METADATA_TOPIC} is prohibited."
        )
    check_topic_name(name)
    if name in c.image.topics_by_name:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    key = collision_key(name)
    if key is not None:
        other = c.collisions.get(key) or created.get(key)
        if other is not None:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' collides with existing topic: {other}",
            )
    configs = yield from _creation_configs(topic)
    config_records = yield from topic_config_records(c, name, {}, configs)
    assignments = yield from _assignments(c, topic)
    topic_id = c.new_uuid()
    records: list[MetadataRecord] = [TopicRecord(name=name, topic_id=topic_id), *config_records]
    for i, replicas in enumerate(assignments):
        records.append(partition_record(c, topic_id, i, replicas))
        yield STEP
    settings = tuple(configs.items())
    if settings not in described:
        described[settings] = _effective_configs(c, configs, types)
        yield DESCRIBED
    result = types.CreatableTopicResult(
        name=name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(assignments),
        replication_factor=len(assignments[0]),
        configs=described[settings],
    )
    return records, result


def _creation_configs(topic: Any) -> Paced[dict[str, str]]:
    nulls = []
    configs = {}
    for config in topic.configs:
        yield FEW
        configs[config.name] = config.value
        if config.value is None:
            nulls.append(config.name)
    if nulls:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}"
        )
    return configs


def _effective_configs(c: "Controller", configs: dict[str, str], types: Any) -> list[Any]:
    return [
        types.CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.sensitive,
        )
        for entry in sorted(describe_topic(c.config, configs))
    ]


def _assignments(c: "Controller", topic: Any) -> Paced[Sequence[tuple[int, ...]]]:
    """The replicas of each partition: the requested ones, or placed here."""
    if topic.assignments:
        return (yield from _manual_assignments(c, topic))
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
        )
    partitions = c.config.num_partitions if topic.num_partitions == -1 else topic.num_partitions
    replication_factor = topic.replication_factor
    if replication_factor == -1:
        replication_factor = c.config.default_replication_factor
    brokers = c.image.brokers.values()
    try:
        return (yield from place_replicas(brokers, partitions, replication_factor, c.rng))
    except KafkaError as e:
        reason = f"Unable to replicate the partition {replication_factor} time(s): {e.message}"
        raise KafkaError(e.code, reason) from e


def _manual_assignments(c: "Controller", topic: Any) -> Paced[Sequence[tuple[int, ...]]]:
    if topic.replication_factor != -1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        )
    if topic.num_partitions != -1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        )
    rows: dict[int, tuple[int, ...]] = {}
    replication_factor: int | None = None
    for assignment in topic.assignments:
        index = assignment.partition_index
        if index in rows:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {index}",
            )
        row = tuple(assignment.broker_ids)
        yield STEP + FEW * len(row)
        check_assignment(c, index, row, replication_factor)
        replication_factor = len(row)
        rows[index] = row
    if sorted(rows) != list(range(len(rows))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return [rows[i] for i in range(len(rows))]
