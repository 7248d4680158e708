"""Long work in steps, so that reading and computing can run outside the event loop.

A generator yields functions that do not change shared state, and gets their results. The driver decides where
the functions run. The code between two steps runs in the driver's thread.
"""

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from odradek.runtime.api import Runtime

T = TypeVar("T")

Steps = Generator[Callable[[], Any], Any, T]


def run_here(steps: Steps[T]) -> T:
    """Run every step in this thread."""
    try:
        step = next(steps)
        while True:
            step = steps.send(step())
    except StopIteration as end:
        result: T = end.value
        return result


async def run_beside(runtime: Runtime, steps: Steps[T]) -> T:
    """Run every step in another thread, and the code between them on the event loop."""
    try:
        step = next(steps)
        while True:
            step = steps.send(await runtime.offload(step))
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()
