"""CreateTopics v2-v7: decided by the controller, answered once the topics are committed.

Deviation: two names of one request that differ only in '.' and '_' are not both created.
"""

from typing import Any

from odradek.broker.dispatch import RequestContext, serves
from odradek.core.errors import KafkaError
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types


@serves(ApiKey.CREATE_TOPICS, min_version=2, max_version=7)
async def create_topics(ctx: RequestContext, request: Any) -> Any:
    try:
        return await ctx.node.controller.call(ApiKey.CREATE_TOPICS, request)
    except KafkaError as e:
        types = response_types(ApiKey.CREATE_TOPICS)
        return types.CreateTopicsResponse(
            topics=[
                types.CreatableTopicResult(name=name, error_code=e.code, error_message=e.message, configs=())
                for name in dict.fromkeys(topic.name for topic in request.topics)
            ]
        )
