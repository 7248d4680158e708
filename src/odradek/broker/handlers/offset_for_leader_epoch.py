"""OffsetForLeaderEpoch v2-v4: the end offset of a leader epoch, so that a reader can detect a divergence."""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.core.errors import KafkaError
from odradek.core.types import TopicPartition
from odradek.replication.manager import ReplicaManager
from odradek.runtime.slices import STEP, Paced
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.offset_for_leader_epoch import OffsetForLeaderEpochRequest


class Needs(Protocol):
    replicas: ReplicaManager


@serves(ApiKey.OFFSET_FOR_LEADER_EPOCH, min_version=2, max_version=4)
def offset_for_leader_epoch(ctx: RequestContext[Needs], request: "OffsetForLeaderEpochRequest") -> Paced[Any]:
    types = responses.offset_for_leader_epoch
    topics = []
    for topic in request.topics:
        results = []
        for entry in topic.partitions:
            result = types.EpochEndOffset(partition=entry.partition)
            results.append(result)
            try:
                partition = ctx.services.replicas.partition(TopicPartition(topic.topic, entry.partition))
                partition.require_leader(entry.current_leader_epoch)
                result.leader_epoch, result.end_offset = partition.log.end_offset_for_epoch(
                    entry.leader_epoch
                )
            except KafkaError as e:
                result.error_code = e.code
            yield STEP
        yield STEP
        topics.append(types.OffsetForLeaderTopicResult(topic=topic.topic, partitions=results))
    return types.OffsetForLeaderEpochResponse(topics=topics)
