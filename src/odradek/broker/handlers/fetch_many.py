"""Fetch requests with many partitions: decoded and handled in slices."""

from typing import Any

from odradek.broker.dispatch import RequestContext, serves_long
from odradek.broker.pending_fetch import TOPIC_IDS_FROM, Needs, PendingFetch
from odradek.runtime.slices import STEP, Paced
from odradek.wire.api_keys import ApiKey
from odradek.wire.fetch import FetchPartition, FetchRequest


@serves_long(ApiKey.FETCH)
def fetch_many(ctx: RequestContext[Needs], message: Any) -> Paced[None]:
    assert ctx.place is not None
    request = FetchRequest()
    for name in ("cluster_id", "isolation_level", "max_bytes", "min_bytes", "session_epoch", "session_id"):
        setattr(request, name, getattr(message, name))
    request.max_wait_ms, request.rack_id = message.max_wait, message.rack_id
    request.replica_id = message.replica_state.replica_id
    request.replica_epoch = message.replica_state.replica_epoch
    by_id = ctx.api_version >= TOPIC_IDS_FROM
    count = 0
    for topic in message.topics:
        partitions = []
        for p in topic.partitions:
            partitions.append(
                FetchPartition(
                    p.partition,
                    p.current_leader_epoch,
                    p.fetch_offset,
                    p.last_fetched_epoch,
                    p.log_start_offset,
                    p.partition_max_bytes,
                    p.replica_directory_id,
                    p.high_watermark,
                )
            )
            yield STEP
        count += len(partitions)
        request.topics.append((topic.topic_id if by_id else topic.topic, partitions))
        yield STEP
    for topic in message.forgotten_topics_data:
        request.forgotten.append((topic.topic_id if by_id else topic.topic, topic.partitions))
        yield STEP
    PendingFetch(ctx.services, ctx.connection, ctx.place.header, request, ctx.place).begin(count)
    return None
