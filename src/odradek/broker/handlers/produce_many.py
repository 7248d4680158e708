"""Produce requests that name more partitions than are written in one go: the same steps, some at a time.

Each partition's records are one append, whatever else its request brings. Whatever may have changed since a
part of the request was looked at (who leads, whether its transaction goes on) is looked at again with the
append. The records were copied when the request was decoded, and belong to it.
"""

from typing import Any

from odradek.broker.dispatch import RequestContext, serves_long
from odradek.broker.handlers.produce import handle_part
from odradek.broker.produce_requests import ACKS_NONE, PendingProduce
from odradek.broker.produce_transactions import is_transactional
from odradek.core.errors import ErrorCode, KafkaError
from odradek.runtime.slices import STEP, Paced
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types
from odradek.wire.produce import PartitionProduced, ProduceRequest

_TOPIC_IDS_FROM = 13
_WRITE_CALLS = 80  # for one partition


@serves_long(ApiKey.PRODUCE)
async def produce_many(ctx: RequestContext, message: Any) -> Any:
    assert ctx.place is not None
    slices = ctx.node.slices
    at_a_time = max(1, slices.few_entries // 4)
    parts = await slices.run(_parts(ctx, message, at_a_time))
    pace = slices.pacer()
    waits = []
    for part in parts:
        await pace(at_a_time * _WRITE_CALLS)
        await handle_part(ctx.node, part)
        waits.append(part.when_settled())
    for wait in waits:
        await wait
    if message.acks == ACKS_NONE:
        ctx.connection.fulfil(ctx.place)
        for part in parts:
            part.raise_if_refused()
        return None
    return await slices.run(_response(ctx, message, parts))


def _parts(ctx: RequestContext, message: Any, at_a_time: int) -> Paced[list[PendingProduce]]:
    """The request as several, each of a few partitions."""
    place = ctx.place
    assert place is not None
    by_id = ctx.api_version >= _TOPIC_IDS_FROM
    parts: list[PendingProduce] = []
    topics: list[Any] = []
    count = 0
    transactional = False

    def close() -> None:
        parsed = ProduceRequest(message.transactional_id, message.acks, message.timeout, topics)
        parts.append(PendingProduce(ctx.connection, place.header, parsed))

    for topic in message.topic_data:
        rows: list[tuple[int, memoryview | None]] = []
        topics.append((topic.topic_id if by_id else topic.name, rows))
        yield STEP
        for entry in topic.partition_data:
            records = None if entry.records is None else memoryview(bytearray(entry.records))
            transactional = transactional or is_transactional(records)
            rows.append((entry.index, records))
            count += 1
            yield STEP
            if count == at_a_time:
                close()
                rows, count = [], 0
                topics = [(topics[-1][0], rows)]
    close()
    if transactional and message.transactional_id is None:
        yield from _refuse(parts, KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    return parts


def _refuse(parts: list[PendingProduce], error: KafkaError) -> Paced[None]:
    for part in parts:
        for entry in part.entries:
            entry.outcome = error
        yield STEP


def _response(ctx: RequestContext, message: Any, parts: list[PendingProduce]) -> Paced[Any]:
    """In the order of the request; a topic that lies in several parts is one again."""
    types = response_types(ApiKey.PRODUCE)
    answers = (entry.answer() for part in parts for entry in part.entries)
    responses = []
    for topic in message.topic_data:
        rows = []
        for _ in topic.partition_data:
            rows.append(_row(types, next(answers)))
            yield 2 * STEP
        responses.append(
            types.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=rows)
        )
        yield STEP
    return types.ProduceResponse(responses=responses)


def _row(types: Any, produced: PartitionProduced) -> Any:
    row = types.PartitionProduceResponse(
        index=produced.partition_index,
        error_code=produced.error_code,
        base_offset=produced.base_offset,
        log_append_time=produced.log_append_time_ms,
        log_start_offset=produced.log_start_offset,
        error_message=produced.error_message,
        record_errors=[
            types.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
            for index, text in produced.record_errors
        ],
    )
    if produced.current_leader is not None:
        leader_id, leader_epoch = produced.current_leader
        row.current_leader = types.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
    return row
