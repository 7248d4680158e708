"""The connections of replica fetchers: one for each fetcher, with one request in flight.

fetching/ decides what is asked and applies the answers. A leader that cannot be reached is dialled again
later, at the address that the metadata has then.
"""

import asyncio
import logging
from collections.abc import Callable
from struct import Struct
from typing import Any, Final

from odradek.broker.network.buffers import BufferPool
from odradek.broker.network.input import InputBuffer
from odradek.client.broker_connections import Endpoint
from odradek.core.configs import NodeConfig
from odradek.core.errors import ErrorCode, ProtocolError
from odradek.core.types import TopicPartition
from odradek.replication.fetching.fetcher import Fetcher, FetchRequest, OffsetsRequest, known_error
from odradek.replication.fetching.manager import FetcherSettings
from odradek.replication.fetching.requests import Fetching, FetchLimits, encode_fetch_request
from odradek.replication.fetching.responses import parse_fetch_response
from odradek.replication.fetching.versions import fetch_version, list_offsets_version
from odradek.runtime.api import Runtime, Socket
from odradek.runtime.reply import Reply
from odradek.runtime.scope import Scope
from odradek.runtime.slices import Paced, Slices
from odradek.wire.api_keys import ApiKey
from odradek.wire.headers import encode_request, parse_response_header, request_frame_header
from odradek.wire.messages import request_types, response_decoder

_log = logging.getLogger(__name__)

_SIZE: Final = Struct(">i")
_LARGEST_RESPONSE_BYTES: Final = 1 << 30
_SEND_CALLS: Final = 20


def fetcher_settings(config: NodeConfig) -> FetcherSettings:
    return FetcherSettings(
        config.int("num.replica.fetchers"),
        FetchLimits(
            config.int("replica.fetch.wait.max.ms"),
            config.int("replica.fetch.min.bytes"),
            config.int("replica.fetch.response.max.bytes"),
            config.int("replica.fetch.max.bytes"),
        ),
        config.int("replica.fetch.backoff.ms"),
    )


class ReplicaFetchers:
    """What all fetchers of a node share. `start` gives a fetcher its connection."""

    def __init__(
        self,
        config: NodeConfig,
        runtime: Runtime,
        slices: Slices,
        endpoint_of: Callable[[int], Endpoint | None],
        metadata_version: Callable[[], int],
        broker_epoch: Callable[[], int],
    ) -> None:
        self.broker_id = config.node_id
        self.limits = fetcher_settings(config).limits
        self.timeout_ms = config.int("replica.socket.timeout.ms")
        self.receive_buffer_bytes = config.int("replica.socket.receive.buffer.bytes")
        self.runtime = runtime
        self.slices = slices
        self.endpoint_of = endpoint_of
        self.metadata_version = metadata_version
        self.broker_epoch = broker_epoch
        self.pool = BufferPool()
        self.scope = Scope(lambda error: _log.error("A replica fetcher failed", exc_info=error))

    def start(self, fetcher: Fetcher) -> "FetcherConnection":
        return FetcherConnection(self, fetcher)

    async def close(self) -> None:
        """The fetchers are closed before."""
        await self.scope.close()


class FetcherConnection:
    """Asks the leader for one fetcher. It is busy from a question to the next one, and idle while there is
    nothing to ask."""

    def __init__(self, shared: ReplicaFetchers, fetcher: Fetcher) -> None:
        self._shared = shared
        self._fetcher = fetcher
        self._client_id = f"broker-{shared.broker_id}-fetcher-{fetcher.index}"
        self._socket: Socket | None = None
        self._input = InputBuffer(shared.pool)
        self._output: memoryview | None = None
        self._asked: FetchRequest | OffsetsRequest | None = None
        self._version = 0
        self._correlation_id = 0
        self._asked_at_ms = 0
        self._is_busy = False
        self._is_closed = False
        self._is_woken = False
        self._is_taking = False  # an answer in the input buffer is being applied
        self._is_deaf = False  # the socket became readable with nothing asked
        self._wake_timer: asyncio.TimerHandle | None = None
        self._timeout_timer: asyncio.TimerHandle | None = None

    # --- turns ----------------------------------------------------------------------------------------

    def wake(self) -> None:
        if not self._is_busy and not self._is_woken and not self._is_closed:
            self._is_woken = True
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        self._is_woken = False
        if not self._is_busy and not self._is_closed:
            self._run(self._ask())

    def _run(self, work: Paced[None]) -> None:
        self._is_busy = True
        self._shared.slices.run(work, own=True).when_ready(self._ran)

    def _ran(self, reply: Reply[None]) -> None:
        if isinstance(reply.error, ProtocolError | OSError):
            self._lose(reply.error)
        elif reply.error is not None:
            _log.error("Error in a replica fetcher", exc_info=reply.error)
            self._lose(ConnectionAbortedError("internal error"))

    def _now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000)

    def _ask(self) -> Paced[None]:
        """Ask what the fetcher wants, or become idle."""
        if self._wake_timer is not None:
            self._wake_timer.cancel()
            self._wake_timer = None
        fetcher = self._fetcher
        request = None
        if fetcher.is_settled:
            request = yield from fetcher.next_request(self._now_ms())
        if self._is_closed:
            return
        self._asked = request
        if request is None:
            self._rest()
        elif self._socket is None:
            self._shared.scope.spawn(self._dial(), name=self._client_id)
        else:
            self._send(request)
        yield _SEND_CALLS

    def _rest(self) -> None:
        """Nothing can be asked. New partitions, flushes and the end of a delay wake this fetcher."""
        self._is_busy = False
        at_ms = self._fetcher.wake_at_ms if self._fetcher.is_settled else None
        if at_ms is not None:
            delay_s = max(1, at_ms - self._now_ms()) / 1000
            self._wake_timer = asyncio.get_running_loop().call_later(delay_s, self.wake)

    # --- the connection -------------------------------------------------------------------------------

    async def _dial(self) -> None:
        """Connect, and ask."""
        shared = self._shared
        try:
            endpoint = shared.endpoint_of(self._fetcher.leader_id)
            if endpoint is None:
                raise ConnectionAbortedError("its address is unknown")
            async with asyncio.timeout(shared.timeout_ms / 1000):
                sock = await shared.runtime.net.connect(*endpoint, shared.receive_buffer_bytes)
        except OSError as e:
            self._lose(e)
            return
        if self._is_closed:
            sock.close()
            return
        self._socket = sock
        shared.runtime.net.add_reader(sock, self._on_readable)
        request = self._asked
        assert request is not None
        try:
            self._send(request)
        except OSError as e:
            self._lose(e)

    def _lose(self, reason: Exception) -> None:
        """The leader cannot be reached, or the connection failed: ask again later."""
        if self._is_closed:
            return
        self._disconnect()
        self._fetcher.unanswered(self._now_ms(), str(reason))
        self._rest()

    def _disconnect(self) -> None:
        if self._timeout_timer is not None:
            self._timeout_timer.cancel()
            self._timeout_timer = None
        if self._socket is not None:
            net = self._shared.runtime.net
            net.remove_reader(self._socket)
            net.remove_writer(self._socket)
            self._socket.close()
            self._socket = None
        self._output = None
        self._asked = None
        self._is_deaf = False
        if not self._is_taking:
            self._input.release()

    def close(self) -> None:
        self._is_closed = True
        if self._wake_timer is not None:
            self._wake_timer.cancel()
        self._disconnect()

    # --- out ------------------------------------------------------------------------------------------

    def _send(self, request: FetchRequest | OffsetsRequest) -> None:
        shared = self._shared
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        level = shared.metadata_version()
        if isinstance(request, FetchRequest):
            self._version = fetch_version(level)
            body = encode_fetch_request(
                self._version, Fetching(shared.broker_id, shared.broker_epoch()), shared.limits, *request
            )
            frame = (
                request_frame_header(
                    ApiKey.FETCH, self._version, self._correlation_id, self._client_id, len(body)
                )
                + body
            )
        else:
            self._version = list_offsets_version(level)
            frame = encode_request(
                ApiKey.LIST_OFFSETS,
                self._version,
                self._correlation_id,
                self._client_id,
                _list_offsets(shared.broker_id, request),
            )
        if self._is_deaf:
            self._is_deaf = False
            assert self._socket is not None
            shared.runtime.net.add_reader(self._socket, self._on_readable)
        if self._timeout_timer is None:
            self._arm_timeout(shared.timeout_ms)
        self._asked_at_ms = self._now_ms()
        self._output = memoryview(frame)
        self._send_rest()

    def _send_rest(self) -> None:
        assert self._socket is not None and self._output is not None
        try:
            sent = self._socket.send(self._output)
        except (BlockingIOError, InterruptedError):
            sent = 0
        if sent == len(self._output):
            self._output = None
        else:
            self._output = self._output[sent:]
            self._shared.runtime.net.add_writer(self._socket, self._on_writable)

    def _on_writable(self) -> None:
        try:
            assert self._socket is not None
            self._send_rest()
            if self._output is None:
                self._shared.runtime.net.remove_writer(self._socket)
        except OSError as e:
            self._lose(e)

    def _arm_timeout(self, delay_ms: int) -> None:
        """One timer serves all requests of a connection: it looks when the last one was sent."""
        loop = asyncio.get_running_loop()
        self._timeout_timer = loop.call_later(delay_ms / 1000, self._time_out)

    def _time_out(self) -> None:
        left_ms = self._asked_at_ms + self._shared.timeout_ms - self._now_ms()
        if self._asked is None or left_ms > 0:
            self._arm_timeout(max(left_ms, 1) if self._asked is not None else self._shared.timeout_ms)
        else:
            self._timeout_timer = None
            self._lose(TimeoutError(f"no answer within {self._shared.timeout_ms} ms"))

    # --- in -------------------------------------------------------------------------------------------

    def _on_readable(self) -> None:
        assert self._socket is not None
        if self._asked is None:  # the connection has ended: the next question finds out
            self._is_deaf = True
            self._shared.runtime.net.remove_reader(self._socket)
            return
        buffered = self._input
        try:
            if not buffered.receive(self._socket):
                raise ConnectionResetError("the leader closed the connection")
            held = buffered.end - buffered.start
            if held < _SIZE.size:
                buffered.keep(buffered.start, _SIZE.size)
                return
            assert buffered.view is not None
            (size,) = _SIZE.unpack_from(buffered.view, buffered.start)
            if not 4 <= size <= _LARGEST_RESPONSE_BYTES:
                raise ProtocolError(f"the leader announced a response of {size} bytes")
            need = _SIZE.size + size
            if held < need:
                buffered.keep(buffered.start, need)
                return
            if held > need:
                raise ProtocolError("the leader sent more than one response")
            frame = buffered.view[buffered.start + _SIZE.size : buffered.end]
        except (BlockingIOError, InterruptedError):
            return
        except (OSError, ProtocolError) as e:
            self._lose(e)
            return
        buffered.expect(need)
        asked, self._asked = self._asked, None
        self._run(self._take(asked, frame))

    def _take(self, asked: FetchRequest | OffsetsRequest, frame: memoryview) -> Paced[None]:
        """Apply an answer, then ask again.

        The next request goes out after the records are in the page cache: it says that this node has them.
        """
        self._is_taking = True
        try:
            api_key = ApiKey.FETCH if isinstance(asked, FetchRequest) else ApiKey.LIST_OFFSETS
            correlation_id, position = parse_response_header(frame, 0, api_key, self._version)
            if correlation_id != self._correlation_id:
                raise ProtocolError("the leader answered another request")
            if isinstance(asked, FetchRequest):
                answer = yield from parse_fetch_response(frame, position)
                yield from self._fetcher.fetched(answer, self._now_ms())
            else:
                response, _ = response_decoder(api_key, self._version)(frame, position)
                self._fetcher.found_offsets(asked, _offsets(response), self._now_ms())
        finally:
            self._is_taking = False
            self._input.release()
        if not self._is_closed:
            yield from self._ask()


def _list_offsets(broker_id: int, request: OffsetsRequest) -> Any:
    types = request_types(ApiKey.LIST_OFFSETS)
    topics: dict[str, list[Any]] = {}
    for tp, partition in request.partitions.items():
        entry = types.ListOffsetsPartition(
            partition_index=tp.partition,
            current_leader_epoch=partition.follower.leader_epoch,
            timestamp=request.timestamp,
        )
        topics.setdefault(tp.topic, []).append(entry)
    return types.ListOffsetsRequest(
        replica_id=broker_id,
        isolation_level=0,
        topics=[types.ListOffsetsTopic(name=name, partitions=rows) for name, rows in topics.items()],
    )


def _offsets(response: Any) -> dict[TopicPartition, int | ErrorCode]:
    return {
        TopicPartition(topic.name, row.partition_index): (
            known_error(row.error_code) if row.error_code else row.offset
        )
        for topic in response.topics
        for row in topic.partitions
    }
