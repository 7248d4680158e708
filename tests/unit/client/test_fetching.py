"""One partition as bytes."""

import asyncio
import time

from odradek.client.client import Client
from odradek.client.fetching import PartitionFetcher
from odradek.core.types import TopicPartition
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types
from tests.unit.client.fake_broker import fake_broker, in_turn, topic_id

TYPES = response_types(ApiKey.FETCH)


def test_a_broker_over_its_quota_is_asked_again_when_it_may_be() -> None:
    """It answers without any topic: that is not where the partition ends."""
    part = TYPES.PartitionData(partition_index=0, high_watermark=7, last_stable_offset=7, records=b"")
    topic = TYPES.FetchableTopicResponse(topic="t", topic_id=topic_id("t"), partitions=[part])

    async def ask() -> None:
        async with fake_broker() as broker, Client(broker.address) as client:
            broker.handlers[ApiKey.FETCH] = in_turn(
                TYPES.FetchResponse(throttle_time=300, responses=[]), TYPES.FetchResponse(responses=[topic])
            )
            began = time.monotonic()
            fetched = await PartitionFetcher(client, TopicPartition("t", 0)).fetch(3)
            assert fetched.high_watermark == 7
            assert time.monotonic() - began >= 0.3
            assert len(broker.requests(ApiKey.FETCH)) == 2

    asyncio.run(ask())
