"""AddOffsetsToTxn v0-v4: adds the partition of a group's offsets to a transaction."""

from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.broker.handlers.end_txn import told
from odradek.coordinators.groups.coordinator import GroupCoordinator
from odradek.coordinators.transactions.coordinator import TransactionCoordinator
from odradek.core.types import GROUP_METADATA_TOPIC, ProducerIdAndEpoch, TopicPartition
from odradek.runtime.reply import Reply
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.add_offsets_to_txn import AddOffsetsToTxnRequest

_FIRST_WITH_ABORTABLE = 4


class Needs(Protocol):
    groups: GroupCoordinator
    transactions: TransactionCoordinator


@serves(ApiKey.ADD_OFFSETS_TO_TXN, min_version=0, max_version=4)
def add_offsets_to_txn(ctx: RequestContext[Needs], request: "AddOffsetsToTxnRequest") -> Reply[Any]:
    types = responses.add_offsets_to_txn
    services = ctx.services
    partition = TopicPartition(GROUP_METADATA_TOPIC, services.groups.partition_for(request.group_id))
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    reply = services.transactions.add_partitions(
        request.transactional_id, producer, [partition], 0, ctx.connection.number
    )
    return reply.otherwise(lambda e: told(e.code, ctx.api_version, _FIRST_WITH_ABORTABLE)).then(
        lambda code: types.AddOffsetsToTxnResponse(error_code=code)
    )
