"""ListOffsets v1-v11: offsets by timestamp, and the special timestamps earliest, latest, max-timestamp.

Replica id -2 (a tool that debugs) gets the offsets of this replica, whether it leads or follows.
Without tiered storage -4 (earliest local) is the log start, and -5 (latest tiered) is unknown. If the search
of a batch takes long, it runs in another thread.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import TopicPartition
from odradek.log.log import Isolation, Log
from odradek.log.lookup import (
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    BatchSearch,
    TimestampOffset,
)
from odradek.replication.manager import ReplicaManager
from odradek.runtime.api import Runtime
from odradek.runtime.slices import STEP, Paced, Slices
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.list_offsets import ListOffsetsRequest

EARLIEST_PENDING_UPLOAD = -6
# The first version of each special timestamp. Below it Apache answers UNSUPPORTED_VERSION.
_SINCE = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
_SINCE_NOT_AVAILABLE = 5
CONSUMER = -1
DEBUGGING = -2
READ_COMMITTED = 1
LOOKUP_STEP = 60


class Needs(Protocol):
    replicas: ReplicaManager
    runtime: Runtime
    slices: Slices


@serves(ApiKey.LIST_OFFSETS, min_version=1, max_version=11)
async def list_offsets(ctx: RequestContext[Needs], request: "ListOffsetsRequest") -> Any:
    response, searches = await ctx.services.slices.run(_look_up(ctx, request))
    for search in searches:
        answer = search.answer
        try:
            found = await search.run(ctx.services.runtime.offload)
            answer.timestamp, answer.offset, answer.leader_epoch = found
        except KafkaError as e:
            answer.error_code = e.code
    return response


def _look_up(ctx: RequestContext[Needs], request: "ListOffsetsRequest") -> "Paced[tuple[Any, list[_Search]]]":
    """(the response, searches for the rest)."""
    types = responses.list_offsets
    asked: dict[TopicPartition, int] = {}
    for topic in request.topics:
        for entry in topic.partitions:
            tp = TopicPartition(topic.name, entry.partition_index)
            asked[tp] = asked.get(tp, 0) + 1
            yield STEP
    topics = []
    searches: list[_Search] = []
    for topic in request.topics:
        partitions = []
        for entry in topic.partitions:
            tp = TopicPartition(topic.name, entry.partition_index)
            answer = types.ListOffsetsPartitionResponse(partition_index=entry.partition_index)
            partitions.append(answer)
            try:
                if asked[tp] > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST)
                found = _lookup(ctx, request, tp, entry)
                if isinstance(found, _Search):
                    found.answer = answer
                    searches.append(found)
                else:
                    answer.timestamp, answer.offset, answer.leader_epoch = found
            except KafkaError as e:
                answer.error_code = e.code
            yield LOOKUP_STEP
        topics.append(types.ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
        yield STEP
    return types.ListOffsetsResponse(topics=topics), searches


class _Search:
    """A lookup that reached a batch whose search takes long."""

    __slots__ = ("answer", "batch_search", "limit", "log", "when")

    def __init__(self, log: Log, when: int, limit: int, batch_search: BatchSearch) -> None:
        self.log = log
        self.when = when
        self.limit = limit
        self.batch_search = batch_search
        self.answer: Any = None

    async def run(self, offload: Callable[[Callable[[], Any]], Awaitable[Any]]) -> tuple[int, int, int]:
        found: TimestampOffset | BatchSearch | None = self.batch_search
        while isinstance(found, BatchSearch):
            behind = found.batch.last_offset + 1
            found = await offload(found.run) or self.log.offset_for_timestamp(self.when, behind)
        return _visible(found, self.limit, self.when)


def _lookup(
    ctx: RequestContext[Needs], request: "ListOffsetsRequest", tp: TopicPartition, entry: Any
) -> tuple[int, int, int] | _Search:
    when = entry.timestamp
    if when < 0 and (when < EARLIEST_PENDING_UPLOAD or ctx.api_version < _SINCE.get(when, 0)):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    partition = ctx.services.replicas.partition(tp)
    leader = None
    if request.replica_id != DEBUGGING:
        leader = partition.require_leader(entry.current_leader_epoch)
    log = partition.log
    limit = log.bound(_isolation(request))
    if when == LATEST:
        if leader is not None and request.replica_id == CONSUMER and not leader.is_caught_up:
            # KIP-207: an end offset lower than an earlier answer would look like data loss.
            known = ctx.api_version >= _SINCE_NOT_AVAILABLE
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE if known else ErrorCode.LEADER_NOT_AVAILABLE)
        return -1, limit, partition.leader_epoch
    if when == EARLIEST_PENDING_UPLOAD:
        return -1, -1, -1
    found = log.offset_for_timestamp(when)
    if isinstance(found, BatchSearch):
        return _Search(log, when, limit, found)
    return _visible(found, limit, when)


def _visible(found: TimestampOffset | None, limit: int, when: int) -> tuple[int, int, int]:
    if found is None or (found.offset >= limit and (when >= 0 or when == MAX_TIMESTAMP)):
        return -1, -1, -1
    return found


def _isolation(request: "ListOffsetsRequest") -> Isolation:
    if request.replica_id != CONSUMER:
        return Isolation.LOG_END
    return Isolation.TXN_COMMITTED if request.isolation_level == READ_COMMITTED else Isolation.HIGH_WATERMARK
