"""Drives quick_fencing.py for one term of the active controller: it dials, keeps the time, and lets fence.

Whether to dial and to fence is decided there. A dial only looks whether anybody listens at the broker's
address: it is closed at once.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from odradek.controller.quick_fencing import (
    ConnectionBroke,
    ConnectionProved,
    Dial,
    DialOther,
    DialRefused,
    Event,
    QuickFencing,
)
from odradek.controller.quick_fencing import Tick as TimePassed
from odradek.core.configs import NodeConfig
from odradek.runtime.api import Runtime
from odradek.runtime.scope import Scope

_log = logging.getLogger(__name__)

_DIAL_SECONDS: Final = 2.0
_DYING_SECONDS: Final = 0.1
"""A process that ends closes one socket after the other. The last of them may be the one that listens."""

Endpoint = tuple[str, int]
Fencing = Callable[[int, int, int], Coroutine[Any, Any, None]]
"""Fences a broker at an epoch, unless it was heard from since a time."""


class QuickFencer:
    """`proved` and `broke` tell it of connections. `endpoint_of` says where a broker listens."""

    def __init__(
        self,
        runtime: Runtime,
        config: NodeConfig,
        endpoint_of: Callable[[int], Endpoint | None],
        fence: Fencing,
    ) -> None:
        self._net = runtime.net
        self._endpoint_of = endpoint_of
        self._fence = fence
        self._machine = QuickFencing.of(config)
        self._broke_ms: dict[int, int] = {}
        self._owners: dict[int, int] = {}
        self._is_stopped = False
        self._timer: asyncio.TimerHandle | None = None
        self._scope = Scope(lambda error: _log.error("A dial of the controller failed", exc_info=error))

    def proved(self, broker_id: int, broker_epoch: int, connection: int) -> None:
        """A broker has named its current epoch on a connection."""
        self._owners[connection] = broker_id
        self._step(ConnectionProved(broker_id, broker_epoch, connection))

    def broke(self, connection: int) -> None:
        broker_id = self._owners.pop(connection, None)
        if broker_id is not None:
            self._broke_ms[broker_id] = _now_ms()
            loop = asyncio.get_running_loop()
            loop.call_later(_DYING_SECONDS, self._step, ConnectionBroke(connection))

    def stop(self) -> None:
        """Dial and fence no more."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._scope.cancel()

    def _step(self, event: Event) -> None:
        if self._is_stopped:
            return
        for effect in self._machine.step(event, _now_ms()):
            if isinstance(effect, Dial):
                self._scope.spawn(self._dial(effect), name=f"dial-broker-{effect.broker_id}")
            else:
                fencing = self._fence(effect.broker_id, effect.broker_epoch, self._broke_ms[effect.broker_id])
                self._scope.spawn(fencing, name=f"fence-broker-{effect.broker_id}")
        if self._timer is not None:
            self._timer.cancel()
        due_ms = self._machine.next_tick_ms
        loop = asyncio.get_running_loop()
        self._timer = None if due_ms is None else loop.call_at(due_ms / 1000, self._step, TimePassed())

    async def _dial(self, dial: Dial) -> None:
        """Only a refusal counts. Whatever else comes of it proves nothing."""
        endpoint = self._endpoint_of(dial.broker_id)
        event: Event = DialOther(dial.broker_id, dial.number)
        if endpoint is not None:
            try:
                async with asyncio.timeout(_DIAL_SECONDS):
                    (await self._net.connect(*endpoint)).close()
            except ConnectionRefusedError:
                event = DialRefused(dial.broker_id, dial.number)
            except OSError as e:
                _log.debug("Broker %d cannot be dialled: %s", dial.broker_id, e)
        self._step(event)


def _now_ms() -> int:
    return int(asyncio.get_running_loop().time() * 1000)
