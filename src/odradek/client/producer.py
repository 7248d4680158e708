"""The producer: records in, acknowledged offsets out. Idempotent where acks=all: a retry is never doubled.

Gathering is batches.py, delivering sender.py, placing partitioner.py; transactions are transactional.py.
"""

import asyncio

from odradek.client.batches import MAX_IN_FLIGHT, record_size
from odradek.client.client import Client
from odradek.client.idempotence import Idempotence
from odradek.client.partitioner import Placement
from odradek.client.sender import Delivery, Sender, Terms
from odradek.core.types import TopicPartition
from odradek.records.batch import Headers
from odradek.records.compression import CODEC_IDS

__all__ = ["Delivery", "Producer"]


class Producer:
    """Use with `async with`. `send` queues a record and gives a future of its `Delivery`.

    Idempotence needs acks=-1. An idempotent producer has up to five batches in flight to each partition.
    Where one of them is lost for good, its records fail and the producer goes on under its next epoch.
    """

    def __init__(
        self,
        client: Client,
        *,
        acks: int = -1,
        idempotent: bool | None = None,
        compression: str = "none",
        linger_ms: float = 0,
        batch_bytes: int = 131_072,
        buffer_bytes: int = 33_554_432,
        delivery_timeout_ms: int = 120_000,
        allow_auto_creation: bool = True,
        terms: Terms | None = None,
    ) -> None:
        """`terms` is for producers that are more than this one: transactional.py."""
        idempotent = acks == -1 if idempotent is None else idempotent
        if idempotent and acks != -1:
            raise ValueError("an idempotent producer needs acks=-1 (all)")
        self._client = client
        self._buffer_bytes = buffer_bytes
        self._allow_auto_creation = allow_auto_creation
        self._placement = Placement(client.runtime.rng, batch_bytes)
        self._closed = False
        self._terms: Terms = Idempotence(client, idempotent=idempotent) if terms is None else terms
        self.sender = Sender(
            client,
            self._terms,
            acks=acks,
            codec=CODEC_IDS[compression],
            linger_s=linger_ms / 1000,
            batch_bytes=batch_bytes,
            delivery_timeout_s=delivery_timeout_ms / 1000,
            max_in_flight=MAX_IN_FLIGHT if idempotent else 1,
        )

    async def __aenter__(self) -> "Producer":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> "asyncio.Future[Delivery]":
        """Queue a record; waits only for the topic's partitions to be known and for room in the buffer."""
        self._check_usable()
        partitions = await self._partitions(topic)
        size = record_size(key, value, headers)
        tp = TopicPartition(topic, self._placement.place(topic, partitions, key, partition, size))
        self._terms.on_queued(tp)
        while self.sender.queued_bytes and self.sender.queued_bytes + size > self._buffer_bytes:
            await self.sender.progress()
            self._check_usable()
            self._terms.on_queued(tp)
        if timestamp_ms is None:
            timestamp_ms = self._client.runtime.clock.now_ms()
        return self.sender.add(tp, (timestamp_ms, key, value, headers), size)

    async def flush(self) -> None:
        """Send what is queued without lingering; returns when all of it is acknowledged or has failed."""
        await self.sender.flush()

    async def close(self) -> None:
        """Flush, then stop."""
        await self.flush()
        await self.sender.close()
        self._closed = True

    def _check_usable(self) -> None:
        if self.sender.failure is not None:
            raise self.sender.failure
        if self._closed:
            raise RuntimeError("the producer is closed")

    async def _partitions(self, topic: str) -> list[int]:
        known = self._client.cluster.topics.get(topic)
        if known is not None:
            return list(known.partitions)

        async def attempt() -> list[int]:
            return await self._client.partitions(topic, allow_auto_creation=self._allow_auto_creation)

        return await self._client.retrying(attempt)
