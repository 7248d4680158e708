"""The format "barred": Odradek's own, with barriers at every step of the protocol, for tests that kill.

A test arms a step by writing its name into the barrier's folder. The first process to reach that step (or the
first few) says so in a file and waits there, to be killed or released; the next ones go on.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from odradek.spark import participating, source
from odradek.spark.datasource import OdradekSource
from odradek.spark.deciding import Decider
from odradek.spark.sink import StreamWriter, _Writer

STEPS = (
    "source read",
    "write begun",
    "written",
    "before the decision",
    "after the decision",
    "between the ends",
    "in the sweep",
    "committed",
)
_HELD_S = 120
_held: list[str] = []
"""Where this process has been held."""


def reach(step: str) -> None:
    """Wait here, if this is the step that is armed and it does not hold enough processes yet."""
    folder = Path(os.environ["ODRADEK_BARRIER"])
    armed = _armed(folder)
    if not armed or armed.split("\n")[0] != step or not _enter(folder, int(armed.split("\n")[1])):
        return
    _held.append(step)
    held_until = time.monotonic() + _HELD_S
    while time.monotonic() < held_until and _armed(folder) == armed and not (folder / "released").exists():
        time.sleep(0.01)


def _enter(folder: Path, places: int) -> bool:
    for place in range(places):
        try:
            with (folder / f"reached-{place}").open("x") as file:
                file.write(str(os.getpid()))
            return True
        except FileExistsError:
            continue
    return False


def _armed(folder: Path) -> str:
    """The step, how many it holds, and a number of this arming: to arm anew lets go whoever waits."""
    try:
        return (folder / "step").read_text()
    except FileNotFoundError:
        return ""


def _bar() -> None:
    """Put the barriers in, in this process."""
    begin, finish = participating.Attempt.begin.__func__, participating.Attempt.finish  # type: ignore[attr-defined]
    write, commit_one = Decider._write, Decider._commit
    sweep, commit = Decider._sweep, StreamWriter.commit
    read, write_task = source._read, _Writer.write_task

    def barred_write_task(self: Any, *args: Any) -> Any:
        """An attempt that was held, and was refused when it went on, says why."""
        try:
            return write_task(self, *args)
        except BaseException as e:
            if _held:
                (Path(os.environ["ODRADEK_BARRIER"]) / "refused").write_text(repr(e))
            raise

    def barred_read(*args: Any) -> Iterator[Any]:
        for batch in read(*args):
            reach("source read")
            yield batch

    async def barred_begin(cls: Any, *args: Any) -> Any:
        attempt = await begin(cls, *args)
        reach("write begun")
        return attempt

    async def barred_finish(self: Any) -> Any:
        participant = await finish(self)
        reach("written")
        return participant

    async def barred_write(self: Any, entry: Any, offsets: Any) -> Any:
        reach("before the decision")
        written = await write(self, entry, offsets)
        reach("after the decision")
        return written

    async def barred_end(self: Any, *args: Any) -> None:
        await commit_one(self, *args)
        reach("between the ends")

    async def barred_sweep(self: Any, *args: Any, **kwargs: Any) -> None:
        reach("in the sweep")
        await sweep(self, *args, **kwargs)

    def barred_commit(self: Any, messages: Any, batch: int) -> None:
        commit(self, messages, batch)
        reach("committed")

    source._read = barred_read
    _Writer.write_task = barred_write_task  # type: ignore[method-assign]
    participating.Attempt.begin = classmethod(barred_begin)  # type: ignore[assignment, method-assign]
    participating.Attempt.finish = barred_finish  # type: ignore[method-assign]
    Decider._write = barred_write  # type: ignore[method-assign]
    Decider._commit = barred_end  # type: ignore[method-assign]
    Decider._sweep = barred_sweep  # type: ignore[method-assign]
    StreamWriter.commit = barred_commit  # type: ignore[method-assign]


class BarredSource(OdradekSource):
    @classmethod
    def name(cls) -> str:
        return "barred"


if "ODRADEK_BARRIER" in os.environ:  # in drivers and their workers, not in the tests
    _bar()
