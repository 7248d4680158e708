"""OffsetFetch v1-v10: one group up to v7, several since v8; topics by id in v10; null for all topics.

An unknown group, topic name or partition has offset -1 and no error. Deviation: a second request for all
topics of a group is answered once, because a small request could ask for its offsets many times.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.coordinators.groups.commands import FetchOffsets, WantedTopic
from odradek.coordinators.groups.coordinator import GroupCoordinator
from odradek.coordinators.groups.replies import FetchedPartition, FetchedRow, FetchedTopic
from odradek.core.errors import ErrorCode
from odradek.core.types import ZERO_UUID
from odradek.metadata.publisher import MetadataPublisher
from odradek.runtime.slices import FEW, STEP, Paced, Slices
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

_FIRST_WITH_TOPIC_IDS = 10
_FIRST_WITH_GROUP_ERROR = 2
GROUP_STEP = 60


class Needs(Protocol):
    groups: GroupCoordinator
    metadata: MetadataPublisher
    slices: Slices


@serves(ApiKey.OFFSET_FETCH, min_version=1, max_version=10)
async def offset_fetch(ctx: RequestContext[Needs], request: "OffsetFetchRequest") -> Any:
    types = responses.offset_fetch
    slices = ctx.services.slices
    pace = slices.pacer()
    asked = []
    for group in await slices.run(_without_repeats(request.groups)):
        topics, unknown = await slices.run(_wanted(ctx, group))
        command = FetchOffsets(
            group.group_id, topics, request.require_stable, group.member_id, group.member_epoch
        )
        asked.append((group, unknown, ctx.services.groups.fetch_offsets(command)))
        await pace(GROUP_STEP)
    groups = []
    for group, unknown, reply in asked:
        row = types.OffsetFetchResponseGroup(group_id=group.group_id)
        result = await reply
        if isinstance(result, ErrorCode):
            row.error_code = result
            found: Any = await slices.run(_refused(ctx, group))
        else:
            found = await slices.run(_with_ids(ctx, result)) + unknown
        row.topics = found  # FetchedTopic has the field names of the wire
        groups.append(row)
        await pace(GROUP_STEP)
    return types.OffsetFetchResponse(groups=groups)


def _without_repeats(
    groups: "Sequence[OffsetFetchRequestGroup]",
) -> "Paced[list[OffsetFetchRequestGroup]]":
    """The groups without duplicates."""
    whole: set[str] = set()
    kept = []
    for group in groups:
        yield FEW
        if group.topics is None:
            if group.group_id in whole:
                continue
            whole.add(group.group_id)
        kept.append(group)
    return kept


def _wanted(
    ctx: RequestContext[Needs], group: Any
) -> Paced[tuple[list[WantedTopic] | None, list[FetchedTopic]]]:
    """(the topics to fetch, the answers with UNKNOWN_TOPIC_ID)."""
    if group.topics is None:
        return None, []
    by_id = ctx.api_version >= _FIRST_WITH_TOPIC_IDS
    known = ctx.services.metadata.image.topics_by_id
    wanted: list[WantedTopic] = []
    unknown = []
    for topic in group.topics:
        yield STEP
        if not by_id:
            wanted.append(WantedTopic(topic.name, ZERO_UUID, topic.partition_indexes))
            continue
        found = known.get(topic.topic_id)
        if found is not None:
            wanted.append(WantedTopic(found.name, found.id, topic.partition_indexes))
            continue
        rows: list[FetchedRow] = []
        for p in topic.partition_indexes:
            rows.append(FetchedPartition(p, error_code=ErrorCode.UNKNOWN_TOPIC_ID))
            yield FEW
        unknown.append(FetchedTopic("", rows, topic.topic_id))
    return wanted, unknown


def _with_ids(ctx: RequestContext[Needs], topics: list[FetchedTopic]) -> Paced[list[FetchedTopic]]:
    """Since v10 a topic needs an id: offsets of a deleted topic are omitted."""
    if ctx.api_version < _FIRST_WITH_TOPIC_IDS:
        return topics
    known = ctx.services.metadata.image.topics_by_name
    named = []
    for topic in topics:
        yield FEW
        if topic.name in known:
            topic.topic_id = known[topic.name].id
            named.append(topic)
    return named


def _refused(ctx: RequestContext[Needs], group: Any) -> Paced[list[FetchedTopic]]:
    """Only v1 repeats the topics, with the group's error in each partition."""
    topics: list[FetchedTopic] = []
    if ctx.api_version >= _FIRST_WITH_GROUP_ERROR:
        return topics
    for topic in group.topics:
        rows: list[FetchedRow] = []
        for p in topic.partition_indexes:
            rows.append(FetchedPartition(p))
            yield FEW
        topics.append(FetchedTopic(topic.name, rows))
        yield FEW
    return topics
