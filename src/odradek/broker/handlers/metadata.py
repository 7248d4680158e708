"""Metadata v0-v13: brokers, topics, leaders.

Deviation: if a topic is created automatically, the answer waits for it, so that it already names the leaders.
Apache answers UNKNOWN_TOPIC_OR_PARTITION, and the client retries. One request creates at most MAX_CREATED
topics; the others are answered as in Apache.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from odradek.broker.authorized import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from odradek.broker.dispatch import RequestContext, serves
from odradek.broker.faults import PlantedErrors
from odradek.broker.topics import TopicCreation
from odradek.core.configs import NodeConfig
from odradek.core.errors import ErrorCode
from odradek.core.types import INTERNAL_TOPICS, NO_LEADER, ZERO_UUID
from odradek.metadata.availability import leader_to_name, offline_replicas, reachable_brokers
from odradek.metadata.publisher import MetadataPublisher
from odradek.metadata.topic_names import why_unknown
from odradek.runtime.slices import STEP, Paced, Slices
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.metadata.image import MetadataImage, PartitionRegistration, TopicImage
    from odradek.wire.requests.metadata import MetadataRequest, MetadataRequestTopic

# v0 has only reachable replicas, and an error if there are others.
UNREACHABLE_REPLICAS_FROM = 1
LISTENER_NOT_FOUND_FROM = 6
IDS_FROM = 12
# Each partition is a directory with files. Apache has no such limit.
MAX_CREATED = 100
PARTITION_STEP = 30


class Needs(Protocol):
    cluster_id: str
    config: NodeConfig
    faults: PlantedErrors
    internal_topics: TopicCreation
    metadata: MetadataPublisher
    slices: Slices


@serves(ApiKey.METADATA, min_version=0, max_version=13)
async def metadata(ctx: RequestContext[Needs], request: "MetadataRequest") -> Any:
    faults, slices = ctx.services.faults, ctx.services.slices
    planted = faults.take(ApiKey.METADATA) if faults.active else None
    creation_errors: dict[str, ErrorCode] = {}
    if planted is None and request.topics and _may_create(ctx, request):
        missing = await slices.run(_missing(ctx, request))
        if missing:
            creation_errors = await ctx.services.internal_topics.auto_create(missing)
    response = await slices.run(_answer(ctx, request, creation_errors))
    if planted is not None:
        response.error_code = planted
        for topic in response.topics:
            topic.error_code, topic.partitions = planted, []
    return response


def _may_create(ctx: RequestContext[Needs], request: "MetadataRequest") -> bool:
    return request.allow_auto_topic_creation and ctx.services.config.auto_create_topics_enable


def _missing(ctx: RequestContext[Needs], request: "MetadataRequest") -> Paced[list[str]]:
    """The first missing topics that can be created. The client retries for the others."""
    known = ctx.services.metadata.image.topics_by_name
    missing: dict[str, None] = {}
    for topic in request.topics or ():
        name = topic.name
        yield STEP
        if name is None or topic.topic_id != ZERO_UUID:
            if ctx.api_version < IDS_FROM:
                return []  # the whole request is refused
        elif name not in known and why_unknown(name) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            missing[name] = None
            if len(missing) == MAX_CREATED:
                break
    return list(missing)


def _answer(
    ctx: RequestContext[Needs], request: "MetadataRequest", creation_errors: dict[str, ErrorCode]
) -> Paced[Any]:
    wanted, image = request.topics, ctx.services.metadata.image
    if wanted is None or (ctx.api_version == 0 and not wanted):
        return (yield from _describe(ctx, request, image, image.topics_by_name.values(), []))
    types = responses.metadata
    found: dict[str, TopicImage] = {}
    failed = []
    asked: set[tuple[str | None, UUID]] = set()
    for topic in wanted:
        yield STEP
        by_id = topic.name is None or topic.topic_id != ZERO_UUID
        if by_id and ctx.api_version < IDS_FROM:
            return (yield from _refuse_ids(wanted))
        if (topic.name, topic.topic_id) in asked:
            continue
        asked.add((topic.name, topic.topic_id))
        entry = (
            image.topics_by_id.get(topic.topic_id) if by_id else image.topics_by_name.get(topic.name or "")
        )
        if entry is not None:
            found[entry.name] = entry
        elif by_id:
            failed.append(
                types.MetadataResponseTopic(
                    error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic.topic_id
                )
            )
        else:
            assert topic.name is not None  # otherwise the request has its id
            code = creation_errors.get(topic.name) or why_unknown(topic.name)
            internal = topic.name in INTERNAL_TOPICS
            failed.append(
                types.MetadataResponseTopic(
                    error_code=code, name=topic.name, topic_id=ZERO_UUID, is_internal=internal
                )
            )
    return (yield from _describe(ctx, request, image, found.values(), failed))


def _refuse_ids(wanted: "Sequence[MetadataRequestTopic]") -> Paced[Any]:
    """v10 and v11 have a field for topic ids, but must not use it."""
    types = responses.metadata
    refused = []
    for topic in wanted:
        refused.append(
            types.MetadataResponseTopic(
                error_code=ErrorCode.INVALID_REQUEST, name=topic.name or "", topic_id=topic.topic_id
            )
        )
        yield STEP
    return types.MetadataResponse(cluster_id=None, controller_id=-1, topics=refused)


def _describe(
    ctx: RequestContext[Needs],
    request: "MetadataRequest",
    image: "MetadataImage",
    topics: "Iterable[TopicImage]",
    failed: list[Any],
) -> Paced[Any]:
    types = responses.metadata
    alive = [image.brokers[n] for n in reachable_brokers(image, image.brokers, ctx.listener)]
    brokers = [
        types.MetadataResponseBroker(
            node_id=b.id, host=b.endpoints[ctx.listener][0], port=b.endpoints[ctx.listener][1], rack=b.rack
        )
        for b in alive
    ]
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED
    rows = []
    for topic in topics:
        rows.append((yield from _topic(ctx, image, topic, operations)))
        yield STEP
    cluster = getattr(request, "include_cluster_authorized_operations", False)
    return types.MetadataResponse(
        brokers=brokers,
        cluster_id=ctx.services.cluster_id,
        controller_id=min((b.id for b in alive), default=-1),
        topics=rows + failed,
        cluster_authorized_operations=CLUSTER_OPERATIONS if cluster else NOT_ASKED,
    )


def _topic(
    ctx: RequestContext[Needs], image: "MetadataImage", topic: "TopicImage", operations: int
) -> Paced[Any]:
    partitions = []
    for index, partition in topic.partitions.items():
        partitions.append(_partition(ctx, image, index, partition))
        yield PARTITION_STEP
    return responses.metadata.MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=partitions,
        topic_authorized_operations=operations,
    )


def _partition(
    ctx: RequestContext[Needs], image: "MetadataImage", index: int, partition: "PartitionRegistration"
) -> Any:
    leader = leader_to_name(image, partition, ctx.listener)
    replicas, isr = list(partition.replicas), list(partition.isr)
    if ctx.api_version < UNREACHABLE_REPLICAS_FROM:
        replicas = reachable_brokers(image, replicas, ctx.listener)
        isr = reachable_brokers(image, isr, ctx.listener)
    if leader == NO_LEADER:
        registered = partition.leader in image.brokers
        names_listener = registered and ctx.api_version >= LISTENER_NOT_FOUND_FROM
        error = ErrorCode.LISTENER_NOT_FOUND if names_listener else ErrorCode.LEADER_NOT_AVAILABLE
    elif len(replicas) < len(partition.replicas) or len(isr) < len(partition.isr):
        error = ErrorCode.REPLICA_NOT_AVAILABLE
    else:
        error = ErrorCode.NONE
    return responses.metadata.MetadataResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=offline_replicas(image, partition, ctx.listener),
    )
