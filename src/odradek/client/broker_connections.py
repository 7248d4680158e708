"""Connections from this node to other nodes: one for each node, opened when it is needed and then kept.

What is asked over them, and what a failure means, is known to their users.
"""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from odradek.client.connection import BrokerConnection
from odradek.core.errors import ErrorCode, KafkaError, ProtocolError
from odradek.runtime.api import Runtime
from odradek.wire.api_keys import ApiKey

Endpoint = tuple[str, int]


class _Kept(NamedTuple):
    endpoint: Endpoint
    opening: "asyncio.Future[BrokerConnection]"


class BrokerConnections:
    """`endpoint_of` gives host and port of a node, or None where nobody knows them now."""

    def __init__(
        self, runtime: Runtime, client_id: str, timeout_ms: int, endpoint_of: Callable[[int], Endpoint | None]
    ) -> None:
        self._runtime = runtime
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._endpoint_of = endpoint_of
        self._kept: dict[int, _Kept] = {}

    async def get(self, node_id: int) -> BrokerConnection:
        """KafkaError BROKER_NOT_AVAILABLE where the node has no known address, or cannot be reached there."""
        endpoint = self._endpoint_of(node_id)
        if endpoint is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"node {node_id} has no known address")
        kept = self._kept.get(node_id)
        if kept is None or kept.endpoint != endpoint or _has_ended(kept.opening):
            if kept is not None:
                _close(kept.opening)
            kept = self._kept[node_id] = _Kept(endpoint, self._open(endpoint))
        opening = kept.opening
        if not opening.done():
            await asyncio.wait((opening,))  # others may wait for it, too: who is cancelled leaves it alone
        error = None if opening.cancelled() else opening.exception()
        if isinstance(error, OSError | ProtocolError | KafkaError):
            message = f"cannot reach node {node_id}: {error}"
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, message) from error
        if opening.cancelled():
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"node {node_id} has another address by now")
        return opening.result()

    async def ask(self, node_id: int, api_key: ApiKey, request: Any, min_version: int = 0) -> Any:
        """The response, in the newest version that both know.

        KafkaError: what `get` raises, NETWORK_EXCEPTION where no response came, UNSUPPORTED_VERSION.
        """
        connection = await self.get(node_id)
        version = connection.choose_version(api_key)
        if version < min_version:
            message = f"node {node_id} serves {api_key.name} up to version {version} only"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)
        try:
            return await connection.send(api_key, request, version)
        except (OSError, ProtocolError) as e:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, f"node {node_id}: {e}") from e

    def _open(self, endpoint: Endpoint) -> "asyncio.Future[BrokerConnection]":
        host, port = endpoint
        opening = asyncio.ensure_future(
            BrokerConnection.open(
                self._runtime, host, port, client_id=self._client_id, request_timeout_ms=self._timeout_ms
            )
        )
        opening.add_done_callback(_mark_as_seen)
        return opening

    def close(self) -> None:
        for kept in self._kept.values():
            _close(kept.opening)
        self._kept.clear()


def _has_ended(opening: "asyncio.Future[BrokerConnection]") -> bool:
    if not opening.done():
        return False
    return opening.cancelled() or opening.exception() is not None or not opening.result().is_open


def _mark_as_seen(opening: "asyncio.Future[BrokerConnection]") -> None:
    """Nobody may be left to wait for it; asyncio would complain of an error that nobody looked at."""
    if not opening.cancelled():
        opening.exception()


def _close(opening: "asyncio.Future[BrokerConnection]") -> None:
    if not opening.done():
        opening.cancel()
    elif not opening.cancelled() and opening.exception() is None:
        opening.result().close()
