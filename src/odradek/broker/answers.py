"""Answers that are there at once or come later: how a handler finishes both in the same way."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from odradek.core.errors import KafkaError


def finished(reply: Any, finish: Callable[[Any], Any]) -> Any:
    """What `finish` makes of an answer, now; or, where the answer is a coroutine, one that gives it."""
    return _finish_later(reply, finish) if inspect.iscoroutine(reply) else finish(reply)


async def _finish_later(reply: Any, finish: Callable[[Any], Any]) -> Any:
    return finish(await reply)


def finished_or_failed(
    ask: Callable[[], Any], finish: Callable[[Any], Any], failed: Callable[[KafkaError], Any]
) -> Any:
    """The same for a question that may be refused, at once or later."""
    try:
        reply = ask()
    except KafkaError as e:
        return failed(e)
    return _finish_or_fail_later(reply, finish, failed) if inspect.iscoroutine(reply) else finish(reply)


async def _finish_or_fail_later(
    reply: Any, finish: Callable[[Any], Any], failed: Callable[[KafkaError], Any]
) -> Any:
    try:
        return finish(await reply)
    except KafkaError as e:
        return failed(e)


def all_finished(replies: Iterable[Any], finish: Callable[[list[Any]], Any]) -> Any:
    """The same for several answers, in order."""
    gathered = list(replies)
    if any(inspect.iscoroutine(reply) for reply in gathered):
        return _finish_all_later(gathered, finish)
    return finish(gathered)


async def _finish_all_later(replies: list[Any], finish: Callable[[list[Any]], Any]) -> Any:
    try:
        return finish([await reply if inspect.iscoroutine(reply) else reply for reply in replies])
    finally:
        for reply in replies:  # those not come to, where the client went away
            if inspect.iscoroutine(reply):
                reply.close()
