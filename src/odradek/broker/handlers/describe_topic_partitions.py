"""DescribeTopicPartitions v0: topics by name, a limited number of partitions per answer, with a cursor."""

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.authorized import NOT_ASKED, TOPIC_OPERATIONS
from odradek.broker.dispatch import RequestContext, serves
from odradek.core.configs import NodeConfig
from odradek.core.errors import ErrorCode
from odradek.core.types import INTERNAL_TOPICS, ZERO_UUID
from odradek.metadata.availability import leader_to_name, offline_replicas
from odradek.metadata.image import MetadataImage, PartitionRegistration
from odradek.metadata.publisher import MetadataPublisher
from odradek.metadata.topic_names import why_unknown
from odradek.runtime.slices import STEP, Paced
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.describe_topic_partitions import DescribeTopicPartitionsRequest


class Needs(Protocol):
    config: NodeConfig
    metadata: MetadataPublisher


@serves(ApiKey.DESCRIBE_TOPIC_PARTITIONS, min_version=0, max_version=0)
def describe_topic_partitions(
    ctx: RequestContext[Needs], request: "DescribeTopicPartitionsRequest"
) -> Paced[Any]:
    types = responses.describe_topic_partitions
    image = ctx.services.metadata.image
    yield len(request.topics)
    asked = sorted({topic.name for topic in request.topics}) or sorted(image.topics_by_name)
    yield len(asked)
    first_index = 0
    if request.cursor is not None:
        cursor = request.cursor
        if cursor.partition_index < 0 or (request.topics and cursor.topic_name not in asked):
            refused = []
            for name in asked:
                refused.append(_failed(types, name, ErrorCode.INVALID_REQUEST))
                yield STEP
            return types.DescribeTopicPartitionsResponse(topics=refused)
        asked = asked[bisect_left(asked, cursor.topic_name) :]
        if asked and asked[0] == cursor.topic_name:
            first_index = cursor.partition_index
    most = ctx.services.config.int("max.request.partition.size.limit")
    room = max(min(most, request.response_partition_limit), 1)
    topics: list[Any] = []
    for name in asked:
        yield STEP
        if room == 0:
            next_cursor = types.Cursor(topic_name=name, partition_index=0)
            return types.DescribeTopicPartitionsResponse(topics=topics, next_cursor=next_cursor)
        topic = image.topics_by_name.get(name)
        if topic is None:
            topics.append(_failed(types, name, why_unknown(name), TOPIC_OPERATIONS))
            continue
        indexes = sorted(index for index in topic.partitions if index >= first_index)
        shown = indexes[:room]
        room -= len(shown)
        first_index = 0
        partitions = []
        for i in shown:
            partitions.append(_partition(ctx, types, image, i, topic.partitions[i]))
            yield STEP
        topics.append(
            types.DescribeTopicPartitionsResponseTopic(
                name=name,
                topic_id=topic.id,
                is_internal=name in INTERNAL_TOPICS,
                partitions=partitions,
                topic_authorized_operations=TOPIC_OPERATIONS,
            )
        )
        if len(shown) < len(indexes):
            next_cursor = types.Cursor(topic_name=name, partition_index=indexes[len(shown)])
            return types.DescribeTopicPartitionsResponse(topics=topics, next_cursor=next_cursor)
    return types.DescribeTopicPartitionsResponse(topics=topics)


def _failed(types: Any, name: str, code: ErrorCode, operations: int = NOT_ASKED) -> Any:
    return types.DescribeTopicPartitionsResponseTopic(
        error_code=code,
        name=name,
        topic_id=ZERO_UUID,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=operations,
    )


def _partition(
    ctx: RequestContext[Needs], types: Any, image: MetadataImage, index: int, partition: PartitionRegistration
) -> Any:
    """A partition without a leader has no error, as in Apache Kafka."""
    return types.DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE,
        partition_index=index,
        leader_id=leader_to_name(image, partition, ctx.listener),
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        eligible_leader_replicas=partition.elr,
        last_known_elr=partition.last_known_elr,
        offline_replicas=offline_replicas(image, partition, ctx.listener),
    )
