"""Requests to the other replicas of the quorum: one connection to each, dialled when it is needed.

Answers and silence become events of the machine. A connection that breaks is dialled again at once: whether
that is refused is news, too.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol

from odradek.client.connection import BrokerConnection, Traffic
from odradek.core.errors import KafkaError, ProtocolError
from odradek.raft.events import Answered, ConnectionLost, DialRefused, Event, Unanswered
from odradek.raft.messages import AnswerBody, Request
from odradek.raft.ready import Send
from odradek.raft.voters import Endpoints
from odradek.runtime.api import Runtime
from odradek.runtime.scope import Scope

_log = logging.getLogger(__name__)

FIRST_BOOTSTRAP_SERVER: Final = -2

Endpoint = tuple[str, int]


class Translator(Protocol):
    """Messages as they travel (wire_messages.py)."""

    async def ask(self, connection: BrokerConnection, request: Request, timeout_ms: int) -> AnswerBody: ...


class Peers:
    """`send` returns at once; `on_event` hears what came of it."""

    def __init__(
        self,
        runtime: Runtime,
        client_id: str,
        bootstrap_servers: Sequence[Endpoint],
        request_timeout_ms: int,
        translator: Translator,
        on_event: Callable[[Event], None],
    ) -> None:
        self._runtime = runtime
        self._client_id = client_id
        self._bootstrap_servers = bootstrap_servers
        self._request_timeout_ms = request_timeout_ms
        self._translator = translator
        self._on_event = on_event
        self._connections: dict[Endpoint, asyncio.Future[BrokerConnection]] = {}
        self._nodes: dict[Endpoint, int] = {}  # who is there, as soon as it is known
        self._scope = Scope(lambda error: _log.error("A request to another voter failed", exc_info=error))
        self._is_closing = False
        self.traffic = Traffic()
        self.lost: set[int] = set()
        """Nodes whose connection broke, and to which there is no other since."""

    def send(self, send: Send, listener_name: str) -> None:
        endpoint = self._endpoint(send, listener_name)
        if self._is_closing:
            return
        if endpoint is None:
            _log.debug("No address of node %d is known", send.to)
            asyncio.get_running_loop().call_soon(self._on_event, Unanswered(send.to, send.request))
            return
        self._scope.spawn(self._exchange(send, endpoint), name=f"raft-to-{send.to}")

    def _endpoint(self, send: Send, listener_name: str) -> Endpoint | None:
        if send.to <= FIRST_BOOTSTRAP_SERVER:
            return self._bootstrap_servers[FIRST_BOOTSTRAP_SERVER - send.to]
        return chosen_endpoint(send.endpoints, listener_name)

    async def _exchange(self, send: Send, endpoint: Endpoint) -> None:
        try:
            connection = await self._connection(send.to, endpoint)
            answer = await self._translator.ask(connection, send.request, self._request_timeout_ms)
        except (OSError, ProtocolError, KafkaError) as e:
            _log.debug("Node %d did not answer %s: %s", send.to, type(send.request).__name__, e)
            self._on_event(Unanswered(send.to, send.request))
        else:
            self._on_event(Answered(send.to, send.request, answer))

    async def _connection(self, node_id: int, endpoint: Endpoint) -> BrokerConnection:
        known = self._connections.get(endpoint)
        if node_id >= 0:
            self._nodes[endpoint] = node_id
        if known is None or (known.done() and not _is_open(known)):
            known = self._connections[endpoint] = asyncio.ensure_future(self._dial(endpoint))
        return await asyncio.shield(known)

    async def _dial(self, endpoint: Endpoint) -> BrokerConnection:
        try:
            connection = await BrokerConnection.open(
                self._runtime,
                *endpoint,
                client_id=self._client_id,
                request_timeout_ms=self._request_timeout_ms,
                traffic=self.traffic,
            )
        except ConnectionRefusedError:
            if endpoint in self._nodes:
                self._on_event(DialRefused(self._nodes[endpoint]))
            raise
        self.lost.discard(self._nodes.get(endpoint, FIRST_BOOTSTRAP_SERVER))
        connection.on_closed = partial(self._lost, endpoint)
        return connection

    def _lost(self, endpoint: Endpoint) -> None:
        """An answer that came just before wakes its reader first: it is no sign of life after the end."""
        asyncio.get_running_loop().call_soon(self._look_for, endpoint)

    def _look_for(self, endpoint: Endpoint) -> None:
        """Say that the connection is lost, and find out whether anybody listens there."""
        node_id = self._nodes.get(endpoint)
        if self._is_closing or node_id is None:
            return
        self.lost.add(node_id)
        self._on_event(ConnectionLost(node_id))
        self._scope.spawn(self._look_again(node_id, endpoint), name=f"raft-dial-{node_id}")

    async def _look_again(self, node_id: int, endpoint: Endpoint) -> None:
        try:
            await self._connection(node_id, endpoint)
        except (OSError, ProtocolError, KafkaError) as e:
            _log.debug("Node %d cannot be reached: %s", node_id, e)

    async def close(self) -> None:
        self._is_closing = True
        await self._scope.close()
        for opening in self._connections.values():
            if not opening.done():
                opening.cancel()
            elif _is_open(opening):
                opening.result().close()
        self._connections.clear()


def chosen_endpoint(endpoints: Endpoints, listener_name: str) -> Endpoint | None:
    """That of a listener; where none has its name, the first."""
    named = [e for e in endpoints if e.name.upper() == listener_name.upper()] or list(endpoints)
    return (named[0].host, named[0].port) if named else None


def _is_open(opening: "asyncio.Future[Any]") -> bool:
    return not opening.cancelled() and opening.exception() is None and opening.result().is_open
