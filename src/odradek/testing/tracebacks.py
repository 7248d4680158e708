"""Failures of a test that point at the test's own line, not at what is beneath it."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from odradek.core.errors import KafkaError

P = ParamSpec("P")
T = TypeVar("T")


def blames_the_caller(function: Callable[P, T]) -> Callable[P, T]:
    """Errors leave without the frames they went through; pytest shows the line that made the call."""

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        __tracebackhide__ = True
        try:
            return function(*args, **kwargs)
        except (AssertionError, KafkaError, OSError, ValueError) as e:
            raise e.with_traceback(None) from None

    return called
