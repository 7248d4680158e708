"""DeleteTopics v1-v6: by name, or since v6 by id. The files are removed after file.delete.delay.ms."""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.channel import ControllerChannel
from odradek.runtime.slices import FEW, STEP, Paced, Slices
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.delete_topics import DeleteTopicsRequest

_KNOWS_DELETION_DISABLED = 3


class Needs(Protocol):
    controller: ControllerChannel
    slices: Slices


@serves(ApiKey.DELETE_TOPICS, min_version=1, max_version=6)
async def delete_topics(ctx: RequestContext[Needs], request: "DeleteTopicsRequest") -> Any:
    try:
        response = await ctx.services.controller.call(ApiKey.DELETE_TOPICS, request, ctx.requester)
    except KafkaError as e:
        return await ctx.services.slices.run(_refused(request, e))
    if ctx.api_version < _KNOWS_DELETION_DISABLED:
        await ctx.services.slices.run(_in_older_words(response.responses))
    return response


def _in_older_words(results: list[Any]) -> Paced[None]:
    for result in results:
        yield FEW
        if result.error_code == ErrorCode.TOPIC_DELETION_DISABLED:
            result.error_code = ErrorCode.INVALID_REQUEST


def _refused(request: "DeleteTopicsRequest", error: KafkaError) -> Paced[Any]:
    types = responses.delete_topics
    results = []
    for topic in request.topics:
        results.append(
            types.DeletableTopicResult(
                name=topic.name, topic_id=topic.topic_id, error_code=error.code, error_message=error.message
            )
        )
        yield STEP
    return types.DeleteTopicsResponse(responses=results)
