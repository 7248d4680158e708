"""Runs offloaded work on the event loop, so that a test knows when it is done."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def done_at_once(work: Callable[[], T], carried: type[Exception] = Exception) -> "asyncio.Future[T]":
    """Do the work here and now; the future is done, and carries an error as that of a thread would.

    An error that is not to be `carried` is raised at once: where nobody may ever look into the future, a
    mistake must not get lost in it.
    """
    done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    try:
        done.set_result(work())
    except carried as e:
        done.set_exception(e)
    return done
