"""OffsetDelete v0: remove offsets of topics that the group does not read. No deviation from Apache."""

from typing import Any

from odradek.broker.dispatch import RequestContext, serves
from odradek.coordinators.groups.commands import DeleteOffsets
from odradek.core.errors import ErrorCode
from odradek.runtime.reply import Reply
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types


@serves(ApiKey.OFFSET_DELETE, min_version=0, max_version=0)
def offset_delete(ctx: RequestContext, request: Any) -> Reply[Any]:
    types = response_types(ApiKey.OFFSET_DELETE)
    known = ctx.node.metadata.image.topics_by_name
    topics = []
    wanted = []
    for topic in request.topics:
        existing = known[topic.name].partitions if topic.name in known else {}
        rows = [
            types.OffsetDeleteResponsePartition(
                partition_index=entry.partition_index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            for entry in topic.partitions
        ]
        topics.append(types.OffsetDeleteResponseTopic(name=topic.name, partitions=rows))
        accepted = [row for row in rows if row.partition_index in existing]
        if accepted:
            wanted.append((topic.name, accepted))
    response = types.OffsetDeleteResponse(topics=topics)
    if not wanted:
        return Reply(response)
    command = DeleteOffsets(
        request.group_id, [(name, [row.partition_index for row in rows]) for name, rows in wanted]
    )

    def answer(result: list[list[int]] | ErrorCode) -> Any:
        if isinstance(result, ErrorCode):
            return types.OffsetDeleteResponse(error_code=result)
        for (_, rows), codes in zip(wanted, result, strict=True):
            for row, code in zip(rows, codes, strict=True):
                row.error_code = code
        return response

    return ctx.node.groups.delete_offsets(command).then(answer)
