"""FindCoordinator v0-v6: the broker that coordinates a group or a transactional id, from the hash of its
name.

Deviation: if the internal topic does not exist yet, it is created, and the answer waits for it. So the first
answer already names the coordinator. Apache answers COORDINATOR_NOT_AVAILABLE, and the client retries. A key
that occurs twice is answered once.
"""

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.broker.topics import TopicCreation
from odradek.coordinators.groups.coordinator import GroupCoordinator
from odradek.coordinators.transactions.coordinator import TransactionCoordinator
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from odradek.metadata.publisher import MetadataPublisher
from odradek.runtime.slices import STEP, Paced, Slices
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.find_coordinator import FindCoordinatorRequest

GROUP, TRANSACTION, SHARE = range(3)
_TOPICS = {GROUP: GROUP_METADATA_TOPIC, TRANSACTION: TRANSACTION_STATE_TOPIC}
_LAST_VERSION_WITH_ONE_KEY = 3
_BAD_KEY_TYPE = (
    "This most likely occurs because of a request being malformed by the client library or the message was "
    "sent to an incompatible broker. See the broker logs for more details."
)
_NOT_AVAILABLE = "The coordinator is not available."


class Needs(Protocol):
    groups: GroupCoordinator
    internal_topics: TopicCreation
    metadata: MetadataPublisher
    slices: Slices
    transactions: TransactionCoordinator


class _Refusal(NamedTuple):
    code: ErrorCode
    message: str


@serves(ApiKey.FIND_COORDINATOR, min_version=0, max_version=6)
async def find_coordinator(ctx: RequestContext[Needs], request: "FindCoordinatorRequest") -> Any:
    topic = _TOPICS.get(request.key_type)
    refusal: _Refusal | None = None
    if topic is None:
        refusal = _Refusal(ErrorCode.INVALID_REQUEST, "" if request.key_type == SHARE else _BAD_KEY_TYPE)
    elif request.coordinator_keys and topic not in ctx.services.metadata.image.topics_by_name:
        try:
            await ctx.services.internal_topics.ensure(topic)
        except KafkaError:
            refusal = _Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, _NOT_AVAILABLE)
    return await ctx.services.slices.run(_answer(ctx, request, topic, refusal))


def _leader(ctx: RequestContext[Needs], topic: str, key: str) -> tuple[int, str, int] | _Refusal:
    """(node id, host, port) on the client's listener. The image may not have a new topic yet."""
    services, image = ctx.services, ctx.services.metadata.image
    coordinator = services.groups if topic == GROUP_METADATA_TOPIC else services.transactions
    known = image.topics_by_name.get(topic)
    partition = None if known is None else known.partitions.get(coordinator.partition_for(key))
    broker = None if partition is None else image.brokers.get(partition.leader)
    if broker is None or broker.fenced or ctx.listener not in broker.endpoints:
        return _Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, _NOT_AVAILABLE)
    host, port = broker.endpoints[ctx.listener][:2]
    return broker.id, host, port


def _answer(
    ctx: RequestContext[Needs], request: "FindCoordinatorRequest", topic: str | None, refusal: _Refusal | None
) -> Paced[Any]:
    types = responses.find_coordinator
    one_key = ctx.api_version <= _LAST_VERSION_WITH_ONE_KEY
    coordinators = []
    for key in dict.fromkeys(request.coordinator_keys):
        yield STEP
        where: tuple[int, str, int] | _Refusal | None = refusal
        if where is None:
            assert topic is not None
            where = _leader(ctx, topic, key)
        row = types.Coordinator(key=key, node_id=-1, host="", port=-1)
        if isinstance(where, _Refusal):
            row.error_code = where.code
            keeps_message = one_key or where.code is not ErrorCode.COORDINATOR_NOT_AVAILABLE
            row.error_message = where.message if keeps_message else ""
        else:
            row.node_id, row.host, row.port = where
            row.error_message = "NONE" if one_key else ""
        coordinators.append(row)
    return types.FindCoordinatorResponse(coordinators=coordinators)
