"""OffsetCommit v2-v10: topics by name up to v9, by id in v10; with a retention time up to v4.

Deviation: partitions are answered in the order of the request. In Apache refused ones come first.
"""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.coordinators.groups.commands import CommitOffsets, OffsetToCommit
from odradek.coordinators.groups.coordinator import GroupCoordinator
from odradek.core.errors import ErrorCode
from odradek.metadata.publisher import MetadataPublisher
from odradek.runtime.reply import Reply, start
from odradek.runtime.slices import FEW, STEP, Paced, Slices, at_once
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.offset_commit import OffsetCommitRequest

_FIRST_WITH_TOPIC_IDS = 10
_FIRST_WITH_UNKNOWN_GROUPS = 9
AT_A_TIME = 16


class Needs(Protocol):
    groups: GroupCoordinator
    metadata: MetadataPublisher
    slices: Slices


@serves(ApiKey.OFFSET_COMMIT, min_version=2, max_version=10)
def offset_commit(ctx: RequestContext[Needs], request: "OffsetCommitRequest") -> Reply[Any]:
    if ctx.place is not None:
        return start(_commit_many(ctx, request), ctx.connection.spawn, "OFFSET_COMMIT")
    response, accepted, command = at_once(_accept(ctx, request))
    if command is None:
        return Reply(response)

    def answer(codes: list[int]) -> Any:
        for row, code in zip(accepted, codes, strict=True):
            row.error_code = code
        return response

    return ctx.services.groups.commit_offsets(command).then(answer)


async def _commit_many(ctx: RequestContext[Needs], request: "OffsetCommitRequest") -> Any:
    response, accepted, command = await ctx.services.slices.run(_accept(ctx, request))
    if command is not None:
        codes = await ctx.services.groups.commit_offsets(command)
        pace = ctx.services.slices.pacer()
        for row, code in zip(accepted, codes, strict=True):
            row.error_code = code
            await pace(FEW)
    return response


def _accept(
    ctx: RequestContext[Needs], request: "OffsetCommitRequest"
) -> Paced[tuple[Any, list[Any], CommitOffsets | None]]:
    """(the response, its open rows, the offsets for the group)."""
    types = responses.offset_commit
    image = ctx.services.metadata.image
    by_id = ctx.api_version >= _FIRST_WITH_TOPIC_IDS
    topics = []
    accepted = []
    offsets = []
    count = 0
    for topic in request.topics:
        found = image.topics_by_id.get(topic.topic_id) if by_id else image.topics_by_name.get(topic.name)
        rows = []
        for entry in topic.partitions:
            row = types.OffsetCommitResponsePartition(partition_index=entry.partition_index)
            rows.append(row)
            if found is None:
                row.error_code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif entry.partition_index not in found.partitions:
                row.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                accepted.append(row)
                offsets.append(
                    OffsetToCommit(
                        found.name,
                        found.id,
                        entry.partition_index,
                        entry.committed_offset,
                        entry.committed_leader_epoch,
                        entry.committed_metadata or "",
                    )
                )
            count += 1
            if not count % AT_A_TIME:
                yield AT_A_TIME * STEP
        topics.append(
            types.OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=rows)
        )
        count += 1
        if not count % AT_A_TIME:
            yield AT_A_TIME * STEP
    command = None
    if offsets:
        command = CommitOffsets(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            offsets,
            retention_time_ms=request.retention_time,
            unknown_group_is_illegal_generation=ctx.api_version < _FIRST_WITH_UNKNOWN_GROUPS,
        )
    return types.OffsetCommitResponse(topics=topics), accepted, command
