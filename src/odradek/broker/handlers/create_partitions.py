"""CreatePartitions v0-v3: the controller decides. The answer leaves when the partitions are committed.

Deviation: a topic with more than 10,000 new partitions gets POLICY_VIOLATION. Apache answers
UNKNOWN_SERVER_ERROR and creates some of them.
"""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.core.errors import KafkaError
from odradek.metadata.channel import ControllerChannel
from odradek.runtime.slices import STEP, Paced, Slices
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.create_partitions import CreatePartitionsRequest


class Needs(Protocol):
    controller: ControllerChannel
    slices: Slices


@serves(ApiKey.CREATE_PARTITIONS, min_version=0, max_version=3)
async def create_partitions(ctx: RequestContext[Needs], request: "CreatePartitionsRequest") -> Any:
    try:
        return await ctx.services.controller.call(ApiKey.CREATE_PARTITIONS, request, ctx.requester)
    except KafkaError as e:
        return await ctx.services.slices.run(_refused(request, e))


def _refused(request: "CreatePartitionsRequest", error: KafkaError) -> Paced[Any]:
    types = responses.create_partitions
    results = {}
    for topic in request.topics:
        results[topic.name] = types.CreatePartitionsTopicResult(
            name=topic.name, error_code=error.code, error_message=error.message
        )
        yield STEP
    return types.CreatePartitionsResponse(results=list(results.values()))
