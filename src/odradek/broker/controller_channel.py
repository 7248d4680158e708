"""The way from this node to the active controller, wherever it is: here, or on the node that leads.

Both are asked in the same way. While nobody is active the call waits for news: another leader, a claim. It
tries again until its deadline. How another node is reached is the remote's business.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from odradek.core.configs import NodeConfig
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.principals import Requester
from odradek.core.types import NO_LEADER
from odradek.metadata.loader import MetadataLoader
from odradek.metadata.publisher import MetadataPublisher
from odradek.metadata.quorum_replica import QuorumReplica
from odradek.metadata.shown import shown
from odradek.wire.api_keys import ApiKey

Remote = Callable[[int, ApiKey, Any, Requester | None], Awaitable[Any]]
"""Asks the controller of another node, for this node or for a client. KafkaError where it is not reached, or
is not the active one."""

_ANOTHER_TRY: Final = frozenset((ErrorCode.NOT_CONTROLLER, ErrorCode.NETWORK_EXCEPTION))
_OF_THE_LIFECYCLE: Final = frozenset((ApiKey.BROKER_REGISTRATION, ApiKey.BROKER_HEARTBEAT))
"""Asked again by the lifecycle itself, which has news to send by then."""
_LEAVING_SEARCH_S: Final = 1.0
"""How long a broker that leaves looks for a controller: where all nodes stop, there will be none."""
_ROWS: Final = ("topics", "responses", "results")
_FIRST_BACKOFF_S: Final = 0.02
_LAST_BACKOFF_S: Final = 0.5
_SHOWN_SECONDS: Final = 5.0
"""How long an answer waits for the own image to show what it says."""


class LocalController(Protocol):
    on_changed: Callable[[], None]

    @property
    def is_active(self) -> bool: ...
    async def call(self, api_key: ApiKey, request: Any) -> Any: ...


async def nobody_else(controller_id: int, api_key: ApiKey, request: Any, requester: Requester | None) -> Any:
    """The remote of a node that is alone."""
    raise KafkaError(ErrorCode.NOT_CONTROLLER, f"controller {controller_id} cannot be reached")


class RoutedController:
    """A ControllerChannel. `local` is None on a node that is only a broker."""

    def __init__(
        self,
        config: NodeConfig,
        raft: QuorumReplica,
        loader: MetadataLoader,
        local: LocalController | None,
        remote: Remote,
        metadata: MetadataPublisher,
    ) -> None:
        self._timeout_s = config.int("request.timeout.ms") / 1000
        self._lifecycle_timeout_s = config.int("broker.session.timeout.ms") / 2000
        self._raft = raft
        self._loader = loader
        self._local = local
        self._remote = remote
        self._metadata = metadata
        self._changes = 0
        self._waiting: dict[asyncio.Future[None], None] = {}
        self._is_closed = False
        if local is None:
            raft.on_leader_changed = lambda epoch, leader_id: self._on_changed()
            raft.on_failed = loader.on_failed = lambda failure: self._on_changed()
        else:
            local.on_changed = self._on_changed

    async def call(self, api_key: ApiKey, request: Any, requester: Requester | None = None) -> Any:
        """REQUEST_TIMED_OUT where no active controller was found in time; NOT_CONTROLLER, and soon, for a
        broker that leaves. Raises what keeps this node from following the metadata, too."""
        loop = asyncio.get_running_loop()
        is_brief = api_key in _OF_THE_LIFECYCLE
        deadline = loop.time() + (self._lifecycle_timeout_s if is_brief else self._timeout_s)
        is_leaving = api_key is ApiKey.BROKER_HEARTBEAT and request.want_shut_down
        search_end = min(deadline, loop.time() + _LEAVING_SEARCH_S) if is_leaving else deadline
        backoff = _FIRST_BACKOFF_S
        while not self._is_closed:
            changes = self._changes
            leader_id = self._raft.leader_id
            is_remote = leader_id not in (NO_LEADER, self._raft.node_id)
            try:
                if self._local is not None and self._local.is_active:
                    return await self._local.call(api_key, request)
                failure = self._raft.failure or self._loader.failure
                if failure is not None:
                    raise failure
                if is_remote:
                    return await self._ask_remote(leader_id, (api_key, request, requester), deadline)
            except KafkaError as e:
                if e.code not in _ANOTHER_TRY:
                    raise
            if loop.time() >= search_end:
                code = ErrorCode.NOT_CONTROLLER if is_leaving else ErrorCode.REQUEST_TIMED_OUT
                raise KafkaError(code, "no active controller was found in time")
            if changes == self._changes:
                await self._wait(min(search_end, loop.time() + backoff) if is_remote else search_end)
                backoff = min(2 * backoff, _LAST_BACKOFF_S)
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "this node is stopping")

    def close(self) -> None:
        """Ask nobody any more."""
        self._is_closed = True
        self._on_changed()

    async def _ask_remote(
        self, leader_id: int, question: tuple[ApiKey, Any, Requester | None], deadline: float
    ) -> Any:
        """An answer that does not come is given up when another node leads."""
        asked = asyncio.ensure_future(self._remote(leader_id, *question))
        try:
            while not asked.done() and self._raft.leader_id == leader_id and not self._is_closed:
                if asyncio.get_running_loop().time() >= deadline:
                    raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"controller {leader_id} does not answer")
                await self._wait(deadline, asked)
            if not asked.done():
                raise KafkaError(ErrorCode.NOT_CONTROLLER, f"controller {leader_id} was deposed")
        finally:
            asked.cancel()
        response = asked.result()
        if _says_not_controller(response):
            raise KafkaError(ErrorCode.NOT_CONTROLLER, f"controller {leader_id} is not the active one")
        await self._show(*question[:2], response)
        return response

    async def _show(self, api_key: ApiKey, request: Any, response: Any) -> None:
        condition = shown(api_key, request, response)
        if condition is None:
            return
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _SHOWN_SECONDS
        showing = asyncio.ensure_future(self._metadata.until(condition))
        try:
            # The answer is true all the same where the image stays behind, or the node stops.
            while not showing.done() and not self._is_closed and loop.time() < deadline:
                await self._wait(deadline, showing)
        finally:
            showing.cancel()

    async def _wait(self, until: float, asked: "asyncio.Future[Any] | None" = None) -> None:
        """For news, an answer, or the time."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiting[waiter] = None
        timer = loop.call_at(until, _settle, waiter)
        if asked is not None:
            asked.add_done_callback(lambda done: _settle(waiter))
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiting.pop(waiter, None)

    def _on_changed(self) -> None:
        self._changes += 1
        for waiter in list(self._waiting):
            _settle(waiter)


def _says_not_controller(response: Any) -> bool:
    """Where an answer has no error of its own, every row of a request that was refused as a whole has it."""
    code = getattr(response, "error_code", None)
    if code is None:
        rows = next((getattr(response, name) for name in _ROWS if hasattr(response, name)), ())
        code = rows[0].error_code if rows else ErrorCode.NONE
    return bool(code == ErrorCode.NOT_CONTROLLER)


def _settle(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
