"""The client: finds brokers, leaders and coordinators, keeps a connection to each, retries until a deadline.

admin.py, producer.py, consumer.py and any tool that uses `send` decide what is sent.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from socket import gaierror
from typing import Any, Final, TypeVar

from odradek.client.connection import BrokerConnection
from odradek.client.metadata import ClusterMetadata
from odradek.client.watching import PATIENCE_S, MovedError, Question, Watcher
from odradek.core.config.listeners import why_unsupported
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_LEADER, TopicPartition
from odradek.runtime.api import Runtime
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

T = TypeVar("T")

GROUP_COORDINATOR, TRANSACTION_COORDINATOR = 0, 1
_MOST_COORDINATORS = 4_096
"""How many groups and transactional ids a client remembers coordinators for."""
_WATCH: Final = "watch"
"""The channel of questions about silent brokers: an answer never waits for that of a Produce before it."""
_SUSPECT_S: Final = 5.0
"""How long a broker that was silent is asked last."""
_CONNECT_S: Final = 1.0
"""How long an address may take to connect while there are others to try."""


class AdvertisedAddressError(OSError):
    """The cluster was reached, but not one of its brokers under the address by which it is named."""


class Client:
    """Talks to one cluster. Errors of brokers are KafkaError, those of the network OSError.

    `send` asks once. What is built on `retrying` asks again after what may pass, until its deadline.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str],
        *,
        runtime: Runtime | None = None,
        client_id: str = "odradek",
        request_timeout_ms: int = 30_000,
        api_timeout_ms: int = 60_000,
        retry_backoff_ms: int = 100,
        retry_backoff_max_ms: int = 1_000,
    ) -> None:
        self.bootstrap = parse_servers(bootstrap_servers)
        self.runtime = runtime if runtime is not None else _real_runtime()
        self.client_id = client_id
        self.request_timeout_ms = request_timeout_ms
        self.api_timeout_ms = api_timeout_ms
        self.cluster = ClusterMetadata()
        self._backoff_ms = retry_backoff_ms
        self._backoff_max_ms = retry_backoff_max_ms
        self._connections: dict[tuple[str, int, str], BrokerConnection] = {}
        self._reached: set[tuple[str, int]] = set()
        self._opening: dict[tuple[str, int, str], asyncio.Lock] = {}
        self._coordinators: dict[tuple[int, str], int] = {}
        self._watcher = Watcher()
        self._suspects: dict[tuple[str, int], float] = {}
        self._channels = 0
        self._closed = False

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        self._closed = True
        await self._watcher.close()
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    async def send(
        self,
        api_key: int,
        request: Any,
        *,
        node_id: int | None = None,
        channel: str = "",
        version: int | None = None,
        max_version: int | None = None,
        timeout_ms: int | None = None,
    ) -> Any:
        """One request to one broker, any when none is named; the response in the newest shape.

        Answers come in order, so what may wait long (a fetch, a join) takes a `channel` of its own.
        """
        connection = await (self.any_connection() if node_id is None else self.connection(node_id, channel))
        return await connection.send(
            api_key, request, version, max_version=max_version, timeout_ms=timeout_ms
        )

    # Connections

    async def connection(self, node_id: int, channel: str = "") -> BrokerConnection:
        broker = self.cluster.brokers.get(node_id)
        if broker is None:
            await self.refresh()
            broker = self.cluster.brokers.get(node_id)
        if broker is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"there is no broker {node_id} in the cluster")
        try:
            return await self._connect(broker.host, broker.port, channel)
        except OSError as e:
            address = (broker.host, broker.port)
            if self._closed or address in self.bootstrap or address in self._reached:
                raise
            asked = ", ".join(f"{host}:{port}" for host, port in self.bootstrap)
            raise AdvertisedAddressError(
                f"{asked} names its broker {broker.host}:{broker.port}, which cannot be reached "
                f"({e.strerror or e}): check advertised.listeners"
            ) from e

    async def any_connection(self) -> BrokerConnection:
        """An open connection if there is one, else one to the first address that answers."""
        failure: OSError | None = None
        addresses = self._addresses()
        for left, (host, port) in zip(reversed(range(len(addresses))), addresses, strict=True):
            try:
                async with asyncio.timeout(_CONNECT_S if left else None):
                    return await self._connect(host, port)
            except OSError as e:
                failure = e
        assert failure is not None
        raise failure

    def _addresses(self, channel: str = "", avoid: int | None = None) -> list[tuple[str, int]]:
        """Whom to ask what anybody knows: open connections first, brokers that were silent last."""
        open_ = [
            (host, port)
            for (host, port, used_by), connection in self._connections.items()
            if used_by == channel and connection.is_open
        ]
        known = [(broker.host, broker.port) for _, broker in sorted(self.cluster.brokers.items())]
        avoided = self.cluster.brokers.get(-1 if avoid is None else avoid)
        found = dict.fromkeys([*open_, *known, *self.bootstrap])
        if avoided is not None:
            found.pop((avoided.host, avoided.port), None)
        if not self._suspects:
            return list(found)
        now = asyncio.get_running_loop().time()
        return sorted(found, key=lambda address: self._suspects.get(address, 0) > now)

    async def ask_anyone(
        self, api_key: int, request: Any, *, channel: str = "", avoid: int | None = None
    ) -> Any:
        """The response of any broker, but for one to `avoid`. A silent one is left for the next: only for
        what may be asked twice."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.request_timeout_ms / 1000
        patience_s = PATIENCE_S
        while True:
            addresses = self._addresses(channel, avoid)
            if not addresses:
                raise ConnectionRefusedError("there is no other broker to ask")
            failure, is_silent = OSError(), False
            for address in addresses:
                limit = deadline if len(addresses) == 1 else min(deadline, loop.time() + patience_s)
                try:
                    async with asyncio.timeout_at(limit):
                        connection = await self._connect(*address, channel)
                        response = await connection.send(api_key, request)
                except OSError as e:
                    failure = e
                    if isinstance(e, TimeoutError):
                        is_silent = True
                        self._suspects[address] = loop.time() + _SUSPECT_S
                    if loop.time() >= deadline:
                        raise
                else:
                    self._suspects.pop(address, None)
                    return response
            if not is_silent:
                raise failure
            patience_s *= 2

    def finalized_feature(self, name: str) -> int:
        """The level of a feature from the ApiVersions answer of the newest open connection; 0 if it has
        none."""
        newest = max(self._connections.values(), key=lambda c: (c.is_open, c.features_epoch), default=None)
        return 0 if newest is None else newest.features.get(name, 0)

    def new_channel(self, name: str) -> str:
        """A name that no other user of this client has for connections of its own."""
        self._channels += 1
        return f"{name} {self._channels}"

    def close_channel(self, channel: str) -> None:
        """End the connections of a channel that is no longer used."""
        for address in [address for address in self._connections if address[2] == channel]:
            self._connections.pop(address).close()
            self._opening.pop(address, None)

    async def _connect(self, host: str, port: int, channel: str = "") -> BrokerConnection:
        if self._closed:
            raise ConnectionAbortedError("the client is closed")
        address = (host, port, channel)
        async with self._opening.setdefault(address, asyncio.Lock()):
            connection = self._connections.get(address)
            if connection is None or not connection.is_open:
                connection = await BrokerConnection.open(
                    self.runtime,
                    host,
                    port,
                    client_id=self.client_id,
                    request_timeout_ms=self.request_timeout_ms,
                )
                self._connections[address] = connection
                self._reached.add((host, port))
            return connection

    # What is where

    async def refresh(
        self,
        topics: Iterable[str] | None = (),
        *,
        allow_auto_creation: bool = False,
        channel: str = "",
        avoid: int | None = None,
    ) -> ClusterMetadata:
        """Ask for brokers and these topics, None for all of them; not a broker to `avoid`."""
        types = request_types(ApiKey.METADATA)
        names = None if topics is None else list(dict.fromkeys(topics))
        wanted = None if names is None else [types.MetadataRequestTopic(name=name) for name in names]
        request = types.MetadataRequest(topics=wanted, allow_auto_topic_creation=allow_auto_creation)
        response = await self.ask_anyone(ApiKey.METADATA, request, channel=channel, avoid=avoid)
        self.cluster.update(response, all_topics=names is None)
        return self.cluster

    async def leader(self, tp: TopicPartition) -> int:
        """The leader of a partition, asked for when unknown; KafkaError when there is none now."""
        leader = self.cluster.leader(tp)
        if leader == NO_LEADER:
            await self.refresh([tp.topic])
            leader = self.cluster.leader(tp)
        if leader != NO_LEADER:
            return leader
        if tp.topic in self.cluster.errors:
            raise KafkaError(self.cluster.errors[tp.topic], place=f"topic {tp.topic}")
        topic = self.cluster.topics.get(tp.topic)
        if topic is None or tp.partition not in topic.partitions:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {tp}")
        raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {tp} has no leader")

    async def partitions(self, topic: str, *, allow_auto_creation: bool = False) -> list[int]:
        """The partitions of a topic, in order."""
        if topic not in self.cluster.topics:
            await self.refresh([topic], allow_auto_creation=allow_auto_creation)
        if topic in self.cluster.errors:
            raise KafkaError(self.cluster.errors[topic], place=f"topic {topic}")
        return sorted(self.cluster.topics[topic].partitions)

    async def coordinator(self, key: str, key_type: int = GROUP_COORDINATOR) -> int:
        """The broker that coordinates a group or transactional id; remembered until `forget_coordinator`."""
        node_id = self._coordinators.get((key_type, key))
        if node_id is not None:
            return node_id
        return await self._find_coordinator(key, key_type)

    async def _find_coordinator(
        self, key: str, key_type: int, *, channel: str = "", avoid: int | None = None
    ) -> int:
        types = request_types(ApiKey.FIND_COORDINATOR)
        request = types.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        response = await self.ask_anyone(ApiKey.FIND_COORDINATOR, request, channel=channel, avoid=avoid)
        (found,) = response.coordinators
        check(found.error_code, found.error_message, place=f"coordinator of {key}")
        if found.node_id not in self.cluster.brokers:
            await self.refresh(channel=channel, avoid=avoid)
        if len(self._coordinators) >= _MOST_COORDINATORS:
            del self._coordinators[next(iter(self._coordinators))]
        self._coordinators[key_type, key] = found.node_id
        return int(found.node_id)

    def forget_coordinator(self, key: str, key_type: int = GROUP_COORDINATOR) -> None:
        self._coordinators.pop((key_type, key), None)

    # Trying again

    async def retrying(self, attempt: Callable[[], Awaitable[T]], timeout_ms: int | None = None) -> T:
        """The result of the first attempt that succeeds.

        Errors that may pass, and broken connections, are tried again until the deadline, then raised.
        """
        timeout_ms = self.api_timeout_ms if timeout_ms is None else timeout_ms
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        tries = 0
        while True:
            try:
                return await attempt()
            except (KafkaError, OSError) as e:
                if not may_pass(e):
                    raise
                pause_s = self.backoff_ms(tries) / 1000
                if asyncio.get_running_loop().time() + pause_s >= deadline:
                    raise
            tries += 1
            await asyncio.sleep(pause_s)

    def backoff_ms(self, tries: int) -> float:
        """Doubling from try to try up to a limit, a part of it random: clients must not march in step."""
        pause = min(self._backoff_ms * (1 << min(tries, 20)), self._backoff_max_ms)
        return pause * (0.8 + 0.4 * self.runtime.rng.random())

    def forget_leader(self, tp: TopicPartition) -> None:
        """The next `leader` of this partition asks the cluster."""
        topic = self.cluster.topics.get(tp.topic)
        if topic is not None and tp.partition in topic.partitions:
            topic.partitions[tp.partition] = topic.partitions[tp.partition]._replace(leader=NO_LEADER)

    async def call_coordinator(
        self,
        key: str,
        api_key: int,
        request: Any,
        *,
        key_type: int = GROUP_COORDINATOR,
        channel: str = "",
        max_version: int | None = None,
        timeout_ms: int | None = None,
    ) -> Any:
        """Ask the coordinator of a group or transactional id once; a failing connection forgets where it
        was."""
        try:
            node_id = await self.coordinator(key, key_type)
            work = self.send(
                api_key,
                request,
                node_id=node_id,
                channel=channel,
                max_version=max_version,
                timeout_ms=timeout_ms,
            )
            return await self.while_coordinating(work, node_id, key, key_type)
        except MovedError:
            raise
        except OSError:
            self.forget_coordinator(key, key_type)
            raise

    # Silent brokers

    async def while_leading(
        self, work: Awaitable[T], node_id: int, partitions: Iterable[TopicPartition], patience_ms: float = 0
    ) -> T:
        """The result of a request to the leader of partitions. MovedError if it is silent for longer than
        `patience_ms`, and another broker leads one of them: only for what may be sent twice."""
        wanted = list(partitions)
        topics = list(dict.fromkeys(tp.topic for tp in wanted))

        def has_moved() -> bool:
            return any(self.cluster.leader(tp) not in (node_id, NO_LEADER) for tp in wanted)

        async def ask() -> None:
            self._suspect(node_id)
            await self.refresh(topics, channel=_WATCH, avoid=node_id)

        question = Question((node_id, *topics), ask, has_moved)
        return await self._watched(work, node_id, question, PATIENCE_S + patience_ms / 1000)

    async def while_coordinating(
        self, work: Awaitable[T], node_id: int, key: str, key_type: int = GROUP_COORDINATOR
    ) -> T:
        """The result of a request to a coordinator. MovedError if it is silent, and another broker
        coordinates now."""

        def has_moved() -> bool:
            return self._coordinators.get((key_type, key), node_id) != node_id

        async def ask() -> None:
            self._suspect(node_id)
            await self._find_coordinator(key, key_type, channel=_WATCH, avoid=node_id)

        return await self._watched(work, node_id, Question((node_id, key_type, key), ask, has_moved))

    async def _watched(
        self, work: Awaitable[T], node_id: int, question: Question, patience_s: float = PATIENCE_S
    ) -> T:
        broker = self.cluster.brokers.get(node_id)
        try:
            return await self._watcher.until_moved(work, question, patience_s)
        except MovedError:
            # What is sent later to the same broker would wait behind what nobody waits for.
            for (host, port, _), connection in list(self._connections.items()):
                if broker is not None and (host, port) == broker[1:3] and connection.is_abandoned:
                    connection.close()
            raise

    def _suspect(self, node_id: int) -> None:
        broker = self.cluster.brokers.get(node_id)
        if broker is not None:
            until = asyncio.get_running_loop().time() + _SUSPECT_S
            self._suspects[broker.host, broker.port] = until


def may_pass(error: Exception) -> bool:
    """Whether asking again, perhaps somewhere else, may help."""
    if isinstance(error, KafkaError):
        return error.retriable or error.code is ErrorCode.BROKER_NOT_AVAILABLE
    if isinstance(error, AdvertisedAddressError) and isinstance(error.__cause__, gaierror):
        return False  # a name that has never led anywhere
    return isinstance(error, OSError)


def check(error_code: int, message: str | None = None, *, place: str | None = None) -> None:
    """Raise the KafkaError that a response's error code stands for."""
    if error_code:
        try:
            code = ErrorCode(error_code)
        except ValueError:
            code = ErrorCode.UNKNOWN_SERVER_ERROR
            message = f"unknown error code {error_code}" + (f": {message}" if message else "")
        raise KafkaError(code, message or None, place=place)


def parse_servers(servers: str | Sequence[str]) -> list[tuple[str, int]]:
    """host:port, several separated by commas; 9092 where no port is given, [..] around an IPv6 address.

    A security protocol may stand before each, as librdkafka's users write it: PLAINTEXT://host:port.
    """
    texts = servers.split(",") if isinstance(servers, str) else servers
    addresses = []
    for text in filter(None, (t.strip() for t in texts)):
        protocol, scheme, address = text.rpartition("://")
        problem = why_unsupported(protocol) if scheme else None
        if problem is not None:
            raise ValueError(f"{text}: {problem}")
        host, colon, port = address.rpartition(":")
        if not colon or (":" in host and not host.endswith("]")):
            host, port = address, "9092"
        if not port.isdigit():
            raise ValueError(f"not an address: {text!r}")
        if not 0 < int(port) <= 65535:
            raise ValueError(f"not a port: {port} in {text!r}")
        addresses.append((host.strip("[]"), int(port)))
    if not addresses:
        raise ValueError("no bootstrap server given")
    return addresses


def _real_runtime() -> Runtime:
    from odradek.runtime.real import RealRuntime

    return RealRuntime()
