"""Watches requests in flight: a broker behind a black hole never answers, and sends no reset either.

When a broker has been silent for some time, another one is asked whether it still leads or coordinates.
client.py knows how to ask. Its users know what to send again, and where.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, NamedTuple, TypeVar

from odradek.core.errors import KafkaError
from odradek.runtime.scope import Scope

T = TypeVar("T")

PATIENCE_S: Final = 0.3
"""How long a broker may be silent before another one is asked."""
_AGAIN_S: Final = 0.4
"""How long after an answer that nothing has moved the next question follows."""


class MovedError(ConnectionAbortedError):
    """A broker was silent, and another one leads or coordinates now what it was asked about."""


class Question(NamedTuple):
    """What to ask about a silent broker. Requests with an equal `subject` share one answer."""

    subject: Hashable
    ask: Callable[[], Awaitable[object]]
    """Asks another broker, and remembers what it says. OSError and KafkaError: not known yet."""
    has_moved: Callable[[], bool]
    """By what is remembered."""


class _InFlight:
    __slots__ = ("due_at", "limit", "question")

    def __init__(self, due_at: float, question: Question) -> None:
        self.due_at = due_at
        self.limit = asyncio.timeout(None)
        self.question = question


class Watcher:
    """Of all requests of one client. It has one timer while requests are in flight, and no task unless one of
    them is late."""

    def __init__(self) -> None:
        self._in_flight: dict[_InFlight, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._scope: Scope | None = None

    async def until_moved(self, work: Awaitable[T], question: Question, patience_s: float = PATIENCE_S) -> T:
        """The result of the work. MovedError if it is late and what it waits for is elsewhere: the work is
        cancelled then."""
        loop = asyncio.get_running_loop()
        request = _InFlight(loop.time() + patience_s, question)
        self._in_flight[request] = None
        self._set_timer(loop, request.due_at)
        try:
            async with request.limit:
                return await work
        except TimeoutError:
            if not request.limit.expired():
                raise
            raise MovedError("the broker did not answer, and is no longer the one to ask") from None
        finally:
            del self._in_flight[request]

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._scope is not None:
            scope, self._scope = self._scope, None
            await scope.close()

    def _set_timer(self, loop: asyncio.AbstractEventLoop, at: float) -> None:
        """A timer that is set may be early: then it is set again."""
        if self._timer is not None:
            if self._timer.when() <= at:
                return
            self._timer.cancel()
        self._timer = loop.call_at(at, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if not self._in_flight:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        late = [request for request in self._in_flight if request.due_at <= now]
        if not late:
            self._set_timer(loop, min(request.due_at for request in self._in_flight))
            return
        if self._scope is None:
            self._scope = Scope(None)
        self._scope.spawn(self._look(late), name="ask about a silent broker")

    async def _look(self, late: list[_InFlight]) -> None:
        """Ask once about each subject, then give up on the requests whose broker is not the right one any
        more."""
        loop = asyncio.get_running_loop()
        asked: set[Hashable] = set()
        for request in late:
            if request not in self._in_flight:
                continue
            question = request.question
            if not question.has_moved() and question.subject not in asked:
                asked.add(question.subject)
                try:
                    await question.ask()
                except (OSError, KafkaError):
                    pass  # nobody knows yet: asked again
        for request in late:
            if request in self._in_flight:
                request.due_at = loop.time() + _AGAIN_S
                if request.question.has_moved():
                    request.limit.reschedule(loop.time())
        if self._in_flight:
            self._set_timer(loop, min(request.due_at for request in self._in_flight))
