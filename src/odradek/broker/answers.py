"""Answers that are there at once or come later: how a handler finishes both in the same way."""

import inspect
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")
U = TypeVar("U")


def finished(reply: T | Coroutine[Any, Any, T], finish: Callable[[T], U]) -> U | Coroutine[Any, Any, U]:
    """What `finish` makes of the answer: now, or once it is there."""
    if inspect.iscoroutine(reply):
        return _finish_later(reply, finish)
    return finish(reply)  # type: ignore[arg-type]


async def _finish_later(reply: Coroutine[Any, Any, T], finish: Callable[[T], U]) -> U:
    return finish(await reply)


def all_finished(
    replies: Iterable[T | Coroutine[Any, Any, T]], finish: Callable[[list[T]], U]
) -> U | Coroutine[Any, Any, U]:
    """The same for several answers, in order."""
    gathered = list(replies)
    if any(inspect.iscoroutine(reply) for reply in gathered):
        return _finish_all_later(gathered, finish)
    return finish(gathered)  # type: ignore[arg-type]


async def _finish_all_later(replies: list[Any], finish: Callable[[list[T]], U]) -> U:
    return finish([await reply if inspect.iscoroutine(reply) else reply for reply in replies])
