"""CreateTopics v2-v7: the controller decides. The answer leaves when the topics are committed.

Deviation: of two names in one request that differ only in '.' and '_', only one is created.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.core.errors import KafkaError
from odradek.metadata.channel import ControllerChannel
from odradek.runtime.slices import STEP, Paced, Slices
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.create_topics import CreateTopicsRequest


class Needs(Protocol):
    controller: ControllerChannel
    slices: Slices


@serves(ApiKey.CREATE_TOPICS, min_version=2, max_version=7)
async def create_topics(ctx: RequestContext[Needs], request: "CreateTopicsRequest") -> Any:
    services = ctx.services
    try:
        return await services.controller.call(ApiKey.CREATE_TOPICS, request, ctx.requester)
    except KafkaError as e:
        return await services.slices.run(_refused(request.topics, e))


def _refused(topics: Sequence[Any], error: KafkaError) -> Paced[Any]:
    types = responses.create_topics
    results = {}
    for topic in topics:
        results[topic.name] = types.CreatableTopicResult(
            name=topic.name, error_code=error.code, error_message=error.message, configs=()
        )
        yield STEP
    return types.CreateTopicsResponse(topics=list(results.values()))
