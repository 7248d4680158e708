"""ProducerIds: the producer ids of this broker, from blocks that the controller allocates."""

import asyncio
import logging
from typing import Final

from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.channel import ControllerChannel
from odradek.runtime.scope import Scope
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

_log = logging.getLogger(__name__)

PREFETCH_AT_PERCENT: Final = 90
"""The next block is requested when this much of the current one is used."""

_READY_SECONDS: Final = 1.0
"""How long a client is kept waiting for the first block: without a controller it had better ask again."""


class ProducerIds:
    """`take` returns a unique id."""

    __slots__ = (
        "_broker_id",
        "_channel",
        "_end",
        "_following",
        "_next",
        "_request",
        "_scope",
        "_size",
        "broker_epoch",
    )

    def __init__(self, broker_id: int, channel: ControllerChannel) -> None:
        self._broker_id = broker_id
        self._channel = channel
        self._scope = Scope(
            lambda error: _log.warning("Cannot get producer ids from the controller: %s", error)
        )
        self._next = self._end = 0
        self._size = 1
        self._following: range | None = None
        self._request: asyncio.Task[None] | None = None
        self.broker_epoch = -1

    def take(self) -> int:
        """Raises COORDINATOR_LOAD_IN_PROGRESS, which clients retry, while no id is available."""
        if self._next == self._end:
            if self._following is None:
                self._ask()
                raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "waiting for producer ids")
            self._next, self._end = self._following.start, self._following.stop
            self._size = len(self._following)
            self._following = None
        producer_id = self._next
        self._next += 1
        if (
            self._following is None
            and 100 * (self._end - self._next) <= (100 - PREFETCH_AT_PERCENT) * self._size
        ):
            self._ask()
        return producer_id

    async def ready(self) -> None:
        """Wait until an id is available, or the controller has failed to allocate a block, with a time
        limit."""
        if self._next == self._end and self._following is None:
            self._ask()
            assert self._request is not None
            await asyncio.wait([self._request], timeout=_READY_SECONDS)

    async def close(self) -> None:
        await self._scope.close()

    def _ask(self) -> None:
        """Request the next block. One request at a time."""
        if self._request is None or self._request.done():
            self._request = self._scope.spawn(self._fetch(), name="allocate producer ids")

    async def _fetch(self) -> None:
        types = request_types(ApiKey.ALLOCATE_PRODUCER_IDS)
        request = types.AllocateProducerIdsRequest(broker_id=self._broker_id, broker_epoch=self.broker_epoch)
        response = await self._channel.call(ApiKey.ALLOCATE_PRODUCER_IDS, request)
        if response.error_code:
            raise KafkaError(ErrorCode(response.error_code), "the controller returned no producer ids")
        start = response.producer_id_start
        self._following = range(start, start + response.producer_id_len)
