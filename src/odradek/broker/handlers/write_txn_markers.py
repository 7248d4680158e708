"""WriteTxnMarkers v1-v2: a coordinator brings the end of transactions to partitions that this node leads."""

from typing import Any

from odradek.broker.dispatch import RequestContext, serves
from odradek.broker.txn_markers import write_markers
from odradek.coordinators.transactions.commands import WriteMarkers
from odradek.coordinators.transactions.metadata import Identity
from odradek.core.types import TopicPartition
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types


@serves(ApiKey.WRITE_TXN_MARKERS, min_version=1, max_version=2)
async def write_txn_markers(ctx: RequestContext, request: Any) -> Any:
    types = response_types(ApiKey.WRITE_TXN_MARKERS)
    results = []
    for marker in request.markers:
        partitions = [TopicPartition(t.name, index) for t in marker.topics for index in t.partition_indexes]
        if not partitions:
            continue  # not answered either
        codes = await write_markers(
            ctx.node,
            WriteMarkers(
                "",
                Identity(marker.producer_id, marker.producer_epoch),
                marker.transaction_result,
                marker.coordinator_epoch,
                marker.transaction_version,
                tuple(partitions),
            ),
            partitions,
        )
        topics = [
            types.WritableTxnMarkerTopicResult(
                name=t.name,
                partitions=[
                    types.WritableTxnMarkerPartitionResult(
                        partition_index=index, error_code=codes[TopicPartition(t.name, index)]
                    )
                    for index in t.partition_indexes
                ],
            )
            for t in marker.topics
        ]
        results.append(types.WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics))
    return types.WriteTxnMarkersResponse(markers=results)
