"""What is told of a voter whose process ends, and in which order."""

import asyncio
import socket
import struct

from odradek.client.connection import BrokerConnection
from odradek.core.errors import ErrorCode
from odradek.core.types import ZERO_UUID
from odradek.raft.events import Answered, ConnectionLost, DialRefused, Event
from odradek.raft.messages import AnswerBody, FetchAnswer, FetchRequest, Request
from odradek.raft.peers import Peers
from odradek.raft.ready import Send
from odradek.raft.voters import ReplicaKey, VoterEndpoint
from odradek.runtime.real import RealRuntime
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

OTHER = 2
REQUEST = FetchRequest(ReplicaKey(1, ZERO_UUID), 1, 0, 0, 500)
ANSWER = FetchAnswer(ErrorCode.NONE, OTHER, 1)
NEGOTIATED = b"\0\0\x02" + struct.pack(">hhh", ApiKey.API_VERSIONS, 0, 0) + b"\0\0\0\0\0\0"
"""ApiVersions v4: no error, one API, no throttling."""
ANSWERED = b"\0\0\0\0\0\0"
"""ApiVersions v0: no error, nothing served."""


class Asked:
    """Any question will do."""

    async def ask(self, connection: BrokerConnection, request: Request, timeout_ms: int) -> AnswerBody:
        await connection.send(ApiKey.API_VERSIONS, request_types(ApiKey.API_VERSIONS).ApiVersionsRequest())
        return ANSWER


async def read_request(peer: socket.socket) -> bytes:
    """Its correlation id."""
    loop = asyncio.get_running_loop()
    data = b""
    while len(data) < 4 or len(data) < 4 + struct.unpack_from(">i", data)[0]:
        data += await loop.sock_recv(peer, 4096)
    return data[8:12]


def frame(correlation_id: bytes, body: bytes) -> bytes:
    return struct.pack(">i", 4 + len(body)) + correlation_id + body


def test_the_last_answer_of_a_process_is_heard_before_its_end() -> None:
    """Both may have arrived when this node reads. The answer is no sign of life after the end."""
    events: list[Event] = []

    async def main() -> None:
        runtime = RealRuntime()
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setblocking(False)
        port = listener.getsockname()[1]
        peers = Peers(runtime, "test", (), 10_000, Asked(), events.append)
        peers.send(Send(OTHER, REQUEST, (VoterEndpoint("CONTROLLER", "127.0.0.1", port),)), "CONTROLLER")
        peer, _ = await asyncio.get_running_loop().sock_accept(listener)
        peer.setblocking(False)
        peer.send(frame(await read_request(peer), NEGOTIATED))
        correlation_id = await read_request(peer)
        listener.close()
        peer.send(frame(correlation_id, ANSWERED))
        peer.close()
        while not any(isinstance(event, DialRefused) for event in events):
            await asyncio.sleep(0.001)
        await peers.close()
        runtime.close()
        assert events == [Answered(OTHER, REQUEST, ANSWER), ConnectionLost(OTHER), DialRefused(OTHER)]

    asyncio.run(main())
