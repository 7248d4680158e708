"""An answer that is ready or to come: one type for both, so that nobody has to ask which of them it is.

What a reply is made of stays with it: a value, an error, or the future of either and the steps to take then.
A reply has one consumer. Nothing is sent or scheduled here.
"""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from types import coroutine
from typing import Any, Generic, TypeVar, cast

from odradek.core.errors import KafkaError

T = TypeVar("T")
U = TypeVar("U")

Spawn = Callable[[Coroutine[Any, Any, Any], str], "asyncio.Task[Any]"]
"""Makes a task that belongs to whoever gives it."""


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

    # --- going on -------------------------------------------------------------------------------------

    def then(self, make: Callable[[T], U]) -> "Reply[U]":
        """What `make` makes of the value. An error that it raises is the new reply's."""
        if not self.is_ready:
            return Reply._pending(self._future, (*self._steps, lambda ready: ready.then(make)))
        if self.error is not None:
            return Reply.failed(self.error)
        try:
            return Reply(make(self.value))
        except Exception as e:
            return Reply.failed(e)

    def otherwise(self, make: Callable[[KafkaError], T]) -> "Reply[T]":
        """What `make` makes of a refusal; any other outcome stays as it is."""
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
        """Call `use` with a ready reply, now or from the loop; never if the work behind it is cancelled."""
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
            pass  # the steps may have an answer to it
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
    """Run work until it first has to wait. Only if it does, what is left of it becomes a task."""
    try:
        waits_for = work.send(None)
    except StopIteration as done:
        return Reply(done.value)
    except Exception as e:
        return Reply.failed(e)
    if waits_for is not None:
        # A future is marked while it is on its way to a task. The task comes later: others may await it now.
        waits_for._asyncio_future_blocking = False
    return Reply.later(spawn(_resumed(work, waits_for), name))


@coroutine
def _resumed(work: Coroutine[Any, Any, T], waits_for: Any) -> Generator[Any, Any, T]:
    """A coroutine that goes on where `work` stands: it waits for `waits_for`."""
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
