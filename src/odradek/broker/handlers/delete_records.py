"""DeleteRecords v0-v2: advances the log start of partitions to an offset; -1 means the high watermark.

The answer waits until the replicas that are alive have deleted the records too, or for the request's timeout.
"""

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import TopicPartition
from odradek.replication.manager import Deleted, ReplicaManager
from odradek.runtime.slices import STEP, Slices
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.delete_records import DeleteRecordsRequest

_NO_LOW_WATERMARK = -1


class Needs(Protocol):
    replicas: ReplicaManager
    slices: Slices


@serves(ApiKey.DELETE_RECORDS, min_version=0, max_version=2)
async def delete_records(ctx: RequestContext[Needs], request: "DeleteRecordsRequest") -> Any:
    types = responses.delete_records
    pace = ctx.services.slices.pacer()
    topics = []
    unfinished: list[tuple[Any, Deleted]] = []
    for topic in request.topics:
        partitions = []
        for asked in topic.partitions:
            row = types.DeleteRecordsPartitionResult(
                partition_index=asked.partition_index, low_watermark=_NO_LOW_WATERMARK
            )
            partitions.append(row)
            try:
                deleted = ctx.services.replicas.delete_records(
                    TopicPartition(topic.name, asked.partition_index), asked.offset
                )
            except KafkaError as e:
                row.error_code = e.code
            else:
                row.low_watermark = deleted.low_watermark
                if deleted.low_watermark < deleted.offset:
                    unfinished.append((row, deleted))
            await pace(STEP)
        await pace(STEP)
        topics.append(types.DeleteRecordsTopicResult(name=topic.name, partitions=partitions))
    loop = asyncio.get_running_loop()
    deadline = loop.time() + request.timeout / 1000
    for row, deleted in unfinished:
        await _finish(row, deleted, max(0, int((deadline - loop.time()) * 1000)))
        await pace(STEP)
    return types.DeleteRecordsResponse(topics=topics)


async def _finish(row: Any, deleted: Deleted, timeout_ms: int) -> None:
    """Wait for the replicas of one partition. After the timeout the low watermark is that of the beginning,
    as in Apache."""
    try:
        waiting = deleted.partition.when_deleted(deleted.offset, timeout_ms)
        if waiting is not None:
            await waiting
        row.low_watermark = deleted.partition.require_leader().low_watermark
    except KafkaError as e:
        row.error_code = e.code
        if e.code is not ErrorCode.REQUEST_TIMED_OUT:
            row.low_watermark = _NO_LOW_WATERMARK
