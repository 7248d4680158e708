"""DescribeProducers v0: the producers a partition's leader remembers, with their open transactions."""

from typing import Any

from odradek.broker.dispatch import RequestContext, serves
from odradek.core.errors import KafkaError
from odradek.core.types import TopicPartition
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types


@serves(ApiKey.DESCRIBE_PRODUCERS, min_version=0, max_version=0)
def describe_producers(ctx: RequestContext, request: Any) -> Any:
    types = response_types(ApiKey.DESCRIBE_PRODUCERS)
    topics = []
    for topic in request.topics:
        partitions = []
        for index in topic.partition_indexes:
            answer = types.PartitionResponse(partition_index=index)
            partitions.append(answer)
            try:
                partition = ctx.node.replicas.partition(TopicPartition(topic.name, index))
                partition.require_leader()
                answer.active_producers = [
                    types.ProducerState(
                        producer_id=entry.producer_id,
                        producer_epoch=entry.producer_epoch,
                        last_sequence=entry.last_sequence,
                        last_timestamp=entry.last_timestamp,
                        coordinator_epoch=entry.coordinator_epoch,
                        current_txn_start_offset=entry.current_txn_first_offset,
                    )
                    for entry in partition.log.producers.entries.values()
                ]
            except KafkaError as e:
                answer.error_code = e.code
                answer.error_message = e.message or e.code.name
        topics.append(types.TopicResponse(name=topic.name, partitions=partitions))
    return types.DescribeProducersResponse(topics=topics)
