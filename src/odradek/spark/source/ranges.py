"""Ranges of partitions, from the broker to Arrow batches: the next Fetch is on its way while this one is
decoded."""

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from itertools import chain, pairwise

import pyarrow as pa

from odradek.client.admin import EARLIEST, LATEST
from odradek.client.blocking import BlockingClient
from odradek.client.fetching import Fetched, PartitionFetcher
from odradek.core.errors import ErrorCode, KafkaError
from odradek.records.scanning import scan
from odradek.spark.options import SourceOptions
from odradek.spark.source.columns import arrow_batches
from odradek.spark.source.planning import OffsetRange

_log = logging.getLogger(__name__)


_CHANNEL = "ranges"
"""A task reads one range after another, and what it asks for is there: none waits for another."""


class DataLossError(RuntimeError):
    """Offsets that were to be read are not there any more."""


class StuckError(RuntimeError):
    """Offsets that were to be read are there, and are not shown."""


def read_ranges(
    client: BlockingClient, ranges: Sequence[OffsetRange], options: SourceOptions
) -> Iterator[pa.RecordBatch]:
    """One after another; the next one begins to come while this one is read."""
    coming: _RangeReader | None = None
    for wanted, following in pairwise(chain(ranges, [None])):
        assert wanted is not None
        reader = coming or _RangeReader(client, wanted, options)
        coming = None if following is None else _RangeReader(client, following, options)
        yield from reader.read()


class _RangeReader:
    """Everything that a reader is shown between two offsets, in order. It is asked for at once."""

    def __init__(self, client: BlockingClient, wanted: OffsetRange, options: SourceOptions) -> None:
        self._client = client
        self._wanted = wanted
        self._options = options
        self._fetcher = PartitionFetcher(
            client.client,
            wanted.tp,
            isolation_level=options.isolation,
            max_bytes=options.fetch_bytes,
            channel=_CHANNEL,
        )
        self._under_way = self._ask(wanted.start)

    def _ask(self, position: int) -> "Future[Fetched] | None":
        """None at the end."""
        if position >= self._wanted.end:
            return None
        return asyncio.run_coroutine_threadsafe(self._fetcher.fetch(position), self._client.loop)

    def read(self) -> Iterator[pa.RecordBatch]:
        (tp, position, end), options = self._wanted, self._options
        stuck_since: float | None = None
        while self._under_way is not None:
            try:
                fetched = self._under_way.result()
            except KafkaError as e:
                position = _after_loss(self._client, self._wanted, position, options, e)
                self._under_way = self._ask(position)
                continue
            scanned = scan(fetched.records)
            start = position
            if scanned[0]:
                position = max(start, scanned[0][-1].last_offset + 1)
            if position > start:
                stuck_since = None
            elif _is_cut_off(self._client, self._wanted, fetched, options):
                return
            else:
                now = time.monotonic()
                stuck_since = now if stuck_since is None else stuck_since
                _check_patience(self._wanted, position, fetched, now - stuck_since, options)
            self._under_way = self._ask(position)
            yield from arrow_batches(
                *(tp, fetched.records, fetched.aborted, start, end - 1),
                with_headers=options.include_headers,
                scanned=scanned,
            )


def _is_cut_off(
    client: BlockingClient, wanted: OffsetRange, fetched: Fetched, options: SourceOptions
) -> bool:
    """Nothing came. Fine while the partition reaches further; else what is missing will never come."""
    if fetched.high_watermark >= wanted.end:
        return False
    # The high watermark of a fetch may be behind for a moment after a partition got a new leader: ListOffsets
    # does not answer until it is not (KIP-207).
    end = int(client.call(client.admin.list_offsets, {wanted.tp: LATEST})[wanted.tp].offset)
    if end >= wanted.end:
        return False
    _lose(
        f"{wanted.tp} ends at offset {end}, but offsets up to {wanted.end - 1} are to be read: was the "
        "topic recreated?",
        options,
    )
    return True


def _check_patience(
    wanted: OffsetRange, position: int, fetched: Fetched, waited_s: float, options: SourceOptions
) -> None:
    """A transaction may stay open forever, so a wait for its end must be reported at some point."""
    if waited_s * 1000 < options.poll_timeout_ms:
        return
    tp = wanted.tp
    raise StuckError(
        f"{tp} shows nothing at offset {position}, but offsets up to {wanted.end - 1} are to be read. Its "
        f"last stable offset is {fetched.last_stable_offset} and its high watermark "
        f"{fetched.high_watermark}: a transaction is open. `odradek why stuck {tp.topic}` names it. "
        f"Waited kafkaConsumer.pollTimeoutMs={options.poll_timeout_ms} for its end"
    )


def _after_loss(
    client: BlockingClient, wanted: OffsetRange, position: int, options: SourceOptions, error: KafkaError
) -> int:
    """Where to go on when the offset is out of range or the topic is gone, if that is allowed."""
    tp = wanted.tp
    if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        _lose(f"{tp} was deleted, but offsets {position} to {wanted.end - 1} are to be read", options)
        return wanted.end
    if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
        raise error
    earliest = int(client.call(client.admin.list_offsets, {tp: EARLIEST})[tp].offset)
    if earliest <= position:
        _lose(f"{tp} now ends before offset {position}, but is to be read up to {wanted.end - 1}", options)
        return wanted.end
    _lose(
        f"{tp} now begins at offset {earliest}, but offsets {position} to {wanted.end - 1} are to be "
        f"read: {min(earliest, wanted.end) - position} are gone. Retention has overtaken this query",
        options,
    )
    return earliest


def _lose(what: str, options: SourceOptions) -> None:
    if options.fail_on_data_loss:
        raise DataLossError(f"{what} (failOnDataLoss=false continues with what is there)")
    _log.warning("%s: failOnDataLoss=false continues with what is there", what)
