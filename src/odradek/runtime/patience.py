"""Patience: waits for others, as long as nobody gives up."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Patience:
    """`wait` for one thing after another; `give_up` ends the wait of now and all that follow."""

    __slots__ = ("_has_ended", "_waiting")

    def __init__(self) -> None:
        self._waiting: asyncio.Task[Any] | None = None
        self._has_ended = False

    async def wait(self, others: Coroutine[Any, Any, T]) -> T:
        """CancelledError if somebody gives up meanwhile, or did so before."""
        self._waiting = waiting = asyncio.get_running_loop().create_task(others)
        if self._has_ended:
            waiting.cancel()
        try:
            return await waiting
        finally:
            waiting.cancel()
            self._waiting = None

    def give_up(self) -> None:
        self._has_ended = True
        if self._waiting is not None:
            self._waiting.cancel()
