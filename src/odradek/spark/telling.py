"""What Spark shows when a call fails: the cause first, and the traceback after it.

Spark's workers send Python's text of an error: thirty lines of traceback, and the cause in the last line.
This file makes a worker omit the traceback and puts it after the message. A worker ends after an error, so
other errors are not affected.
"""

import os
from collections.abc import Callable, Iterator
from functools import wraps
from inspect import isgeneratorfunction
from typing import Any, TypeVar

C = TypeVar("C", bound=type)

_CALLED = (
    *("schema", "reader", "streamReader", "writer", "streamWriter"),
    *("partitions", "read", "initialOffset", "latestOffset", "reportLatestOffset"),
    *("prepareForTriggerAvailableNow", "write", "commit", "abort"),
)
"""What Spark calls."""
_HIDES = "SPARK_HIDE_TRACEBACK"
_OF_WORKERS = "SPARK_BUFFER_SIZE"
"""Spark's workers have it in their environment, and programs do not."""


def cause_first(cls: C) -> C:
    """Of a class that Spark calls."""
    for name in _CALLED:
        if name in vars(cls):
            setattr(cls, name, _told(vars(cls)[name]))
    return cls


def _told(method: Callable[..., Any]) -> Callable[..., Any]:
    if isgeneratorfunction(method):

        @wraps(method)
        def pass_on(*given: Any, **named: Any) -> Iterator[Any]:
            try:
                yield from method(*given, **named)
            except Exception as e:
                put_traceback_last(e)
                raise

        return pass_on

    @wraps(method)
    def call(*given: Any, **named: Any) -> Any:
        try:
            return method(*given, **named)
        except Exception as e:
            put_traceback_last(e)
            raise

    return call


def put_traceback_last(error: Exception) -> None:
    if _OF_WORKERS not in os.environ or getattr(error, "__notes__", None):
        return
    from traceback import format_exception

    error.add_note("".join(format_exception(error)).rstrip())
    os.environ[_HIDES] = "1"
