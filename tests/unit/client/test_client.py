"""Finding brokers, leaders and coordinators; trying again, and giving up in time."""

import asyncio
from typing import Any

import pytest

from odradek.client import client as client_module
from odradek.client.admin import LATEST, Admin
from odradek.client.client import AdvertisedAddressError, Client, may_pass, parse_servers
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import TopicPartition
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types, response_types
from tests.unit.client.fake_broker import FakeBroker, HangUp, fake_broker, in_turn

TP = TopicPartition("t", 0)


def client_of(*brokers: FakeBroker, **options: Any) -> Client:
    options = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 5, **options}
    return Client([broker.address for broker in brokers], **options)


def coordinator(node_id: int, error_code: int = 0) -> Any:
    types = response_types(ApiKey.FIND_COORDINATOR)
    found = types.Coordinator(key="g", node_id=node_id, host="127.0.0.1", port=1, error_code=error_code)
    return types.FindCoordinatorResponse(coordinators=[found])


def listed_offset(offset: int, error_code: int = 0) -> Any:
    types = response_types(ApiKey.LIST_OFFSETS)
    partition = types.ListOffsetsPartitionResponse(partition_index=0, offset=offset, error_code=error_code)
    return types.ListOffsetsResponse(
        topics=[types.ListOffsetsTopicResponse(name="t", partitions=[partition])]
    )


def test_any_bootstrap_server_that_answers_will_do() -> None:
    async def scenario() -> None:
        async with fake_broker() as broker, fake_broker() as dead:
            address = dead.address
            dead.close()
            async with Client([address, broker.address]) as client:
                await client.refresh(None)
                assert list(client.cluster.topics) == ["t"]
                assert await client.leader(TP) == 1

    asyncio.run(scenario())


def test_no_server_that_answers_is_an_os_error() -> None:
    async def scenario() -> None:
        async with fake_broker() as dead:
            address = dead.address
        async with Client(address) as client:
            with pytest.raises(ConnectionRefusedError):
                await client.refresh()

    asyncio.run(scenario())


def test_a_moved_leader_is_looked_up_again() -> None:
    async def scenario() -> None:
        async with fake_broker(1) as one, fake_broker(2) as two:
            one.peers = two.peers = [one, two]

            def moved(_request: Any) -> Any:
                one.leader = two.leader = 2
                return listed_offset(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER)

            one.handlers[ApiKey.LIST_OFFSETS] = moved
            two.handlers[ApiKey.LIST_OFFSETS] = in_turn(HangUp, lambda _: listed_offset(42))
            async with client_of(one) as client:
                found = await Admin(client).list_offsets({TP: LATEST})
            assert found[TP].offset == 42
            assert len(one.requests(ApiKey.LIST_OFFSETS)) == 1
            assert len(two.requests(ApiKey.LIST_OFFSETS)) == 2

    asyncio.run(scenario())


def test_a_moved_coordinator_is_looked_up_again() -> None:
    async def scenario() -> None:
        async with fake_broker() as broker:
            types = response_types(ApiKey.DELETE_GROUPS)

            def answer(code: int) -> Any:
                result = types.DeletableGroupResult(group_id="g", error_code=code)
                return types.DeleteGroupsResponse(results=[result])

            broker.handlers[ApiKey.FIND_COORDINATOR] = in_turn(coordinator(1, 15), coordinator(1))
            broker.handlers[ApiKey.DELETE_GROUPS] = in_turn(answer(16), answer(14), answer(0))
            async with client_of(broker) as client:
                await Admin(client).delete_group("g")
            assert len(broker.requests(ApiKey.FIND_COORDINATOR)) == 3
            assert len(broker.requests(ApiKey.DELETE_GROUPS)) == 3

    asyncio.run(scenario())


def test_what_cannot_pass_is_raised_at_once() -> None:
    async def scenario() -> None:
        async with fake_broker() as broker:
            types = response_types(ApiKey.CREATE_TOPICS)
            exists = types.CreatableTopicResult(name="t", error_code=36, error_message="there already")
            broker.handlers[ApiKey.CREATE_TOPICS] = lambda _: types.CreateTopicsResponse(topics=[exists])
            async with client_of(broker) as client:
                with pytest.raises(KafkaError, match="there already") as refused:
                    await Admin(client).create_topics({"t": 1})
            assert refused.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
            assert len(broker.requests(ApiKey.CREATE_TOPICS)) == 1

    asyncio.run(scenario())


def test_retries_end_at_the_deadline_with_the_last_error() -> None:
    async def scenario() -> None:
        async with fake_broker() as broker:
            broker.handlers[ApiKey.LIST_OFFSETS] = lambda _: listed_offset(-1, 6)
            async with client_of(broker, api_timeout_ms=100) as client:
                with pytest.raises(KafkaError) as refused:
                    await Admin(client).list_offsets({TP: LATEST})
            assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert len(broker.requests(ApiKey.LIST_OFFSETS)) > 3

    asyncio.run(scenario())


@pytest.mark.parametrize(("host", "passes"), [("no.such.host.invalid", False), ("127.0.0.1", True)])
def test_a_broker_that_is_named_by_an_address_that_leads_nowhere_is_told_apart(
    host: str, passes: bool
) -> None:
    async def scenario() -> None:
        async with fake_broker() as broker, client_of(broker) as client:
            async with fake_broker() as dead:
                port = dead.port
            await client.refresh()
            client.cluster.brokers[1] = client.cluster.brokers[1]._replace(host=host, port=port)
            with pytest.raises(AdvertisedAddressError) as unreachable:
                await client.connection(1)
            assert str(unreachable.value).startswith(
                f"{broker.address} names its broker {host}:{port}, which cannot be reached"
            )
            assert str(unreachable.value).endswith("check advertised.listeners")
            assert may_pass(unreachable.value) is passes

    asyncio.run(scenario())


def test_a_port_is_within_its_bounds() -> None:
    assert parse_servers("a:65535,b") == [("a", 65535), ("b", 9092)]
    for port in ("0", "65536"):
        with pytest.raises(ValueError, match=f"not a port: {port}"):
            parse_servers(f"a:{port}")


def test_an_unknown_partition_or_broker_has_its_error() -> None:
    async def scenario() -> None:
        async with fake_broker() as broker, client_of(broker) as client:
            for tp in (TopicPartition("t", 9), TopicPartition("nope", 0)):
                with pytest.raises(KafkaError) as refused:
                    await client.leader(tp)
                assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            with pytest.raises(KafkaError) as absent:
                await client.connection(77)
            assert absent.value.code is ErrorCode.BROKER_NOT_AVAILABLE

    asyncio.run(scenario())


def test_a_channel_has_a_connection_of_its_own() -> None:
    async def scenario() -> None:
        async with fake_broker() as broker, client_of(broker) as client:
            await client.refresh()
            first = await client.connection(1)
            assert await client.connection(1) is first
            channel = client.new_channel("x")
            other = await client.connection(1, channel)
            assert other is not first
            assert await client.any_connection() is first
            client.close_channel(channel)
            assert (first.is_open, other.is_open) == (True, False)

    asyncio.run(scenario())


def test_a_closed_client_refuses() -> None:
    async def scenario() -> None:
        async with fake_broker() as broker:
            client = client_of(broker)
            await client.refresh()
            await client.close()
            with pytest.raises(ConnectionError):
                await client.refresh()

    asyncio.run(scenario())


def test_offsets_are_asked_for_and_committed_by_name() -> None:
    async def scenario() -> None:
        async with fake_broker() as broker:
            fetched, committed = response_types(ApiKey.OFFSET_FETCH), response_types(ApiKey.OFFSET_COMMIT)
            partitions = [
                fetched.OffsetFetchResponsePartitions(partition_index=i, committed_offset=offset, metadata="")
                for i, offset in enumerate((5, -1))
            ]
            topic = fetched.OffsetFetchResponseTopics(name="t", partitions=partitions)
            group = fetched.OffsetFetchResponseGroup(group_id="g", topics=[topic])
            broker.handlers[ApiKey.FIND_COORDINATOR] = lambda _: coordinator(1)
            broker.handlers[ApiKey.OFFSET_FETCH] = lambda _: fetched.OffsetFetchResponse(groups=[group])
            broker.handlers[ApiKey.OFFSET_COMMIT] = lambda _: committed.OffsetCommitResponse()
            async with client_of(broker) as client:
                found = await Admin(client).committed("g", [TP, TopicPartition("t", 1)])
                assert {tp: p.committed_offset for tp, p in found.items()} == {TP: 5}
                await Admin(client).commit("g", {TP: 6})
            assert {v for key, v, _ in broker.seen if key in (ApiKey.OFFSET_FETCH, ApiKey.OFFSET_COMMIT)} == {
                9
            }
            (request,) = broker.requests(ApiKey.OFFSET_COMMIT)
            assert request.topics[0].name == "t"
            assert request.topics[0].partitions[0].committed_offset == 6

    asyncio.run(scenario())


def test_any_request_can_be_sent_to_any_broker() -> None:
    async def scenario() -> None:
        async with fake_broker() as broker, client_of(broker) as client:
            types = request_types(ApiKey.METADATA)
            response = await client.send(
                ApiKey.METADATA, types.MetadataRequest(topics=[]), node_id=1, version=5
            )
            assert response.cluster_id == "fake"
            assert (ApiKey.METADATA, 5) in {(key, version) for key, version, _ in broker.seen}

    asyncio.run(scenario())


def test_coordinators_of_ids_that_come_and_go_are_not_all_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_MOST_COORDINATORS", 3)

    async def scenario() -> None:
        async with fake_broker() as broker:
            broker.handlers[ApiKey.FIND_COORDINATOR] = lambda _: coordinator(1)
            async with client_of(broker) as client:
                for name in ("a", "b", "c", "d", "d", "b", "a"):
                    assert await client.coordinator(name) == 1
            asked = [request.coordinator_keys for request in broker.requests(ApiKey.FIND_COORDINATOR)]
            assert asked == [["a"], ["b"], ["c"], ["d"], ["a"]]

    asyncio.run(scenario())
