"""Produce requests with many partitions: handled in parts, a few partitions at a time.

The records of each partition are one append. Each append checks again what may have changed since the part
was placed: the leader, and whether the transaction is still open. The records were copied when the request
was decoded. The answers of a part are encoded before the next part, so that only little memory is used.
"""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from odradek.broker.dispatch import RequestContext, serves_long
from odradek.broker.handlers.produce import Needs, handle_part
from odradek.broker.produce.requests import ACKS_NONE, PendingProduce
from odradek.broker.produce.transactions import is_transactional
from odradek.core.errors import ErrorCode, KafkaError, ProtocolError
from odradek.runtime.reply import Reply
from odradek.runtime.slices import STEP, Paced
from odradek.wire.api_keys import ApiKey
from odradek.wire.produce import ProduceRequest, TopicRecords, encode_partitions, produce_response_in_slices

_TOPIC_IDS_FROM = 13
_WRITE_CALLS = 120  # per partition, including its answer


class _Part:
    """A few partitions of the request, and their answers."""

    __slots__ = ("_pending", "_wait", "answers", "begins")

    def __init__(self, pending: PendingProduce, begins: bool) -> None:
        self._pending: PendingProduce | None = pending
        self._wait: Reply[None] | None = None
        self.begins = begins  # whether its first topic starts in this part
        self.answers: list[bytes] = []  # one per topic

    async def write(self, ctx: RequestContext[Needs], refused: KafkaError | None) -> None:
        pending = self._pending
        assert pending is not None
        if refused is None:
            await handle_part(ctx.services, pending)
        else:
            for entry in pending.entries:
                entry.outcome = refused
        self._wait = pending.when_acknowledged()
        if self._wait.is_ready:
            self._encode()
        else:
            for entry in pending.entries:
                entry.records = None  # they are in the log

    async def finish(self) -> None:
        if self._pending is not None:
            assert self._wait is not None
            await self._wait
            self._encode()

    def _encode(self) -> None:
        pending, self._pending, self._wait = self._pending, None, None
        assert pending is not None
        if pending.acks == ACKS_NONE:
            pending.raise_if_refused()
            return
        version = pending.header.api_version
        for _, entries in pending.topics:
            self.answers.append(encode_partitions(version, [entry.answer() for entry in entries]))


@serves_long(ApiKey.PRODUCE)
async def produce_many(ctx: RequestContext[Needs], message: Any) -> None:
    place = ctx.place
    assert place is not None
    slices = ctx.services.slices
    at_a_time = max(1, slices.few_entries // 4)
    refused = None
    if message.transactional_id is None and await slices.run(_is_transactional(message)):
        refused = KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    pace = slices.pacer()
    parts: list[_Part] = []
    failure: ProtocolError | None = None
    for part in _parts(ctx, message, at_a_time):
        await pace(at_a_time * _WRITE_CALLS)
        try:
            await part.write(ctx, refused)
        except ProtocolError as e:
            if message.acks != ACKS_NONE:
                raise
            failure = failure or e
        parts.append(part)
    if message.acks == ACKS_NONE:
        ctx.connection.fulfil(place)
        if failure is not None:
            raise failure
        return
    for part in parts:
        await pace(STEP)
        await part.finish()
    topics = _topics(ctx, message, parts)
    header, count = place.header, len(message.topic_data)
    pieces = await slices.run(
        produce_response_in_slices(header.api_version, header.correlation_id, topics, count)
    )
    ctx.connection.fulfil(place, *pieces)


def _is_transactional(message: Any) -> Paced[bool]:
    for topic in message.topic_data:
        yield STEP
        for entry in topic.partition_data:
            if is_transactional(entry.records):
                return True
            yield STEP
    return False


def _parts(ctx: RequestContext[Needs], message: Any, at_a_time: int) -> Iterator[_Part]:
    """Split the request into parts of a few topics and partitions. A topic may be in several parts."""
    assert ctx.place is not None
    header, by_id = ctx.place.header, ctx.api_version >= _TOPIC_IDS_FROM
    topics: list[TopicRecords] = []
    begins = True
    count = 0

    def part() -> _Part:
        parsed = ProduceRequest(message.transactional_id, message.acks, message.timeout, topics)
        return _Part(PendingProduce(ctx.connection, header, parsed), begins)

    for topic in message.topic_data:
        if count >= at_a_time:
            yield part()
            topics, begins, count = [], True, 0
        rows: list[tuple[int, memoryview | None]] = []
        topics.append((topic.topic_id if by_id else topic.name, rows))
        count += 1
        for entry in topic.partition_data:
            if count > at_a_time:
                yield part()
                rows = []
                topics, begins, count = [(topics[-1][0], rows)], False, 1
            records = None if entry.records is None else memoryview(bytearray(entry.records))
            rows.append((entry.index, records))
            count += 1
    yield part()


def _topics(
    ctx: RequestContext[Needs], message: Any, parts: list[_Part]
) -> Iterator[tuple[str | UUID, int, list[bytes]]]:
    """The topics in the order of the request. A topic of several parts is merged."""
    by_id = ctx.api_version >= _TOPIC_IDS_FROM
    answers: list[bytes] = []
    remaining = iter(message.topic_data)
    for part in parts:
        for number, answer in enumerate(part.answers):
            if (number or part.begins) and answers:
                topic = next(remaining)
                yield topic.topic_id if by_id else topic.name, len(topic.partition_data), answers
                answers = []
            answers.append(answer)
    if answers:
        topic = next(remaining)
        yield topic.topic_id if by_id else topic.name, len(topic.partition_data), answers
