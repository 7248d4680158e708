"""WriteTxnMarkers v1-v2: a coordinator writes transaction markers to partitions that this node leads."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.coordinators.transactions.commands import WriteMarkers
from odradek.coordinators.transactions.marker_writer import MarkerWriter
from odradek.coordinators.transactions.markers import Outcomes
from odradek.core.types import ProducerIdAndEpoch, TopicPartition
from odradek.runtime.slices import FEW, STEP, Paced, Slices
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.write_txn_markers import WriteTxnMarkersRequest

AT_A_TIME = 8
WRITE_CALLS = 100


class Needs(Protocol):
    marker_writer: MarkerWriter
    slices: Slices


@serves(ApiKey.WRITE_TXN_MARKERS, min_version=1, max_version=2)
async def write_txn_markers(ctx: RequestContext[Needs], request: "WriteTxnMarkersRequest") -> Any:
    types = responses.write_txn_markers
    slices = ctx.services.slices
    pace = slices.pacer()
    results = []
    for marker in request.markers:
        await pace(STEP)
        partitions = await slices.run(_partitions(marker.topics))
        if not partitions:
            continue  # no answer either
        markers = WriteMarkers(
            "",
            ProducerIdAndEpoch(marker.producer_id, marker.producer_epoch),
            marker.transaction_result,
            marker.coordinator_epoch,
            marker.transaction_version,
            tuple(partitions),
        )
        outcomes = []
        for start in range(0, len(partitions), AT_A_TIME):
            some = partitions[start : start + AT_A_TIME]
            outcomes.append(ctx.services.marker_writer.write(markers, some))
            await pace(len(some) * WRITE_CALLS)
        codes: Outcomes = {}
        for outcome in outcomes:
            codes.update(await outcome)
            await pace(FEW)  # many may be there already
        results.append(await slices.run(_result(types, marker, codes)))
    return types.WriteTxnMarkersResponse(markers=results)


def _partitions(topics: Sequence[Any]) -> Paced[list[TopicPartition]]:
    """The partitions without duplicates: a second marker would be the same."""
    partitions: dict[TopicPartition, None] = {}
    for topic in topics:
        yield FEW
        for index in topic.partition_indexes:
            partitions[TopicPartition(topic.name, index)] = None
            yield FEW
    return list(partitions)


def _result(types: Any, marker: Any, codes: Outcomes) -> Paced[Any]:
    topics = []
    for topic in marker.topics:
        rows = []
        for index in dict.fromkeys(topic.partition_indexes):
            code = codes[TopicPartition(topic.name, index)]
            rows.append(types.WritableTxnMarkerPartitionResult(partition_index=index, error_code=code))
            yield STEP
        topics.append(types.WritableTxnMarkerTopicResult(name=topic.name, partitions=rows))
        yield STEP
    return types.WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics)
