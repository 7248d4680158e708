"""DescribeCluster v0-v2: the brokers that are reachable on the client's listener."""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.authorized import CLUSTER_OPERATIONS, NOT_ASKED
from odradek.broker.dispatch import RequestContext, serves
from odradek.core.errors import ErrorCode
from odradek.metadata.publisher import MetadataPublisher
from odradek.runtime.reply import Reply
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.describe_cluster import DescribeClusterRequest

BROKERS, CONTROLLERS = 1, 2


class Needs(Protocol):
    cluster_id: str
    metadata: MetadataPublisher


@serves(ApiKey.DESCRIBE_CLUSTER, min_version=0, max_version=2)
def describe_cluster(ctx: RequestContext[Needs], request: "DescribeClusterRequest") -> Reply[Any]:
    types = responses.describe_cluster
    if request.endpoint_type == CONTROLLERS:
        return _refused(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of "
            "type CONTROLLER",
        )
    if request.endpoint_type != BROKERS:
        return _refused(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            f"Unsupported endpoint type {request.endpoint_type}",
        )
    image = ctx.services.metadata.image
    reachable = [b for b in image.brokers.values() if ctx.listener in b.endpoints]
    alive = [b.id for b in reachable if not b.fenced]
    asked = request.include_cluster_authorized_operations
    response = types.DescribeClusterResponse(
        endpoint_type=BROKERS,
        cluster_id=ctx.services.cluster_id,
        controller_id=min(alive, default=-1),
        brokers=[
            types.DescribeClusterBroker(
                broker_id=b.id,
                host=b.endpoints[ctx.listener].host,
                port=b.endpoints[ctx.listener].port,
                rack=b.rack,
                is_fenced=b.fenced,
            )
            for b in reachable
            if not b.fenced or request.include_fenced_brokers
        ],
        cluster_authorized_operations=CLUSTER_OPERATIONS if asked else NOT_ASKED,
    )
    return Reply(response)


def _refused(code: ErrorCode, message: str) -> Reply[Any]:
    types = responses.describe_cluster
    return Reply(types.DescribeClusterResponse(error_code=code, error_message=message))
