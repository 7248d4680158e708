"""A range of one partition, from the broker to Arrow batches: the next Fetch is on its way while this one is
decoded."""

import asyncio
import logging
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pyarrow as pa

from odradek.client.admin import EARLIEST
from odradek.client.blocking import BlockingClient
from odradek.client.fetching import Fetched, PartitionFetcher
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import Buffer
from odradek.records.header import iter_batches
from odradek.spark.columns import arrow_batches
from odradek.spark.options import SourceOptions
from odradek.spark.planning import OffsetRange

log = logging.getLogger("odradek.spark")


class DataLossError(RuntimeError):
    """Offsets that were to be read are not there any more."""


def read_range(
    client: BlockingClient, wanted: OffsetRange, options: SourceOptions
) -> Iterator[pa.RecordBatch]:
    """Everything that a reader is shown between two offsets, in order."""
    tp, position, end = wanted

    def make() -> PartitionFetcher:
        return PartitionFetcher(
            client.client, tp, isolation_level=options.isolation, max_bytes=options.fetch_bytes
        )

    fetcher = client.run(_called(make))
    try:
        under_way: Future[Fetched] | None = _start(client, fetcher, position)
        while under_way is not None:
            try:
                fetched = under_way.result()
            except KafkaError as e:
                position = _after_loss(client, wanted, position, options, e)
                under_way = _start(client, fetcher, position) if position < end else None
                continue
            start, position = position, _end_of(fetched.records, position)
            if position == start and _is_cut_off(wanted, fetched, options):
                return
            under_way = _start(client, fetcher, position) if position < end else None
            yield from arrow_batches(
                tp, fetched.records, fetched.aborted, start, end - 1, with_headers=options.include_headers
            )
    finally:
        client.run(_called(fetcher.close))


async def _called(function: Any) -> Any:
    return function()


def _start(client: BlockingClient, fetcher: PartitionFetcher, position: int) -> "Future[Fetched]":
    return asyncio.run_coroutine_threadsafe(fetcher.fetch(position), client.loop)


def _end_of(data: Buffer, position: int) -> int:
    """The offset after the last batch: the only header that has to be looked at before the next Fetch."""
    last = None
    for batch in iter_batches(data):
        last = batch
    return position if last is None else max(position, last.last_offset + 1)


def _is_cut_off(wanted: OffsetRange, fetched: Fetched, options: SourceOptions) -> bool:
    """Nothing came. Fine while the partition reaches further; else what is missing will never come."""
    if fetched.high_watermark >= wanted.end:
        return False
    _lose(
        f"{wanted.tp} ends at offset {fetched.high_watermark}, and offsets up to {wanted.end - 1} were "
        "to be read: was the topic made anew?",
        options,
    )
    return True


def _after_loss(
    client: BlockingClient, wanted: OffsetRange, position: int, options: SourceOptions, error: KafkaError
) -> int:
    """Where to go on when the offset is out of range or the topic is gone, if that is allowed."""
    tp = wanted.tp
    if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        _lose(f"{tp} was deleted, and offsets {position} to {wanted.end - 1} were to be read", options)
        return wanted.end
    if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
        raise error
    earliest = int(client.call(client.admin.list_offsets, {tp: EARLIEST})[tp].offset)
    _lose(
        f"{tp} begins at offset {earliest} now, and offsets {position} to {wanted.end - 1} were to be "
        f"read: {min(earliest, wanted.end) - position} are gone. Retention has overtaken this query",
        options,
    )
    return max(position, earliest) if earliest > position else wanted.end


def _lose(what: str, options: SourceOptions) -> None:
    if options.fail_on_data_loss:
        raise DataLossError(f"{what} (failOnDataLoss=false goes on with what is there)")
    log.warning("%s: failOnDataLoss=false goes on with what is there", what)
