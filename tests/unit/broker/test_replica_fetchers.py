"""The connections of replica fetchers, to a leader that the test plays."""

import asyncio
import struct
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from odradek.broker.replica_fetchers import ReplicaFetchers, fetcher_settings
from odradek.core.configs import NodeConfig
from odradek.core.errors import ErrorCode
from odradek.replication.fetching.manager import FetcherManager
from odradek.replication.follower import PartitionFollower
from odradek.runtime.api import Socket
from odradek.runtime.real import RealNet, RealRuntime
from odradek.runtime.slices import Slices
from odradek.wire.api_keys import ApiKey
from odradek.wire.fetch import FetchRequest, PartitionFetched, encode_fetch_response
from odradek.wire.headers import RequestHeader, parse_request_header, response_header
from odradek.wire.messages import request_decoder, response_codec, response_types
from tests.unit.metadata.stack import until
from tests.unit.replication.fetching.support import EPOCH, LEADER, TOPIC_ID, batches, follower_of

BROKER_EPOCH = 77


class Asked(NamedTuple):
    header: RequestHeader
    request: Any
    writer: asyncio.StreamWriter

    async def answer(self, *partitions: PartitionFetched, session_id: int = 5, piece: int = 1 << 20) -> None:
        """Answer a fetch, in pieces of this size."""
        topics = [(UUID(bytes=TOPIC_ID), partitions)] if partitions else []
        pieces = encode_fetch_response(
            self.header.api_version, self.header.correlation_id, topics, session_id=session_id
        )
        await self.send(b"".join(pieces), piece)

    async def answer_offset(self, offset: int) -> None:
        types = response_types(ApiKey.LIST_OFFSETS)
        row = types.ListOffsetsPartitionResponse(partition_index=0, offset=offset)
        topic = types.ListOffsetsTopicResponse(name="orders", partitions=[row])
        version = self.header.api_version
        body = response_header(ApiKey.LIST_OFFSETS, version, self.header.correlation_id)
        body += response_codec(ApiKey.LIST_OFFSETS).encoder(version)(
            types.ListOffsetsResponse(topics=[topic])
        )
        await self.send(struct.pack(">i", len(body)) + body)

    async def send(self, data: bytes, piece: int = 1 << 20) -> None:
        for start in range(0, len(data), piece):
            self.writer.write(data[start : start + piece])
            await self.writer.drain()
            await asyncio.sleep(0)


class Leader:
    """Listens, and gives the test what it is asked."""

    def __init__(self) -> None:
        self.asked: asyncio.Queue[Asked] = asyncio.Queue()
        self.connections = 0
        self.address: tuple[str, int] = ("127.0.0.1", 0)

    async def __aenter__(self) -> "Leader":
        self._server = await asyncio.start_server(self._serve, *self.address)
        self.address = self._server.sockets[0].getsockname()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                frame = memoryview(await reader.readexactly(size))
                header, position = parse_request_header(frame)
                request: Any
                if header.api_key == ApiKey.FETCH:
                    request = FetchRequest.parse(frame, position, header.api_version)
                else:
                    request, _ = request_decoder(header.api_key, header.api_version)(frame, position)
                self.asked.put_nowait(Asked(header, request, writer))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def next(self, seconds: float = 10) -> Asked:
        async with asyncio.timeout(seconds):
            return await self.asked.get()


class Node:
    """The side of the follower."""

    def __init__(
        self, leader: Leader | None, followers: Sequence[PartitionFollower], **settings: str
    ) -> None:
        raw = {name.replace("_", "."): value for name, value in settings.items()}
        self.config, _ = NodeConfig.from_sources({}, {"replica.fetch.backoff.ms": "50", **raw})
        self.metadata_version = 30
        self.leader_address = None if leader is None else leader.address
        self.runtime = RealRuntime()
        self.shared = ReplicaFetchers(
            self.config,
            self.runtime,
            Slices(),
            lambda broker_id: self.leader_address if broker_id == LEADER else None,
            metadata_version=lambda: self.metadata_version,
            broker_epoch=lambda: BROKER_EPOCH,
        )
        self.fetchers = FetcherManager(fetcher_settings(self.config), self.shared.start)
        for follower in followers:
            self.fetchers.add(TOPIC_ID, follower)

    async def __aenter__(self) -> "Node":
        self.fetchers.wake()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.fetchers.close()
        await self.shared.close()
        assert self.shared.pool.in_use == 0, "all buffers are given back"
        self.runtime.close()


def play(story: Callable[[Leader], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Leader() as leader, asyncio.timeout(30):
            await story(leader)

    asyncio.run(main())


def fetched(records: bytes = b"", *, error: int = 0, high_watermark: int = 0) -> PartitionFetched:
    return PartitionFetched(0, error, high_watermark, 0, 0, None, records, len(records))


def test_a_fetch_has_the_settings_the_epochs_and_the_version_of_the_metadata(tmp_path: Path) -> None:
    async def story(leader: Leader) -> None:
        settings = {
            "replica_fetch_wait_max_ms": "123",
            "replica_fetch_min_bytes": "45",
            "replica_fetch_response_max_bytes": "6000",
            "replica_fetch_max_bytes": "789",
        }
        async with Node(leader, [follower_of(tmp_path)], **settings) as node:
            asked = await leader.next()
            assert asked.header.client_id == "broker-1-fetcher-0" and asked.header.api_version == 18
            request = asked.request
            assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (123, 45, 6000)
            assert (request.replica_id, request.replica_epoch) == (1, BROKER_EPOCH)
            ((topic, (partition,)),) = request.topics
            assert topic == UUID(bytes=TOPIC_ID) and partition.partition_max_bytes == 789
            assert (partition.current_leader_epoch, partition.fetch_offset) == (EPOCH, 0)
            node.metadata_version = 7
            await asked.answer(fetched())
            assert (await leader.next()).header.api_version == 13

    play(story)


def test_records_are_in_the_log_before_the_next_fetch_says_so(tmp_path: Path) -> None:
    async def story(leader: Leader) -> None:
        follower = follower_of(tmp_path)
        async with Node(leader, [follower]):
            asked = await leader.next()
            for offset in range(5):
                await asked.answer(fetched(batches(offset), high_watermark=offset))
                asked = await leader.next()
                assert asked.request.topics[0][1][0].fetch_offset == offset + 1
                assert (follower.log.log_end_offset, follower.log.high_watermark) == (offset + 1, offset)
        assert leader.connections == 1

    play(story)


def test_an_answer_may_be_large_and_come_in_pieces(tmp_path: Path) -> None:
    async def story(leader: Leader) -> None:
        follower = follower_of(tmp_path)
        async with Node(leader, [follower]):
            await (await leader.next()).answer(fetched(batches(0)), piece=1)
            records = batches(1, value=b"x" * 3_000_000)
            await (await leader.next()).answer(fetched(records), piece=50_000)
            await (await leader.next()).answer(fetched(batches(2)))
            await leader.next()
            assert follower.log.log_end_offset == 3 and follower.log.size_bytes > 3_000_000

    play(story)


def test_an_offset_out_of_range_asks_for_the_leaders_end_and_start(tmp_path: Path) -> None:
    async def story(leader: Leader) -> None:
        follower = follower_of(tmp_path)
        follower.append(batches(0), 1, 0)
        async with Node(leader, [follower]):
            await (await leader.next()).answer(fetched(error=ErrorCode.OFFSET_OUT_OF_RANGE))
            for timestamp, offset in ((-1, 90), (-2, 50)):
                asked = await leader.next()
                assert asked.header.api_key == ApiKey.LIST_OFFSETS and asked.header.api_version == 11
                (topic,) = asked.request.topics
                (row,) = topic.partitions
                assert (asked.request.replica_id, topic.name, row.partition_index) == (1, "orders", 0)
                assert (row.timestamp, row.current_leader_epoch) == (timestamp, EPOCH)
                await asked.answer_offset(offset)
            asked = await leader.next()
            assert asked.request.topics[0][1][0].fetch_offset == 50

    play(story)


def test_a_leader_that_closes_the_connection_is_dialled_again_for_a_new_session(tmp_path: Path) -> None:
    async def story(leader: Leader) -> None:
        async with Node(leader, [follower_of(tmp_path)]):
            await (await leader.next()).answer(fetched())
            asked = await leader.next()
            assert (asked.request.session_id, asked.request.session_epoch) == (5, 1)
            asked.writer.close()
            again = await leader.next()
            assert again.request.session_epoch == 0 and again.request.topics and leader.connections == 2

    play(story)


def test_a_leader_that_does_not_answer_in_time_is_dialled_again(tmp_path: Path) -> None:
    async def story(leader: Leader) -> None:
        async with Node(
            leader, [follower_of(tmp_path)], replica_fetch_wait_max_ms="50", replica_socket_timeout_ms="100"
        ):
            first = await leader.next()
            loop = asyncio.get_running_loop()
            began = loop.time()
            second = await leader.next()
            assert loop.time() - began > 0.05 and leader.connections == 2
            with suppress(ConnectionError):  # too late: the connection is closed
                await first.answer(fetched(batches(0)))
            await second.answer(fetched())
            assert (await leader.next()).request.session_epoch == 1

    play(story)


def test_a_leader_whose_address_is_unknown_or_refuses_is_dialled_until_it_can_be_reached(
    tmp_path: Path,
) -> None:
    async def story(leader: Leader) -> None:
        async with Node(None, [follower_of(tmp_path)]) as node:
            await asyncio.sleep(0.05)
            assert leader.connections == 0
            with_nobody = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
            node.leader_address = with_nobody.sockets[0].getsockname()
            with_nobody.close()
            await with_nobody.wait_closed()
            await asyncio.sleep(0.1)
            node.leader_address = leader.address
            await leader.next()
            assert leader.connections == 1

    play(story)


def test_damaged_answers_end_the_connection_and_leave_the_log_alone(tmp_path: Path) -> None:
    async def story(leader: Leader) -> None:
        follower = follower_of(tmp_path)
        async with Node(leader, [follower]):
            for damaged in (
                struct.pack(">i", 2) + b"xx",
                struct.pack(">i", -1),
                struct.pack(">ii", 4, 1 << 20),  # another correlation id
                struct.pack(">iiB", 5, 1, 0),  # its head is missing
            ):
                asked = await leader.next()
                await asked.send(damaged)
            await (await leader.next()).answer(fetched(batches(0)))
            await leader.next()
            assert follower.log.log_end_offset == 1 and leader.connections == 5

    play(story)


def test_partitions_that_come_later_are_asked_for_with_the_next_fetch(tmp_path: Path) -> None:
    async def story(leader: Leader) -> None:
        async with Node(leader, [follower_of(tmp_path, 0)]) as node:
            asked = await leader.next()
            node.fetchers.add(TOPIC_ID, follower_of(tmp_path, 1))
            node.fetchers.wake()
            await asked.answer(fetched())
            ((_, partitions),) = (await leader.next()).request.topics
            assert [partition.partition_index for partition in partitions] == [1]

    play(story)


def test_a_fetcher_without_partitions_closes_its_connection(tmp_path: Path) -> None:
    async def story(leader: Leader) -> None:
        follower = follower_of(tmp_path)
        async with Node(leader, [follower]) as node:
            asked = await leader.next()
            node.fetchers.remove(follower.log.topic_partition)
            node.fetchers.wake()
            await until(lambda: asked.writer.is_closing())
            assert node.shared.pool.in_use == 0

    play(story)


def test_the_receive_buffer_of_the_socket_is_as_configured(tmp_path: Path) -> None:
    sizes: list[int] = []

    class Net(RealNet):
        async def connect(self, host: str, port: int, receive_buffer_bytes: int = -1) -> Any:
            sizes.append(receive_buffer_bytes)
            return await super().connect(host, port, receive_buffer_bytes)

    async def story(leader: Leader) -> None:
        node = Node(leader, [follower_of(tmp_path)], replica_socket_receive_buffer_bytes="123456")
        node.runtime.net = Net()
        async with node:
            await leader.next()
        sock: Socket = await RealNet().connect(*leader.address, 40_000)
        import socket

        raw = socket.socket(fileno=sock.fileno())
        assert raw.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 2 * 40_000  # as Linux counts
        raw.detach()
        sock.close()

    play(story)
    assert sizes == [123456]
