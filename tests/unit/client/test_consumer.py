"""The consumer: where it starts, how it continues, and what a group does with it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from odradek.client.client import Client
from odradek.client.consumer import READ_COMMITTED, Consumer
from odradek.client.partition_reader import ConsumerRecord
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import TopicPartition
from odradek.records.batch import build_batch
from odradek.wire import consumer_protocol
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types
from tests.unit.client.fake_broker import FakeBroker, HangUp, fake_broker, in_turn, topic_id
from tests.unit.client.test_client import coordinator, listed_offset

TP = TopicPartition("t", 0)
TYPES = response_types(ApiKey.FETCH)


class Log:
    """One partition, served from a list of batches; an answer of one's own may be put in `errors`."""

    def __init__(self, broker: FakeBroker, count: int) -> None:
        self.batches = [
            (
                base,
                bytes(build_batch([(1, None, b"%d" % (base + i), ()) for i in range(5)], base_offset=base)),
            )
            for base in range(0, count, 5)
        ]
        self.count = count
        self.start = 0
        self.errors: list[Any] = []
        broker.handlers[ApiKey.FETCH] = self.fetch
        broker.handlers[ApiKey.LIST_OFFSETS] = self.list_offsets

    def list_offsets(self, request: Any) -> Any:
        timestamp = request.topics[0].partitions[0].timestamp
        return listed_offset(self.count if timestamp == -1 else self.start)

    def fetch(self, request: Any) -> Any:
        (topic,) = request.topics
        (asked,) = topic.partitions
        error = self.errors.pop(0) if self.errors else 0
        if isinstance(error, type):
            raise error
        if not error and not self.start <= asked.fetch_offset <= self.count:
            error = ErrorCode.OFFSET_OUT_OF_RANGE
        data = b"".join([b for base, b in self.batches if base + 5 > asked.fetch_offset][:2])
        answer = TYPES.PartitionData(
            partition_index=0,
            error_code=error,
            high_watermark=self.count,
            records=b"" if error else data,
        )
        response = TYPES.FetchResponse(
            responses=[TYPES.FetchableTopicResponse(topic="t", topic_id=topic_id("t"), partitions=[answer])]
        )
        if data or error:
            return response

        async def later() -> Any:
            await asyncio.sleep(request.max_wait / 1000)
            return response

        return later()


def quick_client(broker: FakeBroker) -> Client:
    return Client(broker.address, retry_backoff_ms=1, retry_backoff_max_ms=5)


def run(scenario: Callable[[FakeBroker, Log, Client], Any], count: int = 20) -> None:
    async def outer() -> None:
        async with fake_broker() as broker, quick_client(broker) as client:
            await scenario(broker, Log(broker, count), client)

    asyncio.run(outer())


async def read(consumer: Consumer, count: int) -> list[ConsumerRecord]:
    records: list[ConsumerRecord] = []
    async with asyncio.timeout(20):
        while len(records) < count:
            records += await consumer.poll(500, count - len(records))
    return records


def test_reading_by_hand_gives_all_records_in_order() -> None:
    async def scenario(_broker: FakeBroker, _log: Log, client: Client) -> None:
        async with Consumer(client, max_wait_ms=10) as consumer:
            consumer.assign({TP: 3})
            records = await read(consumer, 17)
            assert [record.offset for record in records] == list(range(3, 20))
            assert [record.value for record in records] == [b"%d" % i for i in range(3, 20)]
            assert consumer.position(TP) == 20
            assert consumer.high_watermark(TP) == 20
            assert await consumer.poll(20) == []
            consumer.seek(TP, 7)
            assert [record.offset for record in await read(consumer, 2)] == [7, 8]

    run(scenario)


@pytest.mark.parametrize(("reset", "first"), [("earliest", 5), ("latest", 20)])
def test_without_an_offset_the_reset_decides(reset: str, first: int) -> None:
    async def scenario(_broker: FakeBroker, log: Log, client: Client) -> None:
        log.start = 5
        async with Consumer(client, auto_offset_reset=reset, max_wait_ms=10) as consumer:
            consumer.assign([TP])
            async with asyncio.timeout(20):
                while consumer.position(TP) is None:
                    await consumer.poll(10, 0)
            assert consumer.position(TP) == first

    run(scenario)


def test_an_offset_out_of_range_is_reset_or_raised() -> None:
    async def scenario(_broker: FakeBroker, log: Log, client: Client) -> None:
        log.start = 10
        async with Consumer(client, auto_offset_reset="earliest", max_wait_ms=10) as consumer:
            consumer.assign({TP: 2})
            assert (await read(consumer, 1))[0].offset == 10
        async with Consumer(client, auto_offset_reset="none", max_wait_ms=10) as consumer:
            consumer.assign({TP: 2})
            with pytest.raises(KafkaError) as error:
                await read(consumer, 1)
            assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE

    run(scenario)


def test_what_passes_is_waited_for() -> None:
    async def scenario(broker: FakeBroker, log: Log, client: Client) -> None:
        log.errors = [HangUp, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH]
        async with Consumer(client, max_wait_ms=10) as consumer:
            consumer.assign({TP: 0})
            assert len(await read(consumer, 20)) == 20
        assert len(broker.requests(ApiKey.METADATA)) > 2

    run(scenario)


def test_a_lost_connection_is_told_until_the_broker_answers_again() -> None:
    async def scenario(_broker: FakeBroker, log: Log, client: Client) -> None:
        log.errors = [HangUp]
        async with Consumer(client, max_wait_ms=10) as consumer:
            consumer.assign({TP: 0})
            assert consumer.lost is None
            async with asyncio.timeout(20):
                while consumer.lost is None:
                    assert await consumer.poll(1) == []
            assert len(await read(consumer, 20)) == 20
            assert consumer.lost is None

    run(scenario)


def test_what_does_not_pass_is_raised() -> None:
    async def scenario(_broker: FakeBroker, log: Log, client: Client) -> None:
        log.errors = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
        async with Consumer(client, max_wait_ms=10) as consumer:
            consumer.assign({TP: 0})
            with pytest.raises(KafkaError) as error:
                await read(consumer, 1)
            assert error.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED

    run(scenario)


def test_a_group_member_joins_leads_reads_commits_and_leaves() -> None:
    async def scenario(broker: FakeBroker, _log: Log, client: Client) -> None:
        group = Group(broker)
        group.committed = 4
        async with Consumer(
            client, group_id="g", auto_commit=True, max_wait_ms=10, heartbeat_interval_ms=5
        ) as consumer:
            consumer.subscribe(["t"])
            assert [record.offset for record in await read(consumer, 3)] == [4, 5, 6]
            assert consumer.assignment == [TP]
            assert consumer.member_id == "m-1"
        assert group.committed == 7
        assert group.left == ["m-1"]
        assert broker.requests(ApiKey.OFFSET_COMMIT)[-1].generation_id_or_member_epoch == 1

    run(scenario)


def test_a_rebalance_gives_up_commits_and_joins_again() -> None:
    async def scenario(broker: FakeBroker, _log: Log, client: Client) -> None:
        group = Group(broker)
        group.heartbeats = [ErrorCode.REBALANCE_IN_PROGRESS]
        async with Consumer(
            client, group_id="g", auto_commit=True, auto_offset_reset="earliest", max_wait_ms=10,
            heartbeat_interval_ms=5,
        ) as consumer:  # fmt: skip
            consumer.subscribe(["t"])
            seen = [record.offset for record in await read(consumer, 3)]
            async with asyncio.timeout(20):
                while group.generation < 2:
                    seen += [record.offset for record in await consumer.poll(5, 1)]
            seen += [record.offset for record in await read(consumer, 20 - len(seen))]
        # Nothing is read twice: what was handed out was committed when the partition was given up.
        assert seen == list(range(20))

    run(scenario)


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_a_member_that_was_thrown_out_joins_as_a_new_one(error: ErrorCode) -> None:
    async def scenario(broker: FakeBroker, _log: Log, client: Client) -> None:
        group = Group(broker)
        group.heartbeats = [error]
        async with Consumer(
            client, group_id="g", auto_offset_reset="earliest", max_wait_ms=10, heartbeat_interval_ms=5
        ) as consumer:
            consumer.subscribe(["t"])
            async with asyncio.timeout(20):
                while group.generation < 2:
                    await consumer.poll(5)
        assert [request.member_id for request in broker.requests(ApiKey.JOIN_GROUP)] == ["", "m-1", "", "m-2"]

    run(scenario)


def test_a_fenced_member_learns_it_from_poll() -> None:
    async def scenario(broker: FakeBroker, _log: Log, client: Client) -> None:
        group = Group(broker)
        group.heartbeats = [ErrorCode.FENCED_INSTANCE_ID]
        consumer = Consumer(
            client, group_id="g", group_instance_id="i", auto_offset_reset="earliest", max_wait_ms=10,
            heartbeat_interval_ms=5,
        )  # fmt: skip
        consumer.subscribe(["t"])
        with pytest.raises(KafkaError) as error:
            await read(consumer, 1_000)
        assert error.value.code is ErrorCode.FENCED_INSTANCE_ID
        await consumer.close()
        assert group.left == []

    run(scenario)


def test_read_committed_is_asked_for_and_filtered() -> None:
    async def scenario(broker: FakeBroker, log: Log, client: Client) -> None:
        data = build_batch(
            [(1, None, b"x", ())], base_offset=0, producer_id=9, producer_epoch=0, base_sequence=0,
            transactional=True,
        ) + build_batch([(1, None, b"seen", ())], base_offset=1)  # fmt: skip
        answer = TYPES.PartitionData(
            partition_index=0,
            high_watermark=2,
            records=bytes(data),
            aborted_transactions=[TYPES.AbortedTransaction(producer_id=9, first_offset=0)],
        )
        broker.handlers[ApiKey.FETCH] = in_turn(
            TYPES.FetchResponse(
                responses=[TYPES.FetchableTopicResponse(topic_id=topic_id("t"), partitions=[answer])]
            ),
            log.fetch,
        )
        async with Consumer(client, isolation_level=READ_COMMITTED, max_wait_ms=10) as consumer:
            consumer.assign({TP: 0})
            assert [record.value for record in await read(consumer, 1)] == [b"seen"]
        assert broker.requests(ApiKey.FETCH)[0].isolation_level == READ_COMMITTED

    run(scenario)


class Group:
    """A coordinator for one member; `heartbeats` are errors to answer with, one after the other."""

    def __init__(self, broker: FakeBroker) -> None:
        self.generation = 0
        self.members = 0
        self.committed = -1
        self.heartbeats: list[int] = []
        self.left: list[str] = []
        self.assignment = b""
        broker.handlers.update(
            {
                ApiKey.FIND_COORDINATOR: lambda _: coordinator(1),
                ApiKey.JOIN_GROUP: self.join,
                ApiKey.SYNC_GROUP: self.sync,
                ApiKey.HEARTBEAT: self.heartbeat,
                ApiKey.LEAVE_GROUP: self.leave,
                ApiKey.OFFSET_FETCH: self.fetch_offsets,
                ApiKey.OFFSET_COMMIT: self.commit,
            }
        )

    def join(self, request: Any) -> Any:
        types = response_types(ApiKey.JOIN_GROUP)
        if not request.member_id and request.group_instance_id is None:
            self.members += 1
            return types.JoinGroupResponse(error_code=79, member_id=f"m-{self.members}", protocol_name="")
        self.generation += 1
        member_id = request.member_id or "static"
        member = types.JoinGroupResponseMember(member_id=member_id, metadata=request.protocols[0].metadata)
        return types.JoinGroupResponse(
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name=request.protocols[0].name,
            leader=member_id,
            member_id=member_id,
            members=[member],
        )

    def sync(self, request: Any) -> Any:
        types = response_types(ApiKey.SYNC_GROUP)
        (given,) = request.assignments
        assignment = consumer_protocol.decode_assignment(given.assignment)
        assert [(p.topic, list(p.partitions)) for p in assignment.assigned_partitions] == [("t", [0])]
        return types.SyncGroupResponse(assignment=given.assignment)

    def heartbeat(self, _request: Any) -> Any:
        types = response_types(ApiKey.HEARTBEAT)
        return types.HeartbeatResponse(error_code=self.heartbeats.pop(0) if self.heartbeats else 0)

    def leave(self, request: Any) -> Any:
        self.left += [member.member_id for member in request.members]
        return response_types(ApiKey.LEAVE_GROUP).LeaveGroupResponse()

    def fetch_offsets(self, request: Any) -> Any:
        types = response_types(ApiKey.OFFSET_FETCH)
        partition = types.OffsetFetchResponsePartitions(
            partition_index=0, committed_offset=self.committed, metadata=""
        )
        topic = types.OffsetFetchResponseTopics(name="t", partitions=[partition])
        group = types.OffsetFetchResponseGroup(group_id=request.groups[0].group_id, topics=[topic])
        return types.OffsetFetchResponse(groups=[group])

    def commit(self, request: Any) -> Any:
        types = response_types(ApiKey.OFFSET_COMMIT)
        self.committed = request.topics[0].partitions[0].committed_offset
        partition = types.OffsetCommitResponsePartition(partition_index=0)
        topic = types.OffsetCommitResponseTopic(name="t", partitions=[partition])
        return types.OffsetCommitResponse(topics=[topic])
