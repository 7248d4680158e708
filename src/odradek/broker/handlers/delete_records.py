"""DeleteRecords v0-v2: advances the log start of partitions to an offset; -1 means the high watermark."""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import TopicPartition
from odradek.replication.manager import ReplicaManager
from odradek.runtime.slices import STEP, Paced
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.delete_records import DeleteRecordsRequest

_NO_LOW_WATERMARK = -1


class Needs(Protocol):
    replicas: ReplicaManager


@serves(ApiKey.DELETE_RECORDS, min_version=0, max_version=2)
def delete_records(ctx: RequestContext[Needs], request: "DeleteRecordsRequest") -> Paced[Any]:
    types = responses.delete_records
    topics = []
    for topic in request.topics:
        partitions = []
        for asked in topic.partitions:
            low_watermark, code = _NO_LOW_WATERMARK, ErrorCode.NONE
            tp = TopicPartition(topic.name, asked.partition_index)
            try:
                low_watermark = ctx.services.replicas.delete_records(tp, asked.offset)
            except KafkaError as e:
                code = e.code
            partitions.append(
                types.DeleteRecordsPartitionResult(
                    partition_index=tp.partition, low_watermark=low_watermark, error_code=code
                )
            )
            yield STEP
        yield STEP
        topics.append(types.DeleteRecordsTopicResult(name=topic.name, partitions=partitions))
    return types.DeleteRecordsResponse(topics=topics)
