"""What a controller listener answers while its node does not take part in the quorum yet (first_start.py).

All APIs are listed. DescribeCluster names the cluster, or none (empty) while the node is not formatted. A
Fetch of the metadata log hears of epoch 0, if the node has never seen another one. DescribeConfigs tells
which node this is. Everything else is refused with an error that others retry on.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from odradek.broker.apis import ASKED_OF_REPLICA, CONTROLLER_APIS, SERVED_BY_CONTROLLER, ApiTable
from odradek.broker.dispatch import RequestContext, handler_of
from odradek.broker.faults import PlantedErrors
from odradek.broker.handlers.describe_cluster import CONTROLLERS
from odradek.broker.loggers import LogLevels
from odradek.broker.long_requests import LongRequests
from odradek.core.configs import NodeConfig
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_LEADER
from odradek.metadata.publisher import MetadataPublisher
from odradek.raft.answering import request_of, response_of
from odradek.raft.messages import FetchAnswer
from odradek.runtime.reply import Reply
from odradek.runtime.slices import Slices
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

_WHY: Final = "this node waits for the other voters before it takes part in the quorum"


def _describe_cluster(ctx: "RequestContext[WaitingServices]", request: Any) -> Reply[Any]:
    types = responses.describe_cluster
    ctx.services.asked_by.add(ctx.client_id)
    if request.endpoint_type != CONTROLLERS:
        return Reply(types.DescribeClusterResponse(error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE))
    return Reply(
        types.DescribeClusterResponse(
            endpoint_type=CONTROLLERS, cluster_id=ctx.services.cluster_id, controller_id=NO_LEADER
        )
    )


def _fetch(ctx: "RequestContext[WaitingServices]", request: Any) -> Reply[Any]:
    cluster_id = ctx.services.cluster_id or request.cluster_id or ""
    request_of(ApiKey.FETCH, ctx.api_version, request, cluster_id)
    if ctx.services.has_epoch:
        return _refuse_replica(ctx, request)
    answer = FetchAnswer(ErrorCode.NOT_LEADER_OR_FOLLOWER, NO_LEADER, leader_epoch=0)
    return Reply(response_of(ApiKey.FETCH, answer))


def _refuse_replica(ctx: "RequestContext[WaitingServices]", request: Any) -> Reply[Any]:
    raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, _WHY)


def _refuse(ctx: "RequestContext[WaitingServices]", request: Any) -> Reply[Any]:
    raise KafkaError(ErrorCode.NOT_CONTROLLER, _WHY)


def _waiting_apis() -> ApiTable:
    table = ApiTable(SERVED_BY_CONTROLLER, CONTROLLER_APIS.package)
    table.handlers.update(dict.fromkeys(SERVED_BY_CONTROLLER, _refuse))
    table.handlers.update(dict.fromkeys(ASKED_OF_REPLICA, _refuse_replica))
    for key in (ApiKey.API_VERSIONS, ApiKey.DESCRIBE_CONFIGS):
        table.handlers[key] = handler_of(key, CONTROLLER_APIS)
    table.handlers[ApiKey.DESCRIBE_CLUSTER] = _describe_cluster
    table.handlers[ApiKey.FETCH] = _fetch
    return table


@dataclass(slots=True, kw_only=True, eq=False)
class WaitingServices:
    """`asked_by`: the client ids of those that asked for the cluster, maybe this very node."""

    slices: Slices
    metadata: MetadataPublisher
    config: NodeConfig
    log_levels: LogLevels
    cluster_id: str = ""
    has_epoch: bool = False
    asked_by: set[str | None] = field(default_factory=set)
    apis: ApiTable = field(default_factory=_waiting_apis)
    long_requests: LongRequests = field(default_factory=LongRequests)
    faults: PlantedErrors = field(default_factory=PlantedErrors)
