"""Markers for partitions that another broker leads: what it is asked, and what its coordinator hears."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from odradek.client.broker_connections import BrokerConnections, Endpoint
from odradek.coordinators.transactions.commands import WriteMarkers
from odradek.coordinators.transactions.markers import MarkerSender, Outcomes
from odradek.coordinators.transactions.remote_markers import RemoteMarkers
from odradek.core.errors import ErrorCode
from odradek.core.types import ProducerIdAndEpoch, TopicPartition
from odradek.runtime.real import RealRuntime
from odradek.runtime.slices import Slices
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types
from tests.unit.client.fake_broker import FakeBroker, HangUp, always, fake_broker, in_turn

BROKER = 2
A0, A3, B1 = TopicPartition("a", 0), TopicPartition("a", 3), TopicPartition("b", 1)
MARKERS = WriteMarkers("x", ProducerIdAndEpoch(7, 3), True, 5, 2, (A0, A3, B1))
ALL = [A0, A3, B1]


def answer(codes: dict[TopicPartition, int]) -> Any:
    types = response_types(ApiKey.WRITE_TXN_MARKERS)
    topics = [
        types.WritableTxnMarkerTopicResult(
            name=tp.topic,
            partitions=[
                types.WritableTxnMarkerPartitionResult(partition_index=tp.partition, error_code=code)
            ],
        )
        for tp, code in codes.items()
    ]
    return types.WriteTxnMarkersResponse(
        markers=[types.WritableTxnMarkerResult(producer_id=7, topics=topics)]
    )


def run(scenario: Callable[[FakeBroker, RemoteMarkers], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with fake_broker(BROKER) as broker:
            endpoints: dict[int, Endpoint] = {BROKER: ("127.0.0.1", broker.port)}
            markers = RemoteMarkers(BrokerConnections(RealRuntime(), "test", 5_000, endpoints.get))
            await scenario(broker, markers)
            await markers.close()

    asyncio.run(main())


def outcomes_of(handler: Callable[[Any], Any]) -> Outcomes:
    found: list[Outcomes] = []

    async def scenario(broker: FakeBroker, markers: RemoteMarkers) -> None:
        broker.handlers[ApiKey.WRITE_TXN_MARKERS] = handler
        found.append(await markers.deliver(BROKER, MARKERS, ALL))

    run(scenario)
    return found[0]


@pytest.mark.parametrize(("newest", "transaction_version"), [(2, 2), (1, 0)])
def test_a_broker_gets_the_whole_marker_in_the_newest_version_that_it_knows(
    newest: int, transaction_version: int
) -> None:
    async def scenario(broker: FakeBroker, markers: RemoteMarkers) -> None:
        broker.api_limits[ApiKey.WRITE_TXN_MARKERS] = (1, newest)
        broker.handlers[ApiKey.WRITE_TXN_MARKERS] = always(answer(dict.fromkeys(ALL, 0)))
        assert await markers.deliver(BROKER, MARKERS, ALL) == dict.fromkeys(ALL, ErrorCode.NONE)
        (_, version, request) = broker.seen[-1]
        (marker,) = request.markers
        assert version == newest
        assert (marker.producer_id, marker.producer_epoch, marker.transaction_result) == (7, 3, True)
        assert (marker.coordinator_epoch, marker.transaction_version) == (5, transaction_version)
        topics = {topic.name: list(topic.partition_indexes) for topic in marker.topics}
        assert topics == {"a": [0, 3], "b": [1]}

    run(scenario)


def test_each_partition_has_its_own_outcome() -> None:
    codes = {A0: 0, A3: ErrorCode.NOT_LEADER_OR_FOLLOWER, B1: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert outcomes_of(always(answer(codes))) == codes


def test_partitions_that_a_broker_leaves_out_and_codes_that_nobody_knows_are_failures() -> None:
    found = outcomes_of(always(answer({A0: 0, A3: 12_345})))
    failed = ErrorCode.UNKNOWN_SERVER_ERROR
    assert found == {A0: ErrorCode.NONE, A3: failed, B1: failed}


def test_a_broker_that_is_unknown_or_hangs_up_is_an_outcome() -> None:
    async def scenario(broker: FakeBroker, markers: RemoteMarkers) -> None:
        found = await markers.deliver(BROKER + 1, MARKERS, ALL)
        assert found == dict.fromkeys(ALL, ErrorCode.BROKER_NOT_AVAILABLE)
        broker.handlers[ApiKey.WRITE_TXN_MARKERS] = in_turn(HangUp)
        found = await markers.deliver(BROKER, MARKERS, ALL)
        assert found == dict.fromkeys(ALL, ErrorCode.NETWORK_EXCEPTION)

    run(scenario)


def test_the_sender_tries_until_the_broker_has_every_marker() -> None:
    async def scenario(broker: FakeBroker, markers: RemoteMarkers) -> None:
        broker.handlers[ApiKey.WRITE_TXN_MARKERS] = in_turn(
            HangUp,
            answer({A0: 0, A3: ErrorCode.NOT_LEADER_OR_FOLLOWER}),
            answer({A3: 0, B1: 0}),
        )
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        sender = MarkerSender(lambda tp: BROKER, markers, lambda index, _: done.set_result(index), Slices())
        sender.send(4, MARKERS)
        assert await asyncio.wait_for(done, 5) == 4
        asked = [request.markers[0].topics for request in broker.requests(ApiKey.WRITE_TXN_MARKERS)]
        assert [sum(len(topic.partition_indexes) for topic in topics) for topics in asked] == [3, 3, 2]
        assert len(sender) == 0

    run(scenario)
