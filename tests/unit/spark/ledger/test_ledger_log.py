"""The ledger read to its end, from brokers that answer as a test tells them."""

import asyncio
from typing import Any

import pytest

from odradek.client.client import Client
from odradek.records.batch import build_batch
from odradek.spark.ledger.ledger import LEDGER_TOPIC, LedgerError
from odradek.spark.ledger.ledger_log import LedgerLog
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types
from tests.unit.client.fake_broker import FakeBroker, fake_broker, topic_id

FETCH, LIST = response_types(ApiKey.FETCH), response_types(ApiKey.LIST_OFFSETS)


class Leader:
    """Has records up to an end that was acknowledged, and shows those below its high watermark."""

    def __init__(self, broker: FakeBroker, end: int, high_watermark: int) -> None:
        self.broker, self.end, self.high_watermark, self.epoch = broker, end, high_watermark, 0
        self.catches_up = True
        broker.topics = {LEDGER_TOPIC: 1}
        self._metadata = broker.metadata
        broker.handlers[ApiKey.METADATA] = self.metadata
        broker.handlers[ApiKey.FETCH] = self.fetch
        broker.handlers[ApiKey.LIST_OFFSETS] = self.list_offsets

    @property
    def asked(self) -> int:
        return len(self.broker.requests(ApiKey.LIST_OFFSETS))

    def metadata(self, request: Any) -> Any:
        answer = self._metadata(request)
        for topic in answer.topics:
            topic.partitions[0].leader_epoch = self.epoch
        return answer

    def fetch(self, request: Any) -> Any:
        (asked,) = request.topics[0].partitions
        shown = range(asked.fetch_offset, self.high_watermark)
        data = b"".join(bytes(build_batch([(1, b"k", b"v", ())], base_offset=o)) for o in shown)
        part = FETCH.PartitionData(
            partition_index=0,
            error_code=0 if asked.current_leader_epoch == self.epoch else 74,
            high_watermark=self.high_watermark,
            last_stable_offset=self.high_watermark,
            records=data,
        )
        if self.catches_up:
            self.high_watermark = self.end
        topic = FETCH.FetchableTopicResponse(
            topic=LEDGER_TOPIC, topic_id=topic_id(LEDGER_TOPIC), partitions=[part]
        )
        return FETCH.FetchResponse(responses=[topic])

    def list_offsets(self, request: Any) -> Any:
        (asked,) = request.topics[0].partitions
        assert asked.current_leader_epoch == self.epoch
        part = LIST.ListOffsetsPartitionResponse(partition_index=0, offset=self.end)
        return LIST.ListOffsetsResponse(
            topics=[LIST.ListOffsetsTopicResponse(name=LEDGER_TOPIC, partitions=[part])]
        )


def test_what_a_new_leader_does_not_show_yet_is_waited_for() -> None:
    async def read() -> None:
        async with fake_broker() as broker, Client(broker.address) as client:
            leader = Leader(broker, end=5, high_watermark=2)
            ledger = LedgerLog(client)
            assert (await ledger.read()).position == 5
            assert leader.asked == 1
            leader.end = leader.high_watermark = 6
            assert (await ledger.read()).position == 6
            assert leader.asked == 1, "of a leader that has caught up every fetch tells the end"
            leader.epoch, leader.end = 1, 9
            assert (await ledger.read()).position == 9
            assert leader.asked == 2

    asyncio.run(read())


def test_a_ledger_that_was_cut_off_is_told() -> None:
    async def read() -> None:
        async with fake_broker() as broker, Client(broker.address, api_timeout_ms=100) as client:
            leader = Leader(broker, end=5, high_watermark=2)
            leader.catches_up = False
            with pytest.raises(LedgerError, match="ends at 2, but ended at 5 before: it was cut off"):
                await LedgerLog(client).read()

    asyncio.run(read())
