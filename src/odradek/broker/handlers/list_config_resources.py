"""ListConfigResources v0-v1: which resources have or can have configs. v0 lists client metrics only."""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.core.errors import ErrorCode
from odradek.metadata.image import (
    RESOURCE_BROKER,
    RESOURCE_BROKER_LOGGER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
    RESOURCE_TOPIC,
    MetadataImage,
)
from odradek.metadata.publisher import MetadataPublisher
from odradek.runtime.slices import STEP, Paced
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.list_config_resources import ListConfigResourcesRequest

_ALL = (RESOURCE_GROUP, RESOURCE_CLIENT_METRICS, RESOURCE_BROKER_LOGGER, RESOURCE_BROKER, RESOURCE_TOPIC)


class Needs(Protocol):
    metadata: MetadataPublisher


@serves(ApiKey.LIST_CONFIG_RESOURCES, min_version=0, max_version=1)
def list_config_resources(ctx: RequestContext[Needs], request: "ListConfigResourcesRequest") -> Paced[Any]:
    types = responses.list_config_resources
    asked = set(request.resource_types) if ctx.api_version else {RESOURCE_CLIENT_METRICS}
    if not asked <= set(_ALL):
        return types.ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    image = ctx.services.metadata.image
    rows = []
    for kind in _ALL:
        if not asked or kind in asked:
            for name in _names(image, kind):
                rows.append(types.ConfigResource(resource_name=name, resource_type=kind))
                yield STEP
    return types.ListConfigResourcesResponse(config_resources=rows)


def _names(image: MetadataImage, kind: int) -> list[str]:
    if kind == RESOURCE_TOPIC:
        return list(image.topics_by_name)
    if kind in (RESOURCE_BROKER, RESOURCE_BROKER_LOGGER):
        return [str(broker.id) for broker in image.brokers.values() if not broker.fenced]
    return [name for resource_type, name in image.configs if resource_type == kind]
