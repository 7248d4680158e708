"""Follows the calls of running code: which places it enters, in which order, and which calls go upwards.

A call has a caller if one of our functions is below it on the stack. What the event loop calls has none, so a
reply that comes by a future is no call upwards. Functions that carry others' steps are seen through.
"""

import dis
import inspect
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType, GeneratorType
from typing import Any, NamedTuple

from tests.documents.layers import Place, is_seen_through, is_upward, path, place

_CARRIERS = {("client/client", "Client.retrying"), ("client/blocking", None)}
"""They run steps of their caller: a module, and one function of it or all."""
_YIELD = dis.opmap["YIELD_VALUE"]


class Upward(NamedTuple):
    """A call to a layer above or beside."""

    caller: str
    called: str
    function: str


class Tracer:
    """Between `begin` and `end`, in this thread and in those that start meanwhile.

    `gave` has, for every call upwards, the types of what came back: a request has an answer. Work that is
    paced gives its steps, which are none.
    """

    def __init__(self, is_traced: Callable[[], bool] = lambda: True) -> None:
        self._is_traced = is_traced
        self._is_over = False
        self._open: dict[FrameType, Upward] = {}
        self.entered: dict[Place, None] = {}
        self.gave: dict[Upward, set[str]] = {}

    def begin(self) -> None:
        threading.setprofile(self._on_event)
        sys.setprofile(self._on_event)

    def end(self) -> None:
        sys.setprofile(None)
        threading.setprofile(None)
        self._is_over = True
        self._open.clear()

    def requests_upwards(self) -> list[Upward]:
        """Calls upwards that gave something back."""
        return [call for call, types in self.gave.items() if types]

    def _on_event(self, frame: FrameType, event: str, value: Any) -> None:
        if event == "call":
            if not self._is_over and self._is_traced():
                self._called(frame)
        elif event == "return" and frame in self._open:
            self._returned(self._open.pop(frame), frame, value)

    def _called(self, frame: FrameType) -> None:
        spawned = _spawned(frame)
        if spawned is not None:
            self._judge(frame, path(spawned.f_globals["__name__"]), spawned.f_code, {"Task"})
            return
        module = path(frame.f_globals.get("__name__", ""))
        where = place(module) if module else None
        if where is None:
            return
        if where not in self.entered and not _only_looks(frame):
            self.entered[where] = None
        call = self._judge(frame, module, frame.f_code, set())
        if call is not None:
            self._open[frame] = call

    def _judge(self, frame: FrameType, module: str, code: CodeType, gave: set[str]) -> Upward | None:
        caller = _caller(frame)
        if not module or is_seen_through(module) or caller is None or not is_upward(caller, module):
            return None
        call = Upward(caller, module, code.co_qualname)
        self.gave.setdefault(call, set()).update(gave)
        return call

    def _returned(self, call: Upward, frame: FrameType, value: Any) -> None:
        is_step = isinstance(value, int) and frame.f_code.co_code[frame.f_lasti] == _YIELD
        is_paced_work = isinstance(value, GeneratorType)  # its steps are calls of their own
        if value is not None and not is_step and not is_paced_work:
            self.gave[call].add(type(value).__name__)


def _spawned(frame: FrameType) -> FrameType | None:
    """The coroutine of a new task: making a coroutine is no call, and the loop runs it later."""
    if frame.f_code.co_name != "create_task":
        return None
    return getattr(frame.f_locals.get("coro"), "cr_frame", None)


def _caller(frame: FrameType) -> str | None:
    """The module of the nearest function below on the stack that called for itself."""
    below = frame.f_back
    while below is not None:
        module = path(below.f_globals.get("__name__", ""))
        names = {(module, None), (module, below.f_code.co_qualname)}
        if module and not is_seen_through(module) and not names & _CARRIERS:
            return module
        below = below.f_back
    return None


def _only_looks(frame: FrameType) -> bool:
    """To import a module, to make or compare an object and to read a property is not to enter."""
    name = frame.f_code.co_name
    if name == "<module>" or (name.startswith("__") and name.endswith("__")):
        return True
    owner = frame.f_locals.get("self")
    return owner is not None and isinstance(inspect.getattr_static(type(owner), name, None), property)
