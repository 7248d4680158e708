"""Caller: the client of the workloads. It has one connection at a time, and reports the outcome of every
request.

It has no retries or caches, which would hide from the checkers what happened to a request.
"""

import asyncio
import random
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from odradek.client.connection import BrokerConnection
from odradek.runtime.api import Runtime
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import versions

PATIENCE_MS = 8_000


class NoAnswer(Exception):
    """The connection failed before the response: it is unknown whether the request was carried out."""


class Caller:
    """One connection, opened at the first use and again after a failure. Each API has one random version.

    It tries the addresses of `bootstrap` in turn.
    """

    def __init__(
        self,
        runtime: Runtime,
        bootstrap: Sequence[tuple[str, int]],
        client_id: str,
        rng: random.Random,
        *,
        min_versions: Mapping[ApiKey, int] | None = None,
    ) -> None:
        self._runtime = runtime
        self._min_versions = min_versions or {}
        assert bootstrap
        self._bootstrap = deque(bootstrap)
        self._client_id = client_id
        self._rng = rng
        self._versions: dict[ApiKey, int] = {}
        self._connection: BrokerConnection | None = None

    async def connect(self) -> None:
        """Connect now, so that the next request is sent at once to the running broker."""
        await self._connected()

    async def call(self, api_key: ApiKey, request: Any, *, version: int | None = None) -> Any:
        """Send and wait for the response."""
        return await self.answer(await self.send(api_key, request, version=version))

    async def send(self, api_key: ApiKey, request: Any, *, version: int | None = None) -> "asyncio.Task[Any]":
        """Send without waiting. `answer` waits for the response. Several requests may be in flight, in
        order."""
        connection = await self._connected()
        if version is None:
            version = self._version(connection, api_key)
        task = asyncio.get_running_loop().create_task(connection.send(api_key, request, version))
        task.add_done_callback(_look)
        return task

    async def send_unanswered(self, api_key: ApiKey, request: Any) -> None:
        connection = await self._connected()
        try:
            connection.send_unanswered(api_key, request)
        except OSError as e:
            raise NoAnswer(str(e)) from e

    async def answer(self, task: "asyncio.Task[Any]") -> Any:
        try:
            return await task
        except OSError as e:
            raise NoAnswer(str(e)) from e

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def move_on(self) -> None:
        """The next request goes to the next address."""
        self.close()
        self._connection = None
        self._bootstrap.rotate(-1)

    def _version(self, connection: BrokerConnection, api_key: ApiKey) -> int:
        version = self._versions.get(api_key)
        if version is None:
            ours, theirs = versions(api_key), connection.versions[api_key]
            first = max(ours[0], theirs[0], self._min_versions.get(api_key, 0))
            version = self._rng.randint(first, min(ours[1], theirs[1]))
            self._versions[api_key] = version
        return version

    async def _connected(self) -> BrokerConnection:
        if self._connection is None or not self._connection.is_open:
            try:
                self._connection = await BrokerConnection.open(
                    self._runtime,
                    *self._bootstrap[0],
                    client_id=self._client_id,
                    request_timeout_ms=PATIENCE_MS,
                )
            except OSError as e:
                self._bootstrap.rotate(-1)
                raise NoAnswer(f"cannot connect: {e}") from e
        return self._connection


def _look(task: "asyncio.Task[Any]") -> None:
    """Ignore the error of a request whose sender has given up."""
    if not task.cancelled():
        task.exception()
