"""OffsetDelete v0: removes offsets of topics that the group does not read. No deviation from Apache."""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.coordinators.groups.commands import DeleteOffsets
from odradek.coordinators.groups.coordinator import GroupCoordinator
from odradek.core.errors import ErrorCode
from odradek.metadata.publisher import MetadataPublisher
from odradek.runtime.slices import FEW, STEP, Paced, Slices
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.offset_delete import OffsetDeleteRequest


class Needs(Protocol):
    groups: GroupCoordinator
    metadata: MetadataPublisher
    slices: Slices


@serves(ApiKey.OFFSET_DELETE, min_version=0, max_version=0)
async def offset_delete(ctx: RequestContext[Needs], request: "OffsetDeleteRequest") -> Any:
    types = responses.offset_delete
    response, wanted = await ctx.services.slices.run(_accept(ctx, request))
    if not wanted:
        return response
    command = DeleteOffsets(
        request.group_id, [(name, [row.partition_index for row in rows]) for name, rows in wanted]
    )
    result = await ctx.services.groups.delete_offsets(command)
    if isinstance(result, ErrorCode):
        return types.OffsetDeleteResponse(error_code=result)
    pace = ctx.services.slices.pacer()
    for (_, rows), codes in zip(wanted, result, strict=True):
        for row, code in zip(rows, codes, strict=True):
            row.error_code = code
            await pace(FEW)
    return response


def _accept(
    ctx: RequestContext[Needs], request: "OffsetDeleteRequest"
) -> Paced[tuple[Any, list[tuple[str, list[Any]]]]]:
    """(the response, its open rows)."""
    types = responses.offset_delete
    known = ctx.services.metadata.image.topics_by_name
    topics = []
    wanted = []
    for topic in request.topics:
        existing = known[topic.name].partitions if topic.name in known else {}
        rows, accepted = [], []
        for entry in topic.partitions:
            row = types.OffsetDeleteResponsePartition(
                partition_index=entry.partition_index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            rows.append(row)
            if row.partition_index in existing:
                accepted.append(row)
            yield STEP
        topics.append(types.OffsetDeleteResponseTopic(name=topic.name, partitions=rows))
        if accepted:
            wanted.append((topic.name, accepted))
        yield STEP
    return types.OffsetDeleteResponse(topics=topics), wanted
