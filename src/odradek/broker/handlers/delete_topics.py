"""DeleteTopics v1-v6, by name or, from v6 on, by id. The files go file.delete.delay.ms later."""

from typing import Any

from odradek.broker.dispatch import RequestContext, serves
from odradek.core.errors import ErrorCode, KafkaError
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types

_KNOWS_DELETION_DISABLED = 3


@serves(ApiKey.DELETE_TOPICS, min_version=1, max_version=6)
async def delete_topics(ctx: RequestContext, request: Any) -> Any:
    try:
        response = await ctx.node.controller.call(ApiKey.DELETE_TOPICS, request)
    except KafkaError as e:
        types = response_types(ApiKey.DELETE_TOPICS)
        return types.DeleteTopicsResponse(
            responses=[
                types.DeletableTopicResult(
                    name=topic.name, topic_id=topic.topic_id, error_code=e.code, error_message=e.message
                )
                for topic in request.topics
            ]
        )
    if ctx.api_version < _KNOWS_DELETION_DISABLED:
        for result in response.responses:
            if result.error_code == ErrorCode.TOPIC_DELETION_DISABLED:
                result.error_code = ErrorCode.INVALID_REQUEST
    return response
