"""A broker made of functions, one per API, on a real loopback socket. The test defines its answers."""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from odradek.runtime.api import Socket
from odradek.runtime.real import RealRuntime
from odradek.wire.api_keys import ApiKey
from odradek.wire.headers import parse_request_header, response_header
from odradek.wire.messages import request_decoder, response_encoder, response_types, versions

Handler = Callable[[Any], Any]


class HangUp(Exception):
    """Raised by a handler to close the connection instead of answering."""


class Silence(Exception):
    """Raised by a handler to leave a request without an answer."""


class FakeBroker:
    """Serves API_VERSIONS and METADATA by itself; `topics` are (name, partitions), all led by `leader`."""

    def __init__(self, node_id: int = 1) -> None:
        self.node_id = node_id
        self.runtime = RealRuntime()
        self.handlers: dict[int, Handler] = {
            ApiKey.API_VERSIONS: self.api_versions,
            ApiKey.METADATA: self.metadata,
        }
        self.topics: dict[str, int] = {"t": 1}
        self.leader = node_id
        self.leader_epoch = 0
        self.swallows = ""
        """A black hole: "requests" are not served, "answers" are not sent. Connections stay open."""
        self.peers: list[FakeBroker] = [self]
        self.features: dict[str, int] = {}
        self.features_epoch = 1
        self.api_limits: dict[int, tuple[int, int]] = {}
        self.seen: list[tuple[int, int, Any]] = []
        self.connections: list[Socket] = []
        self.port = 0
        self._tasks: list[asyncio.Task[None]] = []

    def listen(self) -> None:
        self.listener = self.runtime.net.listen("127.0.0.1", 0)
        self.port = self.listener.address[1]
        self.runtime.net.add_reader(self.listener, self._accept)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for sock in list(self.connections):
            self._hang_up(sock)
        if self.port:
            self.runtime.net.remove_reader(self.listener)
            self.listener.close()
            self.port = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def requests(self, api_key: int) -> list[Any]:
        return [request for key, _, request in self.seen if key == api_key]

    # Answers given without being asked to

    def api_versions(self, _request: Any) -> Any:
        types = response_types(ApiKey.API_VERSIONS)
        ranges = {key: self.api_limits.get(key, versions(key)) for key in ApiKey}
        apis = [
            types.ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in ranges.items()
        ]
        features = [
            types.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in self.features.items()
        ]
        return types.ApiVersionsResponse(
            api_keys=apis, finalized_features_epoch=self.features_epoch, finalized_features=features
        )

    def metadata(self, request: Any) -> Any:
        types = response_types(ApiKey.METADATA)
        names = list(self.topics) if request.topics is None else [topic.name for topic in request.topics]
        return types.MetadataResponse(
            cluster_id="fake",
            controller_id=self.node_id,
            brokers=[
                types.MetadataResponseBroker(node_id=b.node_id, host="127.0.0.1", port=b.port)
                for b in self.peers
            ],
            topics=[self._topic(types, name) for name in names],
        )

    def _topic(self, types: Any, name: str) -> Any:
        if name not in self.topics:
            return types.MetadataResponseTopic(error_code=3, name=name)
        partitions = [
            types.MetadataResponsePartition(
                partition_index=i,
                leader_id=self.leader,
                leader_epoch=self.leader_epoch,
                replica_nodes=[1],
                isr_nodes=[1],
            )
            for i in range(self.topics[name])
        ]
        return types.MetadataResponseTopic(name=name, topic_id=topic_id(name), partitions=partitions)

    # Sockets

    def _accept(self) -> None:
        try:
            sock = self.listener.accept()
        except BlockingIOError:
            return
        self.connections.append(sock)
        buffer = bytearray()
        self.runtime.net.add_reader(sock, lambda: self._readable(sock, buffer))

    def _hang_up(self, sock: Socket) -> None:
        if sock in self.connections:
            self.connections.remove(sock)
            self.runtime.net.remove_reader(sock)
            sock.close()

    def _readable(self, sock: Socket, buffer: bytearray) -> None:
        chunk = bytearray(1 << 16)
        try:
            count = sock.recv_into(chunk)
        except BlockingIOError:
            return
        except OSError:
            count = 0
        if count == 0:
            self._hang_up(sock)
            return
        buffer += chunk[:count]
        while len(buffer) >= 4:
            (size,) = struct.unpack_from(">i", buffer)
            if len(buffer) < size + 4:
                break
            frame = bytes(buffer[4 : size + 4])
            del buffer[: size + 4]
            self._serve(sock, frame)

    def _serve(self, sock: Socket, frame: bytes) -> None:
        if self.swallows == "requests":
            return
        header, position = parse_request_header(frame)
        request, _ = request_decoder(header.api_key, header.api_version)(frame, position)
        self.seen.append((header.api_key, header.api_version, request))
        try:
            answer = self.handlers[header.api_key](request)
        except HangUp:
            self._hang_up(sock)
            return
        except Silence:
            return

        def reply(response: Any) -> None:
            if response is None or self.swallows or sock not in self.connections:
                return
            body = response_encoder(header.api_key, header.api_version)(response)
            head = response_header(header.api_key, header.api_version, header.correlation_id)
            data = memoryview(struct.pack(">i", len(head) + len(body)) + head + body)
            while data:
                data = data[sock.send(data) :]

        if isinstance(answer, Awaitable):

            async def later() -> None:
                reply(await answer)

            self._tasks.append(asyncio.get_running_loop().create_task(later()))
        else:
            reply(answer)


def topic_id(name: str) -> UUID:
    return UUID(bytes=name.encode().ljust(16, b"\1")[:16], version=4)


@asynccontextmanager
async def fake_broker(node_id: int = 1) -> Any:
    broker = FakeBroker(node_id)
    broker.listen()
    try:
        yield broker
    finally:
        broker.close()


def always(response: Any) -> Handler:
    return lambda _request: response


def in_turn(*answers: Any) -> Handler:
    """Each call gets the next answer, the last one from then on; exceptions are raised, functions called."""
    left = list(answers)

    def handler(request: Any) -> Any:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, type) and issubclass(answer, Exception):
            raise answer
        return answer(request) if callable(answer) else answer

    return handler
