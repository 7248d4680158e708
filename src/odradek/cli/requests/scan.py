"""Reading a partition batch by batch, control batches included, which no consumer shows."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from odradek.cli.errors import kafka_failure
from odradek.cli.requests.cluster_access import READ_COMMITTED, ClusterAccess, TopicInfo
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import TopicPartition
from odradek.records.batch import BatchMeta, iter_records
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

_LAST_FETCH_BY_NAME = 12
_FETCH_BYTES = 4 << 20


class ScannedBatch(NamedTuple):
    """A batch with the bytes it lies in; `is_shown` says whether a read_committed consumer gets it."""

    data: Any
    batch: BatchMeta
    is_shown: bool


class ReadLimitError(Exception):
    """More would have to be read than may be."""


class ReadLimit:
    """How many bytes a command may still read."""

    __slots__ = ("left",)

    def __init__(self, limit_bytes: int) -> None:
        self.left = limit_bytes

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise ReadLimitError


def scan(
    cluster: ClusterAccess,
    topic: TopicInfo,
    tp: TopicPartition,
    start: int,
    stop: int,
    limit: ReadLimit,
    *,
    isolation_level: int = READ_COMMITTED,
) -> Iterator[ScannedBatch]:
    """The batches of a partition that begin before `stop`, from the one with `start` in it on."""
    from odradek.client.visibility import visible_batches

    position = start
    while position < stop:
        found = _fetch(cluster, topic, tp, position, isolation_level)
        limit.take(len(found.records or b""))
        aborted = [(t.producer_id, t.first_offset) for t in found.aborted_transactions or ()]
        before = position
        for batch, is_shown in visible_batches(found.records or b"", aborted):
            if batch.base_offset >= stop:
                return
            position = max(position, batch.last_offset + 1)
            if batch.last_offset >= start:
                yield ScannedBatch(found.records, batch, is_shown)
        if position == before:
            return  # nothing is there before the last stable offset


def _fetch(
    cluster: ClusterAccess, topic: TopicInfo, tp: TopicPartition, position: int, isolation_level: int
) -> Any:
    types = request_types(ApiKey.FETCH)

    def request(wanted: Mapping[str, list[int]]) -> Any:
        return types.FetchRequest(
            max_wait=0,
            min_bytes=0,
            max_bytes=_FETCH_BYTES,
            isolation_level=isolation_level,
            topics=[
                types.FetchTopic(
                    topic=name,
                    partitions=[
                        types.FetchPartition(
                            partition=index, fetch_offset=position, partition_max_bytes=_FETCH_BYTES
                        )
                        for index in indexes
                    ],
                )
                for name, indexes in wanted.items()
            ],
        )

    (response,) = cluster.send_to_leaders(ApiKey.FETCH, [tp], [topic], request, _LAST_FETCH_BY_NAME)
    found = response.responses[0].partitions[0] if response.responses else None
    code = response.error_code or (found.error_code if found is not None else 0)
    if code:
        raise kafka_failure(f"partition {tp}", tp.topic, KafkaError(ErrorCode(code)))
    return found


class UnreadRecords(NamedTuple):
    """What a read_committed reader will still get, and when the first of it was written."""

    records: int
    first_timestamp_ms: int | None


def unread(
    cluster: ClusterAccess, topic: TopicInfo, tp: TopicPartition, start: int, stop: int, limit: ReadLimit
) -> UnreadRecords:
    """Between two offsets: without markers, aborted records, and what compaction has removed."""
    count, first_ms = 0, None
    for data, batch, is_shown in scan(cluster, topic, tp, start, stop, limit):
        if not is_shown:
            continue
        if first_ms is None or batch.base_offset < start or batch.last_offset >= stop:
            times = [r.timestamp for r in iter_records(data, batch) if start <= r.offset < stop]
            count += len(times)
            if times and first_ms is None:
                first_ms = batch.max_timestamp if batch.timestamp_type else times[0]
        else:
            count += batch.record_count
    return UnreadRecords(count, first_ms)
