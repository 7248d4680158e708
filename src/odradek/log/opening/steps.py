"""Long work cut into steps, so that the parts that only read and compute can leave the event loop.

A generator yields functions without side effects on shared state and goes on with their results. Whoever
drives it decides where they run; everything between two steps runs where the driver does.
"""

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from odradek.runtime.api import Runtime

T = TypeVar("T")

Steps = Generator[Callable[[], Any], Any, T]


def run_here(steps: Steps[T]) -> T:
    """Every step in this thread, at once."""
    try:
        step = next(steps)
        while True:
            step = steps.send(step())
    except StopIteration as end:
        result: T = end.value
        return result


async def run_beside(runtime: Runtime, steps: Steps[T]) -> T:
    """Every step away from the event loop; what lies between them on it."""
    try:
        step = next(steps)
        while True:
            step = steps.send(await runtime.offload(step))
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()
