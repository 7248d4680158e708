"""CreatePartitions v0-v3: decided by the controller, answered once the partitions are committed.

Deviation: a request for more than 10,000 new partitions is refused as a whole topic with POLICY_VIOLATION;
Apache answers UNKNOWN_SERVER_ERROR and creates some of them.
"""

from typing import Any

from odradek.broker.dispatch import RequestContext, serves
from odradek.core.errors import KafkaError
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types


@serves(ApiKey.CREATE_PARTITIONS, min_version=0, max_version=3)
async def create_partitions(ctx: RequestContext, request: Any) -> Any:
    try:
        return await ctx.node.controller.call(ApiKey.CREATE_PARTITIONS, request)
    except KafkaError as e:
        types = response_types(ApiKey.CREATE_PARTITIONS)
        return types.CreatePartitionsResponse(
            results=[
                types.CreatePartitionsTopicResult(name=name, error_code=e.code, error_message=e.message)
                for name in dict.fromkeys(topic.name for topic in request.topics)
            ]
        )
