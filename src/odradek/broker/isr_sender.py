"""Sends the proposals of this node's leaders to the controller (AlterPartition).

One request is on its way at a time, and it is tried until it has an answer. replication/proposals.py decides
what is in it.
"""

import asyncio
import logging
from typing import Final

from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.channel import ControllerChannel
from odradek.replication.proposals import IsrProposals
from odradek.runtime.slices import Slices
from odradek.wire.api_keys import ApiKey

_log = logging.getLogger(__name__)

RETRY_S: Final = 0.05


class IsrSender:
    """`run` sends proposals as soon as there are any."""

    def __init__(self, broker_id: int, proposals: IsrProposals, slices: Slices) -> None:
        self._broker_id = broker_id
        self._proposals = proposals
        self._slices = slices
        self._news = asyncio.Event()
        proposals.on_news = self._news.set

    async def run(self, channel: ControllerChannel, broker_epoch: int) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            if await self._send(channel, broker_epoch):
                await asyncio.sleep(RETRY_S)
            if self._proposals:
                self._news.set()

    async def _send(self, channel: ControllerChannel, broker_epoch: int) -> bool:
        """Send one request. Returns whether something in it must be sent again."""
        proposals = self._proposals
        request = await self._slices.run(proposals.next_request(self._broker_id, broker_epoch), own=True)
        if request is None:
            return False
        try:
            response = await channel.call(ApiKey.ALTER_PARTITION, request)
            if response.error_code:
                raise KafkaError(ErrorCode(response.error_code))
        except KafkaError as e:
            level = logging.ERROR if e.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED else logging.WARNING
            _log.log(level, "The controller did not take changes of ISRs, retrying: %s", e)
            proposals.failed()
            return True
        return await self._slices.run(proposals.settle(response), own=True)
