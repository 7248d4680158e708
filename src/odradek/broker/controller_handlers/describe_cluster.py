"""DescribeCluster v0-v2 on a controller listener: the controllers (endpoint type 2), and who is active."""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.authorized import CLUSTER_OPERATIONS, NOT_ASKED
from odradek.broker.dispatch import RequestContext, serves_controller
from odradek.broker.handlers.describe_cluster import BROKERS, CONTROLLERS
from odradek.core.errors import ErrorCode
from odradek.metadata.controllers import controllers_on
from odradek.metadata.publisher import MetadataPublisher
from odradek.raft.driver import RaftDriver
from odradek.runtime.reply import Reply
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.describe_cluster import DescribeClusterRequest


class Needs(Protocol):
    cluster_id: str
    metadata: MetadataPublisher
    raft: RaftDriver


@serves_controller(ApiKey.DESCRIBE_CLUSTER, min_version=0, max_version=2)
def describe_cluster(ctx: RequestContext[Needs], request: "DescribeClusterRequest") -> Reply[Any]:
    types = responses.describe_cluster
    if request.endpoint_type != CONTROLLERS:
        is_known = request.endpoint_type == BROKERS
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE if is_known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        message = (
            "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of type BROKER"
            if is_known
            else f"Unsupported endpoint type {request.endpoint_type}"
        )
        return Reply(types.DescribeClusterResponse(error_code=code, error_message=message))
    controllers = controllers_on(ctx.services.metadata.image, ctx.listener)
    response = types.DescribeClusterResponse(
        endpoint_type=CONTROLLERS,
        cluster_id=ctx.services.cluster_id,
        controller_id=ctx.services.raft.leader_id,
        brokers=[
            types.DescribeClusterBroker(broker_id=n, host=endpoint.host, port=endpoint.port)
            for n, endpoint in controllers.items()
        ],
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )
    return Reply(response)
