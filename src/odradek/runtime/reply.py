"""Reply: an answer that is ready or pending. One type for both, so that callers treat them the same way.

A reply holds a value, an error, or a future of either with the steps to apply to its outcome. It has one
consumer. Nothing is sent or scheduled here.
"""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from types import coroutine
from typing import Any, Generic, TypeVar, cast

from odradek.core.errors import KafkaError

T = TypeVar("T")
U = TypeVar("U")

Spawn = Callable[[Coroutine[Any, Any, Any], str], "asyncio.Task[Any]"]
"""Makes a task in the scope of the component that provides this function."""


class Reply(Generic[T]):
    """`Reply(value)` is ready. While `is_ready` is false, neither `value` nor `error` means anything."""

    __slots__ = ("_future", "_steps", "error", "is_ready", "value")
    _future: "asyncio.Future[Any]"
    _steps: "tuple[Callable[[Reply[Any]], Reply[Any]], ...]"

    def __init__(self, value: T) -> None:
        self.is_ready = True
        self.value = value
        self.error: Exception | None = None

    @classmethod
    def failed(cls, error: Exception) -> "Reply[T]":
        reply = cls(cast(T, None))
        reply.error = error
        return reply

    @classmethod
    def later(cls, future: "asyncio.Future[T]") -> "Reply[T]":
        """The outcome of a future."""
        return cls._pending(future, ())

    @classmethod
    def _pending(
        cls, future: "asyncio.Future[Any]", steps: "tuple[Callable[[Reply[Any]], Reply[Any]], ...]"
    ) -> "Reply[T]":
        reply = cls.__new__(cls)
        reply.is_ready = False
        reply.error = None
        reply._future = future
        reply._steps = steps
        return reply

    # --- chaining -------------------------------------------------------------------------------------

    def then(self, make: Callable[[T], U]) -> "Reply[U]":
        """A reply with `make(value)`. If `make` raises, the new reply fails with that error."""
        if not self.is_ready:
            return Reply._pending(self._future, (*self._steps, lambda ready: ready.then(make)))
        if self.error is not None:
            return Reply.failed(self.error)
        try:
            return Reply(make(self.value))
        except Exception as e:
            return Reply.failed(e)

    def otherwise(self, make: Callable[[KafkaError], T]) -> "Reply[T]":
        """A reply with `make(error)` after a KafkaError. Any other outcome stays as it is."""
        if not self.is_ready:
            return Reply._pending(self._future, (*self._steps, lambda ready: ready.otherwise(make)))
        if self.error is None or not isinstance(self.error, KafkaError):
            return self
        try:
            return Reply(make(self.error))
        except Exception as e:
            return Reply.failed(e)

    # --- the outcome ----------------------------------------------------------------------------------

    def when_ready(self, use: "Callable[[Reply[T]], None]") -> None:
        """Call `use` with a ready reply, now or later from the loop; never if the work is cancelled."""
        if self.is_ready:
            use(self)
        else:
            self._future.add_done_callback(lambda done: None if done.cancelled() else use(self._outcome()))

    def __await__(self) -> Generator[Any, Any, T]:
        if self.is_ready:
            return self._result()
        try:
            yield from self._future
        except Exception:
            pass  # the steps may handle it
        return self._outcome()._result()

    def _result(self) -> T:
        if self.error is not None:
            raise self.error
        return self.value

    def _outcome(self) -> "Reply[T]":
        error = self._future.exception()
        ready: Reply[Any]
        if error is None:
            ready = Reply(self._future.result())
        elif isinstance(error, Exception):
            ready = Reply.failed(error)
        else:
            raise error
        for step in self._steps:
            ready = step(ready)
        return ready


def start(work: Coroutine[Any, Any, T], spawn: Spawn, name: str) -> Reply[T]:
    """Run work until its first wait. Only if it waits, the rest becomes a task."""
    try:
        waits_for = work.send(None)
    except StopIteration as done:
        return Reply(done.value)
    except Exception as e:
        return Reply.failed(e)
    if waits_for is not None:
        # asyncio marks a future while it passes it to a task. No task has it yet, and others may await it.
        waits_for._asyncio_future_blocking = False
    return Reply.later(spawn(_resumed(work, waits_for), name))


@coroutine
def _resumed(work: Coroutine[Any, Any, T], waits_for: Any) -> Generator[Any, Any, T]:
    """A coroutine that continues `work`, which waits for `waits_for`."""
    if waits_for is not None:
        waits_for._asyncio_future_blocking = True
    try:
        while True:
            try:
                sent = yield waits_for
            except BaseException as e:
                waits_for = work.throw(e)
            else:
                waits_for = work.send(sent)
    except StopIteration as done:
        return cast(T, done.value)
    finally:
        work.close()
