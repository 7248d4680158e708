"""Structured concurrency in a fixed order: the tasks of a scope never outlive it.

asyncio.TaskGroup and asyncio.wait keep tasks in sets ordered by address, so two runs of one seed would
differ. A scope always goes through its children in the order in which they were spawned.
"""

import asyncio
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")


class Scope:
    """A group of tasks that end together.

    Around a block, use `async with Scope() as scope`. Leaving the block cancels the children and waits for
    them. A child that fails interrupts the block, and the block raises its error. `await scope.join()` inside
    the block waits for the children instead of cancelling them.

    For the lifetime of a node, use `scope = Scope(on_failure)` and at the end `await scope.close()`. Each
    failure of a child goes to `on_failure` when it happens. Without the callback, `join` or `close` raises
    the first failure, and later ones go to the loop's exception handler.
    """

    __slots__ = ("_children", "_closing", "_failure", "_interrupted", "_on_failure", "_owner", "_waiter")

    def __init__(self, on_failure: Callable[[BaseException], None] | None = None) -> None:
        self._children: dict[asyncio.Task[Any], None] = {}
        self._on_failure = on_failure
        self._failure: BaseException | None = None
        self._owner: asyncio.Task[Any] | None = None
        self._interrupted = False
        self._closing = False
        self._waiter: asyncio.Future[None] | None = None

    def spawn(self, coroutine: Coroutine[Any, Any, T], *, name: str | None = None) -> asyncio.Task[T]:
        if self._closing:
            coroutine.close()
            raise RuntimeError(f"scope is closing, cannot spawn {name or coroutine!r}")
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self._children[task] = None
        task.add_done_callback(self._on_done)
        return task

    def __len__(self) -> int:
        return len(self._children)

    async def join(self) -> None:
        """Wait until every child has ended, including children spawned during the wait."""
        while self._children:
            await self._next_end()
        self._raise_failure()

    def cancel(self) -> None:
        """Cancel every child without waiting for it. After that the scope spawns nothing."""
        self._closing = True
        for task in list(self._children):
            task.cancel()

    async def close(self) -> None:
        """Cancel the children in the order of their spawning, wait for all, and raise the first failure.

        If the caller is cancelled during the wait, the cancellation is raised after the last child has ended.
        """
        cancelled = await self._end()
        self._raise_failure()
        if cancelled is not None:
            raise cancelled

    async def __aenter__(self) -> "Scope":
        self._owner = asyncio.current_task()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        owner, self._owner = self._owner, None
        assert owner is not None
        cancelled = await self._end()
        if self._interrupted:
            owner.uncancel()
        if error is None or isinstance(error, asyncio.CancelledError):
            self._raise_failure()
        elif self._failure is not None:
            self._report(self._failure)
        if cancelled is not None:
            raise cancelled

    async def _end(self) -> asyncio.CancelledError | None:
        self.cancel()
        cancelled: asyncio.CancelledError | None = None
        while self._children:
            try:
                await self._next_end()
            except asyncio.CancelledError as e:
                cancelled = e
        return cancelled

    async def _next_end(self) -> None:
        """Wait for a child to end. Several callers may wait at once."""
        if self._waiter is None or self._waiter.done():
            self._waiter = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._waiter)

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        del self._children[task]
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        if self._on_failure is not None:
            self._on_failure(error)
        elif self._failure is not None:
            self._report(error)
        else:
            self._failure = error
            if self._owner is not None and not self._closing:
                self._interrupted = True
                self._owner.cancel()

    @staticmethod
    def _report(error: BaseException) -> None:
        context = {"message": "another task of the scope also failed", "exception": error}
        asyncio.get_running_loop().call_exception_handler(context)
