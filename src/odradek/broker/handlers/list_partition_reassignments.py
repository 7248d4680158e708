"""ListPartitionReassignments v0: the partitions that are being reassigned, from this broker's metadata.

Odradek starts none yet, but lists those in the metadata of a directory from Apache. Other partitions, and
unknown ones, are omitted without an error. null asks for all topics, an empty list for none.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.metadata.image import MetadataImage, PartitionRegistration
from odradek.metadata.publisher import MetadataPublisher
from odradek.runtime.slices import FEW, STEP, Paced
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.list_partition_reassignments import ListPartitionReassignmentsRequest

_Row = tuple[str, int, PartitionRegistration | None]


class Needs(Protocol):
    metadata: MetadataPublisher


@serves(ApiKey.LIST_PARTITION_REASSIGNMENTS, min_version=0, max_version=0)
def list_partition_reassignments(
    ctx: RequestContext[Needs], request: "ListPartitionReassignmentsRequest"
) -> Paced[Any]:
    types = responses.list_partition_reassignments
    image = ctx.services.metadata.image
    topics: dict[str, list[Any]] = {}
    for name, index, partition in _all(image) if request.topics is None else _named(image, request.topics):
        yield FEW
        if partition is None or not (partition.adding or partition.removing):
            continue
        topics.setdefault(name, []).append(
            types.OngoingPartitionReassignment(
                partition_index=index,
                replicas=partition.replicas,
                adding_replicas=partition.adding,
                removing_replicas=partition.removing,
            )
        )
        yield STEP
    rows = [types.OngoingTopicReassignment(name=name, partitions=found) for name, found in topics.items()]
    return types.ListPartitionReassignmentsResponse(topics=rows)


def _all(image: MetadataImage) -> Iterator[_Row]:
    for topic in image.topics_by_name.values():
        for index, partition in topic.partitions.items():
            yield topic.name, index, partition


def _named(image: MetadataImage, asked: Any) -> Iterator[_Row]:
    for row in asked:
        topic = image.topics_by_name.get(row.name)
        if topic is None:
            yield row.name, 0, None  # one step each: there may be many
            continue
        for index in row.partition_indexes:
            yield row.name, index, topic.partitions.get(index)
