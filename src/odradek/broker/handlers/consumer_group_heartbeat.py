"""ConsumerGroupHeartbeat v0-v1: a member joins, stays in and leaves a consumer group (KIP-848).

Since v1 a client chooses its own member id and may subscribe by regular expression. UNSUPPORTED_VERSION
without `group.version` 1. Deviations: regular expressions of more than 10,000 states are refused, and members
with more than MAX_TOPICS topics.
"""

from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from odradek.broker.dispatch import RequestContext, serves
from odradek.coordinators.groups.commands import ConsumerHeartbeat
from odradek.coordinators.groups.consumer.heartbeating import JOINING
from odradek.coordinators.groups.consumer.member import LEFT, LEFT_FOR_A_WHILE, NO_REBALANCE_TIMEOUT
from odradek.coordinators.groups.consumer.partition_maps import ENTRIES_PER_CALL
from odradek.coordinators.groups.coordinator import GroupCoordinator
from odradek.coordinators.groups.replies import ConsumerGroupHeartbeatResponse
from odradek.core.errors import ErrorCode
from odradek.runtime.slices import FEW, Paced, Slices
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

_FIRST_WITH_OWN_IDS = 1
MAX_TOPICS = 10_000
_JAVA_SPACE = "".join(map(chr, range(33)))


class Needs(Protocol):
    groups: GroupCoordinator
    slices: Slices


@serves(ApiKey.CONSUMER_GROUP_HEARTBEAT, min_version=0, max_version=1)
async def consumer_group_heartbeat(
    ctx: RequestContext[Needs], request: "ConsumerGroupHeartbeatRequest"
) -> Any:
    if not ctx.services.groups.serves_consumer_groups:
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    trouble = _trouble(request, ctx.api_version)
    if trouble is not None:
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=trouble)
    groups = ctx.services.groups
    owned = None
    if request.topic_partitions is not None:
        owned = await ctx.services.slices.run(_owned(request.topic_partitions))
    return await groups.consumer_heartbeat(
        ConsumerHeartbeat(
            group_id=request.group_id,
            member_id=request.member_id,
            member_epoch=request.member_epoch,
            instance_id=request.instance_id,
            rack_id=request.rack_id,
            rebalance_timeout_ms=request.rebalance_timeout,
            subscribed_topic_names=request.subscribed_topic_names,
            subscribed_topic_regex=request.subscribed_topic_regex,
            server_assignor=request.server_assignor,
            owned=owned,
            client_id=ctx.client_id or "",
            client_host=ctx.client_host,
            new_member_id=groups.new_consumer_id(),
        )
    )


def _owned(rows: Any) -> Paced[dict[UUID, frozenset[int]]]:
    """The owned partitions by topic. Rows of the same topic are merged."""
    owned: dict[UUID, frozenset[int]] = {}
    for row in rows:
        before = owned.get(row.topic_id)
        partitions = frozenset(row.partitions)
        owned[row.topic_id] = partitions if before is None else before | partitions
        yield 2 * FEW + (len(partitions) + len(before or ())) // ENTRIES_PER_CALL
    return owned


def _trouble(request: "ConsumerGroupHeartbeatRequest", version: int) -> str | None:
    """Why a request is invalid, independent of the group; None if it is valid."""
    epoch = request.member_epoch
    if max(len(request.subscribed_topic_names or ()), len(request.topic_partitions or ())) > MAX_TOPICS:
        return f"A member may name {MAX_TOPICS} topics at most."
    if (version >= _FIRST_WITH_OWN_IDS or epoch > JOINING or epoch == LEFT) and _is_blank(request.member_id):
        return "MemberId can't be empty."
    for name, text in (
        ("GroupId", request.group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    ):
        if text is not None and _is_blank(text):
            return f"{name} can't be empty."
    if epoch == JOINING:
        return _trouble_in_joining(request)
    if epoch == LEFT_FOR_A_WHILE and request.instance_id is None:
        return "InstanceId can't be null."
    return "MemberEpoch is invalid." if epoch < LEFT_FOR_A_WHILE else None


def _trouble_in_joining(request: "ConsumerGroupHeartbeatRequest") -> str | None:
    if request.rebalance_timeout == NO_REBALANCE_TIMEOUT:
        return "RebalanceTimeoutMs must be provided in first request."
    if request.topic_partitions is None or request.topic_partitions:
        return "TopicPartitions must be empty when (re-)joining."
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    return None


def _is_blank(text: str) -> bool:
    return not text.strip(_JAVA_SPACE)
