"""Producer ids on a broker: taken from blocks that the controller hands out."""

import asyncio

from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.channel import ControllerChannel
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types


class ProducerIds:
    """`take` gives an id that nobody else has or will have."""

    __slots__ = ("_broker_id", "_channel", "_end", "_lock", "_next", "broker_epoch")

    def __init__(self, broker_id: int, channel: ControllerChannel) -> None:
        self._broker_id = broker_id
        self._channel = channel
        self._lock = asyncio.Lock()
        self._next = self._end = 0
        self.broker_epoch = -1

    async def take(self) -> int:
        """Raises KafkaError where the controller gives none."""
        if self._next == self._end:
            async with self._lock:
                if self._next == self._end:
                    await self._next_block()
        producer_id = self._next
        self._next += 1
        return producer_id

    async def _next_block(self) -> None:
        types = request_types(ApiKey.ALLOCATE_PRODUCER_IDS)
        request = types.AllocateProducerIdsRequest(broker_id=self._broker_id, broker_epoch=self.broker_epoch)
        response = await self._channel.call(ApiKey.ALLOCATE_PRODUCER_IDS, request)
        if response.error_code:
            raise KafkaError(ErrorCode(response.error_code), "the controller gives no producer ids")
        self._next = response.producer_id_start
        self._end = self._next + response.producer_id_len
