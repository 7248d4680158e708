"""DescribeProducers v0: the producers of partitions that this broker leads, with their open transactions.

Deviation: a partition that occurs twice is answered once, because a small request could ask for its producers
many times.
"""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.core.errors import KafkaError
from odradek.core.types import TopicPartition
from odradek.replication.manager import ReplicaManager
from odradek.runtime.slices import STEP, Paced
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.replication.partition import Partition
    from odradek.wire.requests.describe_producers import DescribeProducersRequest


class Needs(Protocol):
    replicas: ReplicaManager


@serves(ApiKey.DESCRIBE_PRODUCERS, min_version=0, max_version=0)
def describe_producers(ctx: RequestContext[Needs], request: "DescribeProducersRequest") -> Paced[Any]:
    types = responses.describe_producers
    asked: dict[str, dict[int, None]] = {}
    for topic in request.topics:
        asked.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
        yield STEP
    topics = []
    for name, indexes in asked.items():
        partitions = []
        for index in indexes:
            answer = types.PartitionResponse(partition_index=index)
            partitions.append(answer)
            try:
                partition = ctx.services.replicas.partition(TopicPartition(name, index))
                partition.require_leader()
                answer.active_producers = yield from _producers(partition)
            except KafkaError as e:
                answer.error_code = e.code
                answer.error_message = e.message or e.code.name
            yield STEP
        topics.append(types.TopicResponse(name=name, partitions=partitions))
    return types.DescribeProducersResponse(topics=topics)


def _producers(partition: "Partition") -> Paced[list[Any]]:
    """The current producers. Some may expire before the answer is complete."""
    types = responses.describe_producers
    rows = []
    for entry in list(partition.log.producers.entries.values()):
        rows.append(
            types.ProducerState(
                producer_id=entry.producer_id,
                producer_epoch=entry.producer_epoch,
                last_sequence=entry.last_sequence,
                last_timestamp=entry.last_timestamp,
                coordinator_epoch=entry.coordinator_epoch,
                current_txn_start_offset=entry.current_txn_first_offset,
            )
        )
        yield STEP
    return rows
