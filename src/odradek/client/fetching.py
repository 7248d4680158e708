"""Fetch requests, and one partition fetched as bytes, for readers that decode by themselves."""

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from odradek.client.admin import by_topic
from odradek.client.client import Client, check
from odradek.client.metadata import ClusterMetadata
from odradek.client.watching import MovedError
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import ZERO_UUID, Buffer, TopicPartition
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
_LAST_FETCH_BY_NAME = 12


def fetch_request(
    cluster: ClusterMetadata,
    positions: Mapping[TopicPartition, int],
    *,
    isolation_level: int,
    max_wait_ms: int,
    min_bytes: int,
    max_bytes: int,
    max_partition_bytes: int,
) -> tuple[Any, int | None]:
    """The request for what lies at these offsets, and the last version it may be sent in."""
    types = request_types(ApiKey.FETCH)
    names = by_topic(list(positions))
    request = types.FetchRequest(
        max_wait=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        topics=[
            types.FetchTopic(
                topic=name,
                topic_id=cluster.topic_id(name),
                partitions=[
                    types.FetchPartition(
                        partition=tp.partition,
                        current_leader_epoch=cluster.leader_epoch(tp),
                        fetch_offset=positions[tp],
                        partition_max_bytes=max_partition_bytes,
                    )
                    for tp in of_topic
                ],
            )
            for name, of_topic in names.items()
        ],
    )
    by_id = all(cluster.topic_id(name) != ZERO_UUID for name in names)
    return request, None if by_id else _LAST_FETCH_BY_NAME


class Fetched(NamedTuple):
    """Whole batches, perhaps from before the offset asked for, and where the partition ends."""

    records: Buffer
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: list[tuple[int, int]] | None
    """Producer id and first offset of every transaction in the bytes that was aborted; None where everything
    was asked for."""


class PartitionFetcher:
    """Asks the leader of one partition, found again when it moves, on a connection of its own; or on one that
    others use, too, where nobody waits long."""

    def __init__(
        self,
        client: Client,
        tp: TopicPartition,
        *,
        isolation_level: int = READ_COMMITTED,
        max_bytes: int = 4 << 20,
        max_wait_ms: int = 500,
        timeout_ms: int | None = None,
        channel: str | None = None,
    ) -> None:
        self._client = client
        self._tp = tp
        self._owns_channel = channel is None
        self._isolation_level = isolation_level
        self._max_bytes = max_bytes
        self._max_wait_ms = max_wait_ms
        self._timeout_ms = timeout_ms
        self._channel = channel or client.new_channel("fetch")

    def close(self) -> None:
        if self._owns_channel:
            self._client.close_channel(self._channel)

    async def fetch(self, offset: int, *, max_wait_ms: int | None = None) -> Fetched:
        """Returns when there is anything at the offset, or after the wait."""
        wait_ms = self._max_wait_ms if max_wait_ms is None else max_wait_ms
        while True:
            fetched = await self._client.retrying(lambda: self._attempt(offset, wait_ms), self._timeout_ms)
            if isinstance(fetched, Fetched):
                return fetched
            # No answer of its own for the caller, who would take it for where the partition ends.
            await asyncio.sleep(max(fetched, self._client.backoff_ms(0)) / 1000)

    async def _attempt(self, offset: int, wait_ms: int) -> Fetched | int:
        """What was fetched; or from a broker that is over its quota, the milliseconds that it is to be left
        alone."""
        client, tp = self._client, self._tp
        node_id = await client.leader(tp)
        request, max_version = fetch_request(
            client.cluster,
            {tp: offset},
            isolation_level=self._isolation_level,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=self._max_bytes,
            max_partition_bytes=self._max_bytes,
        )
        try:
            work = client.send(
                ApiKey.FETCH,
                request,
                node_id=node_id,
                channel=self._channel,
                max_version=max_version,
                timeout_ms=wait_ms + client.request_timeout_ms,
            )
            response = await client.while_leading(work, node_id, [tp], wait_ms)
            check(response.error_code, place=f"fetch from broker {node_id}")
            answer = next((part for topic in response.responses for part in topic.partitions), None)
            if answer is None:
                return int(response.throttle_time)
            check(answer.error_code, place=f"fetch from {tp} at offset {offset}")
        except MovedError:
            raise
        except (OSError, KafkaError) as e:
            client.forget_leader(tp)
            if isinstance(e, KafkaError) and e.code is ErrorCode.UNKNOWN_TOPIC_ID:
                # A topic of another id has its name now, or none has: the metadata tells which.
                await client.refresh([tp.topic])
                await client.leader(tp)
            raise
        aborted = None
        if self._isolation_level == READ_COMMITTED:
            aborted = [(t.producer_id, t.first_offset) for t in answer.aborted_transactions or ()]
        return Fetched(
            answer.records or b"",
            answer.high_watermark,
            answer.last_stable_offset,
            answer.log_start_offset,
            aborted,
        )
