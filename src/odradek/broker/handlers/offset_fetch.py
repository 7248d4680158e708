"""OffsetFetch v1-v10: one group up to v7, several since v8; topics by id in v10; null for all of them.

An unknown group, topic name or partition has offset -1 and no error. Deviation: a group of which all topics
are asked for again is answered once, since a few bytes ask for all its commits.
"""

from typing import Any

from odradek.broker.dispatch import RequestContext, serves
from odradek.coordinators.groups.commands import FetchOffsets, WantedTopic
from odradek.coordinators.groups.replies import FetchedPartition, FetchedTopic
from odradek.core.errors import ErrorCode
from odradek.core.types import ZERO_UUID
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types

_FIRST_WITH_TOPIC_IDS = 10
_FIRST_WITH_GROUP_ERROR = 2


@serves(ApiKey.OFFSET_FETCH, min_version=1, max_version=10)
async def offset_fetch(ctx: RequestContext, request: Any) -> Any:
    types = response_types(ApiKey.OFFSET_FETCH)
    asked_groups = _without_repeats(request.groups)
    asked = [_wanted(ctx, group) for group in asked_groups]
    replies = [
        ctx.node.groups.fetch_offsets(
            FetchOffsets(group.group_id, topics, request.require_stable, group.member_id, group.member_epoch)
        )
        for group, (topics, _) in zip(asked_groups, asked, strict=True)
    ]
    groups = []
    for group, (_, unknown), reply in zip(asked_groups, asked, replies, strict=True):
        row = types.OffsetFetchResponseGroup(group_id=group.group_id)
        result = await reply
        if isinstance(result, ErrorCode):
            row.error_code = result
            row.topics = _refused(ctx, group)
        else:
            row.topics = _with_ids(ctx, result) + unknown
        groups.append(row)
    return types.OffsetFetchResponse(groups=groups)


def _without_repeats(groups: list[Any]) -> list[Any]:
    whole: set[str] = set()
    kept = []
    for group in groups:
        if group.topics is None:
            if group.group_id in whole:
                continue
            whole.add(group.group_id)
        kept.append(group)
    return kept


def _wanted(ctx: RequestContext, group: Any) -> tuple[list[WantedTopic] | None, list[FetchedTopic]]:
    """What to ask for, and what can only be answered with UNKNOWN_TOPIC_ID."""
    if group.topics is None:
        return None, []
    if ctx.api_version < _FIRST_WITH_TOPIC_IDS:
        return [WantedTopic(t.name, ZERO_UUID, t.partition_indexes) for t in group.topics], []
    known = ctx.node.metadata.image.topics_by_id
    wanted = []
    unknown = []
    for topic in group.topics:
        found = known.get(topic.topic_id)
        if found is not None:
            wanted.append(WantedTopic(found.name, found.id, topic.partition_indexes))
            continue
        rows = [FetchedPartition(p, error_code=ErrorCode.UNKNOWN_TOPIC_ID) for p in topic.partition_indexes]
        unknown.append(FetchedTopic("", rows, topic.topic_id))
    return wanted, unknown


def _with_ids(ctx: RequestContext, topics: list[FetchedTopic]) -> list[FetchedTopic]:
    """From v10 on a topic without an id cannot be named: what is left of a deleted one is not shown."""
    if ctx.api_version < _FIRST_WITH_TOPIC_IDS:
        return topics
    known = ctx.node.metadata.image.topics_by_name
    named = []
    for topic in topics:
        if topic.name in known:
            topic.topic_id = known[topic.name].id
            named.append(topic)
    return named


def _refused(ctx: RequestContext, group: Any) -> list[FetchedTopic]:
    """Only v1 repeats the topics, to put the group's error into each partition."""
    if ctx.api_version >= _FIRST_WITH_GROUP_ERROR:
        return []
    return [FetchedTopic(t.name, [FetchedPartition(p) for p in t.partition_indexes]) for t in group.topics]
