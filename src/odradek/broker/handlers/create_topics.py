"""CreateTopics v2-v7: the controller decides. The answer leaves when the topics are committed.

Deviations: of two names in one request that differ only in '.' and '_', only one is created. In a cluster of
several brokers this broker refuses more than one replica: it does not replicate yet.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.broker.topics import NOT_REPLICATED, USE_DEFAULT
from odradek.core.configs import NodeConfig
from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.channel import ControllerChannel
from odradek.metadata.publisher import MetadataPublisher
from odradek.runtime.slices import STEP, Paced, Slices
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.create_topics import CreateTopicsRequest


class Needs(Protocol):
    config: NodeConfig
    controller: ControllerChannel
    metadata: MetadataPublisher
    slices: Slices


@serves(ApiKey.CREATE_TOPICS, min_version=2, max_version=7)
async def create_topics(ctx: RequestContext[Needs], request: "CreateTopicsRequest") -> Any:
    services = ctx.services
    refused: list[Any] = []
    if len(services.metadata.image.brokers) > 1:
        refused = await services.slices.run(_replicated(ctx, request))
    if refused:
        names = {topic.name for topic in refused}
        request.topics = [topic for topic in request.topics if topic.name not in names]
    try:
        response = await services.controller.call(ApiKey.CREATE_TOPICS, request, ctx.requester)
    except KafkaError as e:
        response = await services.slices.run(_refused(request.topics, e))
    if refused:
        error = KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, NOT_REPLICATED)
        more = await services.slices.run(_refused(refused, error))
        response.topics = [*response.topics, *more.topics]
    return response


def _replicated(ctx: RequestContext[Needs], request: "CreateTopicsRequest") -> Paced[list[Any]]:
    """The topics that ask for more than one replica."""
    default = ctx.services.config.default_replication_factor
    found = []
    for topic in request.topics:
        factor = default if topic.replication_factor == USE_DEFAULT else topic.replication_factor
        given = max((len(assignment.broker_ids) for assignment in topic.assignments), default=0)
        if (given if topic.assignments else factor) > 1:
            found.append(topic)
        yield STEP
    return found


def _refused(topics: Sequence[Any], error: KafkaError) -> Paced[Any]:
    types = responses.create_topics
    results = {}
    for topic in topics:
        results[topic.name] = types.CreatableTopicResult(
            name=topic.name, error_code=error.code, error_message=error.message, configs=()
        )
        yield STEP
    return types.CreateTopicsResponse(topics=list(results.values()))
